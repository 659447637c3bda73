"""The `Backend` protocol: takes a `Call`, returns an answer as events or as bytes that need no translation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from xenoglot.backends.remote.sign_in.client_credential import ClientCredential
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError
from xenoglot.model.events import Event, Failed
from xenoglot.model.limits import RateLimits
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from xenoglot.backends.stream_guard import PassthroughMonitor
    from xenoglot.codec.features.stream_usage import UsageFilter
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.failure import Failure
    from xenoglot.policy.capabilities import Need


class CallCapture(Protocol):
    """Takes the bodies of a call."""

    def upstream_request(self, data: bytes) -> None:
        """Note what is sent."""
        ...

    def upstream_response(self, media: str) -> Callable[[bytes], None]:
        """Begin what comes back; return what takes its pieces."""
        ...


class Call(Struct, frozen=True, kw_only=True):
    """One request on its way to a backend.

    `body` is the request as the client wrote it in `dialect`, for a backend of the same dialect; `None` if it
    must not be passed through. `headers` are the client's that an upstream of the same dialect may see, `trace` those
    with the context of its trace. `key` is the index of the upstream's key to use. `size` is that of the client's body
    in bytes, 0 without one. `capture` takes what is sent and received.
    """

    request: Request
    losses: Losses
    dialect: str = ""
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    key: int = 0
    size: int = 0
    capture: CallCapture | None = None
    trace: tuple[tuple[str, str], ...] = ()
    credential: ClientCredential | None = None
    """The client's own sign-in, for a server that wants it."""


class EventAnswer(Struct, kw_only=True):
    """An answer as events: each batch is what one read of the source made. Closing it stops the source at once.

    `request_id` is the server's id of the request, if it sent one. `cause` gives the error of the connection, if it
    broke off; the failure that the events end in has only its words.
    """

    batches: AsyncIterator[Sequence[Event]]
    aclose: Callable[[], Awaitable[None]]
    limits: RateLimits | None = None
    request_id: str | None = None
    cause: Callable[[], BaseException | None] = type(None)


class Piece(NamedTuple):
    """One read from the source of an answer, and the events in it.

    Bytes whose events end in a failure without a `dialect` are not to be passed on: they do not contain the failure, or
    not in a form for clients. The last piece has the events of the end of the stream, and data that completes it.
    `incomplete` is whether a frame is open after the data.
    """

    data: bytes
    events: Sequence[Event]
    incomplete: bool = False

    @property
    def failure(self) -> Failure | None:
        """The failure in it, if there is one."""
        last = self.events[-1] if self.events else None
        return last.failure if isinstance(last, Failed) else None


class ByteAnswer(Struct, kw_only=True):
    """An answer in the client's own dialect, to be passed on untouched. What is not whole ends in a failure."""

    pieces: AsyncIterator[Piece]
    aclose: Callable[[], Awaitable[None]]
    media_type: str
    limits: RateLimits | None = None
    request_id: str | None = None


Answer: TypeAlias = EventAnswer | ByteAnswer


@runtime_checkable
class ResumableBackend(Protocol):
    """A backend that may be able to continue a turn that has begun."""

    def continues(self, model: str) -> bool:
        """Return whether `model` continues a last turn of the assistant's, and does not answer it."""
        ...


@runtime_checkable
class LimitedBackend(Protocol):
    """A backend of which it may be known what it cannot do."""

    def missing_capabilities(self, model: str) -> frozenset[Need]:
        """Return what requests may need that `model` is known not to have."""
        ...


async def monitored(
    chunks: AsyncIterator[bytes], watch: PassthroughMonitor, unasked: UsageFilter | None = None
) -> AsyncGenerator[Piece]:
    """Yield the bytes with their events from `watch`, then those of the end with the data that completes it.

    What `unasked` takes out of the bytes is seen, but not passed on.
    """
    broken: Failure | None = None
    try:
        async for chunk in chunks:
            events = await watch.read(chunk)
            yield Piece(chunk, events, watch.incomplete) if unasked is None else Piece(unasked.feed(chunk), events)
    except FailureError as error:
        broken = error.failure
    completing, events = watch.close(broken)
    if unasked is not None and broken is None:
        completing = unasked.close() + completing
    if completing or events:
        yield Piece(completing, events)


@runtime_checkable
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
        """Return the models that it lists.

        Raises:
            FailureError: it returned no list.
        """
        ...

    async def aclose(self) -> None:
        """Let go of everything."""
        ...
