"""Tool calls in a stream: fragments put together, whatever a server leaves out, repeats or mixes up.

A fragment belongs to the call at its index; a new id at an index, or a name after complete arguments, begins another
call there (pitfall-93). A call becomes visible when its first arguments come, so that a name in pieces is whole
(pitfall-92), or when nothing more can come. A call without an id, or with one that is taken, gets a derived one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.leftovers import leave
from xenoglot.codec.wire import decode_json
from xenoglot.dialects.chat.calls import NO_ARGUMENTS, derived_id, take_arguments
from xenoglot.dialects.chat.leftovers import NAME, extra_of
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, ToolCall
from xenoglot.model.events import ArgumentsDelta, Event, OpaqueDelta

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from xenoglot.codec.blocks import Blocks
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject

_LEGACY = -1
"""The index under which a deprecated `function_call` grows."""


def _place(index: JSON) -> int | None:
    return index if type(index) is int and index >= 0 else None


class _Call:
    __slots__ = ("arguments", "extra", "index", "kind", "name", "position", "raw_id", "shown")

    def __init__(self, index: int | None, position: int, raw_id: str | None) -> None:
        self.index = index
        self.position = position
        self.raw_id = raw_id
        self.name = ""
        self.kind: Literal["function", "custom"] = "function"
        self.arguments: list[str] = []
        self.extra: Extra | None = None
        self.shown = False

    def is_complete(self) -> bool:
        try:
            return isinstance(decode_json("".join(self.arguments)), dict)
        except WireError:
            return False


class GrowingCalls:
    """The tool calls of one candidate; their events come out of its `blocks`."""

    __slots__ = ("_blocks", "_calls", "_candidate", "_ids", "_scope")

    def __init__(self, blocks: Blocks, candidate: int, scope: str) -> None:
        self._blocks = blocks
        self._candidate = candidate
        self._scope = scope
        self._calls: list[_Call] = []
        self._ids: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is any call."""
        return bool(self._calls)

    def feed(self, item: Reader) -> list[Event]:
        """Take one entry of `tool_calls`.

        Raises:
            WireError: a field is of a wrong type.
        """
        index = item.take_any("index")
        raw_id = item.take_if("id", str) or None
        kind = "custom" if item.take_any("type") == "custom" or "custom" in item else "function"
        inner = item.object(kind)
        name = arguments = ""
        if inner is not None:
            name = inner.take("name", str) or ""
            arguments, _ = take_arguments(inner, "input" if kind == "custom" else "arguments")
            leave(item, kind, inner)
        for key in [key for key, value in item.rest().items() if value is None]:
            del item.rest()[key]
        place = _place(index)
        if not (raw_id or name or arguments or item.rest()):
            return []
        call = self._find(place, raw_id, name, arguments)
        events: list[Event] = []
        if call is None:
            events, call = self._begin(place, raw_id)
        call.kind = "custom" if kind == "custom" else "function"
        return [*events, *self._keep(call, item), *self._grow(call, raw_id, name, arguments)]

    def feed_legacy(self, item: Reader) -> list[Event]:
        """Take a deprecated `function_call`."""
        name = item.take("name", str) or ""
        arguments, _ = take_arguments(item, "arguments")
        call = next((call for call in self._calls if call.index == _LEGACY), None)
        events: list[Event] = []
        if call is None:
            events, call = self._begin(_LEGACY, None)
            call.extra = extra_of(item, {"legacy": True})
        return [*events, *self._grow(call, None, name, arguments)]

    def taker(self, item: JSONObject) -> Callable[[str], Event]:
        """Return what takes more arguments of the open call, of which `item` said some and nothing else."""
        call = self._find(_place(item.get("index")), item.get("id") or None, "", "more")
        arguments = [] if call is None else call.arguments

        def take(text: str) -> Event:
            arguments.append(text)
            return self._blocks.more(ArgumentsDelta(text, self._candidate))

        return take

    def close(self) -> list[Event]:
        """Show what has not been shown; nothing more will come, so a function without arguments takes none.

        Raises:
            WireError: a call never got a name.
        """
        events: list[Event] = []
        for call in self._calls:
            if not call.shown and not call.name:
                raise WireError("$.choices", "a tool call has no name")
            events += self._show(call)
            if not call.arguments and call.kind == "function":
                events += self._blocks.grow(call.position, self._delta(NO_ARGUMENTS))
        return events

    def _find(self, index: int | None, raw_id: str | None, name: str, arguments: str) -> _Call | None:
        """Return the call a fragment goes on with, or `None` if it begins one."""
        here = [call for call in self._calls if index is None or call.index == index]
        if raw_id is not None:
            known = [call for call in here if call.raw_id == raw_id]
            if not known and (index is None or (here and here[-1].raw_id is not None)):
                return None
            here = known or here
        if not here:
            return None
        last = here[-1]
        repeated = name == last.name and not arguments
        return None if name and last.arguments and not repeated and last.is_complete() else last

    def _begin(self, index: int | None, raw_id: str | None) -> tuple[list[Event], _Call]:
        events: list[Event] = []
        for earlier in self._calls:
            if earlier.name:
                events += self._show(earlier)
        call = _Call(index, len(self._calls), raw_id)
        self._calls.append(call)
        return events, call

    def _grow(self, call: _Call, raw_id: str | None, name: str, arguments: str) -> list[Event]:
        call.raw_id = call.raw_id or raw_id
        if name and not call.shown and name != call.name:
            call.name += name
        if not arguments:
            return []
        call.arguments.append(arguments)
        if call.shown:
            return self._blocks.grow(call.position, self._delta(arguments))
        return self._show(call) if call.name else []

    def _show(self, call: _Call) -> list[Event]:
        if call.shown:
            return []
        call.shown = True
        call_id = call.raw_id
        if call_id is None or call_id in self._ids:
            call_id = derived_id(self._scope, call.position)
        self._ids.add(call_id)
        header = ToolCall(id=call_id, name=call.name, kind=call.kind, extra=call.extra)
        events = self._blocks.open(call.position, header)
        for arguments in call.arguments:
            events += self._blocks.grow(call.position, self._delta(arguments))
        return events

    def _keep(self, call: _Call, item: Reader) -> list[Event]:
        """Keep what nobody took of an entry: with the call while it is not shown, else as an event of its own."""
        rest = item.rest()
        if not rest:
            return []
        if not call.shown:
            call.extra = Extra(dialect=NAME, fields=(call.extra.fields if call.extra is not None else {}) | rest)
            return []
        delta = {"tool_calls": [{"index": call.position, **rest}]}
        data = {"choices": [{"index": self._candidate, "delta": delta, "finish_reason": None}]}
        return [OpaqueDelta(dialect=NAME, data=data, candidate=self._candidate)]

    def _delta(self, arguments: str) -> ArgumentsDelta:
        return ArgumentsDelta(text=arguments, candidate=self._candidate)
