"""Leak check: tasks, sockets, file descriptors, warnings, and custom gauges."""

from __future__ import annotations

import asyncio
import gc
import os
import stat
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

from xenoglot.errors import XenoglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Count = Callable[[], int]

DESCRIPTORS = Path("/dev/fd")
TURNS = 2_000
"""Turns of the event loop after which the counts must match."""


class LeakError(XenoglotError):
    """Something was left open."""


class Baseline:
    """Counts resources on entry of `async with`; on exit, the counts must be the same.

    Counted are the tasks of the running loop and the open sockets and other descriptors of the process, which may
    decrease; and the `gauges`. `idle` is how many more sockets may be open at the end, such as those of a pool. Calls
    of the loop's exception handler, and what is never awaited, retrieved or closed, are leaks too: to detect them,
    garbage is collected, unless `collect` is false. No time passes: the loop turns until the counts match, or up to a
    limit.
    """

    def __init__(
        self, *, gauges: Mapping[str, Count] | None = None, idle: Count = lambda: 0, collect: bool = True
    ) -> None:
        self.complaints: list[str] = []
        self._gauges = dict(gauges or {})
        self._idle = idle
        self._collect = collect
        self._before: dict[str, int] = {}
        self._warned = warnings.catch_warnings(record=True)
        self._warnings: list[warnings.WarningMessage] = []

    async def __aenter__(self) -> Self:
        """Count."""
        self._warnings = self._warned.__enter__()
        warnings.simplefilter("always")
        loop = asyncio.get_running_loop()
        self._handler = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: self.complaints.append(_describe(context)))
        self._thaws = self._collect and _thawed()
        if self._collect:
            gc.freeze()  # what is there already need not be looked through again, which takes long
        self._before = self._now()
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        """Count again.

        Raises:
            LeakError: a leak, and no other exception.
        """
        try:
            left = await self._leaks()
            if self._collect:
                gc.collect()
                await asyncio.sleep(0)
        finally:
            if self._thaws:  # what somebody else has frozen stays so
                gc.unfreeze()
            asyncio.get_running_loop().set_exception_handler(self._handler)
            self._warned.__exit__(None, None, None)
        self.complaints += [f"{warning.category.__name__}: {warning.message}" for warning in self._warnings]
        if kind is None and (left or self.complaints):
            raise LeakError("; ".join([*left, *self.complaints]))

    async def _leaks(self) -> list[str]:
        """Return the differences, after giving the loop its turns."""
        for _ in range(TURNS):
            if not self._more():
                return []
            await asyncio.sleep(0)
        names = {task.get_name() for task in asyncio.all_tasks()}
        told = f" ({', '.join(sorted(names))})" if "tasks" in self._more() else ""
        return [f"{name}: {was} before, {now} now{told}" for name, (was, now) in self._more().items()]

    def _more(self) -> dict[str, tuple[int, int]]:
        now, idle = self._now(), self._idle()
        spare = {"tasks": 0, "sockets": idle, "descriptors": idle}
        return {
            name: (was, now[name])
            for name, was in self._before.items()
            if (now[name] > was + spare[name] if name in spare else now[name] != was)
        }

    def _now(self) -> dict[str, int]:
        sockets, descriptors = opened()
        counts = {"tasks": len(asyncio.all_tasks()), "sockets": sockets, "descriptors": descriptors}
        return counts | {name: count() for name, count in self._gauges.items()}


@cache
def _thawed() -> bool:
    """Return whether nothing was frozen at the first call; cached, because it walks all objects."""
    return gc.get_freeze_count() == 0


def opened() -> tuple[int, int]:
    """Return how many sockets this process has open, and how many descriptors in all."""
    sockets = descriptors = 0
    for name in os.listdir(DESCRIPTORS):  # noqa: PTH208 - a `Path` for each takes longer than the rest
        try:
            sockets += stat.S_ISSOCK(os.fstat(int(name)).st_mode)
        except OSError:  # the descriptor with which the folder itself was read
            continue
        descriptors += 1
    return sockets, descriptors


def _describe(context: Mapping[str, object]) -> str:
    error = context.get("exception")
    return f"{context.get('message')}" + (f": {error!r}" if error is not None else "")
