"""The part of a client that a run of the tool loop uses, as protocols: the loop imports no client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Unpack

if TYPE_CHECKING:
    from xenoglot.client.call.answer_stream import AsyncReplyStream
    from xenoglot.client.call.execute import CallExecutor
    from xenoglot.client.call.messages import Messages
    from xenoglot.client.call.options import Options
    from xenoglot.client.loop_thread import LoopThread
    from xenoglot.client.results.costs import Cost
    from xenoglot.model.response import Usage


class Caller(Protocol):
    """An asynchronous client."""

    @property
    def _calling(self) -> CallExecutor:
        """What checks options, and retries."""
        ...

    def stream(self, messages: Messages, **options: Unpack[Options]) -> AsyncReplyStream:
        """Return the answer to `messages` as a stream."""
        ...

    def cost_of(self, usage: Usage | None, model: str | None, *, service_tier: str | None = None) -> Cost | None:
        """Return what `usage` costs; `None` where that is not known."""
        ...

    def context_window(self, model: str | None = None) -> int | None:
        """Return the most tokens of prompt and answer; `None` where that is not known."""
        ...


class BlockingCaller(Protocol):
    """A client for callers that block: an asynchronous one in an event loop of its own."""

    def _current(self) -> tuple[LoopThread, Caller]:
        """Return the event loop of this process, and the client in it."""
        ...
