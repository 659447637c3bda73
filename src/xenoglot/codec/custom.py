"""Free-text tools where the target has none: wrapped as a function of one string, and unwrapped in the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from xenoglot.codec.wire import decode_json
from xenoglot.errors import WireError
from xenoglot.model.content import ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted
from xenoglot.model.request import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

WRAPPED = "input"
"""The one argument of the function that stands for a free-text tool."""

PARAMETERS: JSONObject = {"type": "object", "properties": {WRAPPED: {"type": "string"}}, "required": [WRAPPED]}


class UnwrapCustom:
    """Turn calls of functions that stand for the request's `custom` tools back into calls of those.

    The text of such a call is held until it is complete: only then is it known to be the wrapping and nothing else.
    What is not the wrapping stays as the model wrote it.
    """

    __slots__ = ("_held", "_names")

    def __init__(self, request: Request) -> None:
        self._names = {tool.name for tool in request.tools if isinstance(tool, Tool) and tool.kind == "custom"}
        self._held: dict[int, list[str]] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to unwrap."""
        return bool(self._names)

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event, or what the end of a block makes of the text held back."""
        if isinstance(event, BlockStarted) and self._stands_for_custom(event.part):
            self._held[event.candidate] = [event.part.arguments]
            return (replace(event, part=replace(event.part, kind="custom", arguments="")),)
        if isinstance(event, ArgumentsDelta) and event.candidate in self._held:
            self._held[event.candidate].append(event.text)
            return ()
        if isinstance(event, BlockEnded) and event.candidate in self._held:
            return self._end(event)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Nothing: a block that never ended is no call."""
        return ()

    def _stands_for_custom(self, part: object) -> TypeGuard[ToolCall]:
        return isinstance(part, ToolCall) and part.kind == "function" and part.name in self._names

    def _end(self, event: BlockEnded) -> Sequence[Event]:
        wrapped = "".join(self._held.pop(event.candidate))
        whole = event.part
        if isinstance(whole, ToolCall):
            return (replace(event, part=replace(whole, kind="custom", arguments=unwrap(whole.arguments))),)
        return (ArgumentsDelta(text=unwrap(wrapped), candidate=event.candidate), event)


def unwrap(arguments: str) -> str:
    """Return the free text in `arguments`, or `arguments` where they are not the wrapping."""
    try:
        value = decode_json(arguments)
    except WireError:
        return arguments
    text = value.get(WRAPPED) if isinstance(value, dict) and len(value) == 1 else None
    return text if isinstance(text, str) else arguments
