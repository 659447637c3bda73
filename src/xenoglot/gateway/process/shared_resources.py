"""What gateways of one process share while one takes over from another, for as long as any of them needs it.

A gateway that is exchanged for another in flight hands over what both are configured alike for: the embedded model
is not loaded again, what is kept in memory is not forgotten, counters of requests continue.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

T = TypeVar("T")


class SharedResources:
    """Things by what they are made from. One asks for things at a time."""

    def __init__(self) -> None:
        self._things: dict[object, _Thing] = {}

    @asynccontextmanager
    async def hold(self, key: object, make: Callable[[], AbstractAsyncContextManager[T]]) -> AsyncGenerator[T]:
        """Give the thing that is here under `key`, else what `make` gives; with the last who holds it, it goes."""
        thing = self._things.get(key)
        if thing is None:
            stack = AsyncExitStack()
            thing = self._things[key] = _Thing(stack, await stack.enter_async_context(make()))
        thing.holders += 1
        try:
            yield thing.value
        finally:
            thing.holders -= 1
            if not thing.holders:
                if self._things.get(key) is thing:
                    del self._things[key]
                await thing.stack.aclose()


class _Thing:
    def __init__(self, stack: AsyncExitStack, value: Any) -> None:  # noqa: ANN401  whatever is held
        self.stack = stack
        self.value = value
        self.holders = 0
