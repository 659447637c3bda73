"""Hooks as operators write them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.hooks.hook import HookContext, RejectedError
from xenoglot.hooks.texts import map_part
from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, Event, Finished, TextDelta
from xenoglot.model.request import Message, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.response import Response

SYSTEM = Message(role="system", content=(Text(text="Be brief."),))


class AddSystem:
    """Adds a system turn."""

    def before_request(self, request: Request, context: HookContext) -> Request:
        """Add it, and tag the request."""
        context.tag("by", "AddSystem")
        return replace(request, messages=(SYSTEM, *request.messages), model="another", stream=True)


class Shout:
    """Makes answers capital letters, in pieces and whole; `calls` are what it was called for."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_event(self, event: Event, context: HookContext) -> Event | None:
        """Change a piece."""
        assert threading.current_thread() is not threading.main_thread()
        context.state["events"] = context.state.get("events", 0) + 1
        self.calls.append(type(event).__name__)
        return replace(event, text=event.text.upper()) if isinstance(event, TextDelta) else None

    async def after_response(self, response: Response, _context: HookContext) -> Response:
        """Change the whole."""
        self.calls.append("after_response")
        await asyncio.sleep(0)
        candidates = tuple(
            replace(one, content=tuple(map_part(part, str.upper) for part in one.content))
            for one in response.candidates
        )
        return replace(response, candidates=candidates, usage=None)


class HoldBack:
    """Gives out a text in one piece, however it came."""

    async def on_event(self, event: Event, context: HookContext) -> Sequence[Event] | None:
        """Hold pieces back until the block ends."""
        held: list[str] = context.state.setdefault("held", [])
        if isinstance(event, TextDelta):
            held.append(event.text)
            return ()
        if isinstance(event, BlockEnded):
            return (TextDelta("".join(held)), event)
        return None


class RejectAnswers:
    """Rejects every answer at its end."""

    def after_response(self, _response: Response, _context: HookContext) -> None:
        """Reject."""
        raise RejectedError("not this answer", kind="not_found", code="denied")


class RejectEnds:
    """Rejects an answer of which a part has been sent."""

    def on_event(self, event: Event, _context: HookContext) -> None:
        """Reject the end."""
        if isinstance(event, Finished):
            raise RejectedError("too late")


class Broken:
    """Fails, each method when it is named in `where`; `how` is by an exception, a wrong value, or taking too long."""

    def __init__(self, where: str, how: str) -> None:
        self.before_request = self._fail if where == "before_request" else None
        self.on_event = self._fail if where == "on_event" else None
        self.after_response = self._fail_async if where == "after_response" else None
        self._how = how
        self._never = threading.Event()

    def _fail(self, _value: object, _context: HookContext) -> object:
        if self._how == "raises":
            raise ValueError("my hook is broken")
        if self._how == "is slow":
            self._never.wait()
        return 17 if self._how == "wrong value" else None

    async def _fail_async(self, value: object, context: HookContext) -> object:
        if self._how == "is slow":
            await asyncio.Event().wait()
        return self._fail(value, context)


def before_request(request: Request, _context: HookContext) -> Request:
    """Change nothing: a module can be a hook."""
    return request
