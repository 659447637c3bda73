"""Work that takes long, done in a thread: the event loop goes on, and no other client waits for a large request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Made = TypeVar("Made")

LARGE = 128 * 1024
"""Bytes of a body from which on its reading is done apart: about 10 ms of it where every message is small (R51)."""


async def apart(size: int, work: Callable[[], Made]) -> Made:
    """Return what `work` gives for a body of `size` bytes; what it raises is raised here."""
    return work() if size < LARGE else await asyncio.to_thread(work)
