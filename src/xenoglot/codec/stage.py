"""Incremental steps of a stream: `feed` returns what an item produces, `close` returns what was buffered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence

In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)


class Stage(Protocol[In_contra, Out_co]):
    """An incremental translator. Feed nothing after `close`."""

    def feed(self, item: In_contra, /) -> Sequence[Out_co]:
        """Feed one item; return its results, in order."""
        ...

    def close(self) -> Sequence[Out_co]:
        """End the input; return what was still buffered."""
        ...


class Pipeline:
    """A sequence of stages, itself a stage. An item passes all stages before `feed` returns."""

    __slots__ = ("_stages",)

    def __init__(self, *stages: Stage[Any, Any]) -> None:
        self._stages = stages

    def feed(self, item: Any, /) -> Sequence[Any]:  # noqa: ANN401  the types of the ends are those of the stages
        """Feed one item to the first stage; return the results of the last."""
        items: Sequence[Any] = (item,)
        for stage in self._stages:
            if len(items) == 1:  # as `_through` does, without the call: this runs for every piece of every answer
                items = stage.feed(items[0])
            elif items:
                items = self._through(items, stage)
            else:
                break
        return items

    def close(self) -> Sequence[Any]:
        """Close the stages in order, each after what the one before it still gave."""
        items: Sequence[Any] = ()
        for stage in self._stages:
            items = [*self._through(items, stage), *stage.close()]
        return items

    @staticmethod
    def _through(items: Sequence[Any], stage: Stage[Any, Any]) -> Sequence[Any]:
        made: list[Any] = []
        for item in items:
            made += stage.feed(item)
        return made


def through(items: Iterable[In_contra], stage: Stage[In_contra, Out_co]) -> Iterator[Out_co]:
    """Yield what `stage` makes of `items`, and closes it."""
    for item in items:
        yield from stage.feed(item)
    yield from stage.close()


async def athrough(items: AsyncIterable[In_contra], stage: Stage[In_contra, Out_co]) -> AsyncIterator[Sequence[Out_co]]:
    """Yield, for each of `items` that made anything, all that it made; then what `close` gave."""
    async for item in items:
        if made := stage.feed(item):
            yield made
    if made := stage.close():
        yield made
