"""What every backend is: it takes a call and gives an answer, as events or, where nothing need change, as bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Stage
from xenoglot.model.events import Event
from xenoglot.model.limits import RateLimits
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from xenoglot.model.catalog import ModelInfo


class Call(Struct, frozen=True, kw_only=True):
    """One request on its way to a backend.

    `body` is the request as the client wrote it in `dialect`, for a backend that speaks the same; `None` where it must
    not be passed on untouched. `headers` are the client's that an upstream may see.
    """

    request: Request
    losses: Losses
    dialect: str = ""
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()


class EventAnswer(Struct, kw_only=True):
    """An answer as events: each batch is what one read of the source made. Closing it stops the source at once."""

    batches: AsyncIterator[Sequence[Event]]
    aclose: Callable[[], Awaitable[None]]
    limits: RateLimits | None = None


class ByteAnswer(Struct, kw_only=True):
    """An answer in the client's own dialect, to be passed on untouched.

    `watch` is fed the same bytes beside the stream; its events tell usage and whether the answer came whole. Bytes with
    a failure that has no `dialect` are not to be passed on: they do not tell it themselves, or not in fit words.
    """

    chunks: AsyncIterator[bytes]
    aclose: Callable[[], Awaitable[None]]
    media_type: str
    watch: Stage[bytes, Event]
    limits: RateLimits | None = None


Answer: TypeAlias = EventAnswer | ByteAnswer


class Backend(Protocol):
    """Anything that answers."""

    @property
    def name(self) -> str:
        """What logs and headers call it."""
        ...

    async def answer(self, call: Call) -> Answer:
        """Start answering.

        Raises:
            FailureError: there will be no answer; nothing has been given out yet.
        """
        ...

    async def count(self, call: Call) -> int | None:
        """Return the tokens of the prompt by the model's own count, or `None` where there is no way to know."""
        ...

    async def models(self) -> Sequence[ModelInfo]:
        """Return the models it says it has.

        Raises:
            FailureError: it did not say.
        """
        ...

    async def aclose(self) -> None:
        """Let go of everything."""
        ...
