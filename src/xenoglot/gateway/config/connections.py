"""Settings of the HTTP server's connections: the table `[server.connections]`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]


class ConnectionSettings(Struct, frozen=True, kw_only=True):
    """How many clients may be connected at once, and how slow each may be.

    Of more than `most` connections, those that have waited longest without a request are closed, then those whose
    request's body is slow. A request's head has
    `head_seconds` from its first byte, its body must bring `body_rate` bytes a second and has `body_seconds` in all. A
    connection without a request is closed after `idle_seconds`; one whose client takes less than a kibibyte of what it
    is sent in `stall_seconds` is broken off.
    """

    most: Annotated[int, Meta(ge=1)] = 4096
    head_seconds: Seconds = 20.0
    body_seconds: Seconds = 600.0
    body_rate: Annotated[int, Meta(ge=0)] = 512
    idle_seconds: Seconds = 75.0
    stall_seconds: Seconds = 60.0
