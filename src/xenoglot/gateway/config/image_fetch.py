"""What the configuration says of pictures that requests name by URL."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class FetchSettings(Struct, frozen=True, kw_only=True):
    """Whether pictures are fetched, at which ports, and how much of them: bytes each, how many, seconds for all."""

    enabled: bool = False
    ports: tuple[Annotated[int, Meta(ge=1, le=65535)], ...] = (443,)
    max_bytes: Annotated[int, Meta(ge=1, le=1024 * 1024 * 1024)] = 10 * 1024 * 1024
    max_images: Annotated[int, Meta(ge=1, le=1000)] = 16
    seconds: Annotated[float, Meta(gt=0, le=600)] = 15.0
