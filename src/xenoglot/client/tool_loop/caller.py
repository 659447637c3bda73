"""The parts of a client that the tool loop uses, as protocols, because the loop imports no client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Unpack

if TYPE_CHECKING:
    from xenoglot.client.call.answer_stream import AsyncReplyStream
    from xenoglot.client.call.execute import CallExecutor
    from xenoglot.client.call.messages import Messages
    from xenoglot.client.call.options import Options
    from xenoglot.client.loop_thread import LoopThread
    from xenoglot.model.response import Usage
    from xenoglot.providers.costs import Cost


class Caller(Protocol):
    """An asynchronous client."""

    @property
    def _calling(self) -> CallExecutor:
        """Checks options, and retries."""
        ...

    def stream(self, messages: Messages, **options: Unpack[Options]) -> AsyncReplyStream:
        """Return the answer to `messages` as a stream."""
        ...

    def cost_of(self, usage: Usage | None, model: str | None, *, service_tier: str | None = None) -> Cost | None:
        """Return the cost of `usage`; `None` if no price is known."""
        ...

    def context_window(self, model: str | None = None) -> int | None:
        """Return the context window in tokens; `None` if unknown."""
        ...


class BlockingCaller(Protocol):
    """A blocking client: an async client in an event loop of its own."""

    def _current(self) -> tuple[LoopThread, Caller]:
        """Return the event loop of this process, and the client in it."""
        ...
