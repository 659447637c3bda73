"""Decodes tool calls in a stream: joins fragments, with ids, names or indexes left out, repeated or mixed up.

A fragment belongs to the call at its index; a new id at an index, or a name after complete arguments, begins another
call there (pitfall-93). A call becomes visible when its first arguments come, so that a name in pieces is whole
(pitfall-92), or when nothing more can come; arguments that come first wait for the name. A text that begins with the
name so far replaces it, for the server has sent the name again. A call without an id, or with one that is taken, gets a
derived one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import ObjectText
from xenoglot.codec.reader import leave
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.tool_calls import NO_ARGUMENTS, derived_id, take_arguments
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
    __slots__ = ("_names", "_size", "arguments", "fields", "form", "index", "kind", "position", "raw_id", "shown")

    def __init__(self, index: int | None, position: int) -> None:
        self.index = index
        self.position = position
        self.raw_id: str | None = None
        self.kind: Literal["function", "custom"] = "function"
        self.arguments = ObjectText()
        self.fields: JSONObject = {}  # of its entries, that nobody took
        self.form: JSONObject = {}
        self.shown = False
        self._names: list[str] = []
        self._size = 0

    @property
    def is_named(self) -> bool:
        return bool(self._names)

    def header(self, call_id: str) -> ToolCall:
        """Return what is known of the call when it becomes visible."""
        extra = Extra(dialect=NAME, fields=self.fields, form=self.form) if self.fields or self.form else None
        return ToolCall(id=call_id, name="".join(self._names), kind=self.kind, extra=extra)

    def is_name(self, text: str) -> bool:
        """Whether `text` is the name so far; names are put together only where that can be."""
        return len(text) == self._size and "".join(self._names) == text

    def add_name(self, text: str) -> None:
        """Take a piece of the name, or the name so far again, which may be longer by now."""
        if len(text) >= self._size and text.startswith("".join(self._names)):
            self._names, self._size = [text], len(text)
        else:
            self._names.append(text)
            self._size += len(text)


class CallDecoder:
    """Decodes the tool calls of one candidate; their events come out of its `blocks`."""

    __slots__ = ("_blocks", "_calls", "_candidate", "_hidden", "_ids", "_known", "_last", "_scope")

    def __init__(self, blocks: Blocks, candidate: int, scope: str) -> None:
        self._blocks = blocks
        self._candidate = candidate
        self._scope = scope
        self._calls: list[_Call] = []
        self._last: dict[int | None, _Call] = {}  # by index; `None` is for any
        self._known: dict[tuple[int | None, str], _Call] = {}  # the last by index and id
        self._hidden: list[_Call] = []  # with a name, and not shown
        self._ids: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is any call."""
        return bool(self._calls)

    @property
    def are_whole(self) -> bool:
        """Whether no call of a function stops amid its arguments."""
        return all(call.kind == "custom" or not call.arguments or call.arguments.is_complete() for call in self._calls)

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
            events, call = self._begin(place)
        call.kind = "custom" if kind == "custom" else "function"
        return [*events, *self._keep(call, item), *self._grow(call, raw_id, name, arguments)]

    def feed_legacy(self, item: Reader) -> list[Event]:
        """Take a deprecated `function_call`."""
        name = item.take("name", str) or ""
        arguments, _ = take_arguments(item, "arguments")
        call = self._last.get(_LEGACY)
        events: list[Event] = []
        if call is None:
            events, call = self._begin(_LEGACY)
            call.fields, call.form = item.rest(), {"legacy": True}
        return [*events, *self._grow(call, None, name, arguments)]

    def taker(self, item: JSONObject) -> Callable[[str], Event]:
        """Return what takes more arguments of the open call, if `item` holds some of them and nothing else."""
        call = self._find(_place(item.get("index")), item.get("id") or None, "", "more")
        arguments = [] if call is None else call.arguments.pieces

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
            if not call.is_named:
                raise WireError("$.choices", "a tool call has no name")
            events += self._show(call)
            if not call.arguments and call.kind == "function":
                events += self._blocks.grow(call.position, self._delta(NO_ARGUMENTS))
        return events

    def _find(self, index: int | None, raw_id: str | None, name: str, arguments: str) -> _Call | None:
        """Return the call that a fragment continues, or `None` if it begins one."""
        last = self._last.get(index)
        if raw_id is not None:
            known = self._known.get((index, raw_id))
            if known is None and (index is None or (last is not None and last.raw_id is not None)):
                return None
            last = known or last
        if last is None:
            return None
        if not last.is_named:
            return last
        repeated = last.is_name(name) and not arguments
        return None if name and last.arguments and not repeated and last.arguments.is_complete() else last

    def _begin(self, index: int | None) -> tuple[list[Event], _Call]:
        events: list[Event] = []
        for earlier in sorted(self._hidden, key=lambda call: call.position):
            events += self._show(earlier)
        self._hidden.clear()
        call = _Call(index, len(self._calls))
        self._calls.append(call)
        self._last[index] = self._last[None] = call
        return events, call

    def _grow(self, call: _Call, raw_id: str | None, name: str, arguments: str) -> list[Event]:
        if raw_id is not None and call.raw_id is None:
            call.raw_id = raw_id
            self._known[call.index, raw_id] = self._known[None, raw_id] = call
        if name and not call.shown:
            if not call.is_named:
                self._hidden.append(call)
            call.add_name(name)
        if not arguments:
            return []
        call.arguments.pieces.append(arguments)
        if call.shown:
            return self._blocks.grow(call.position, self._delta(arguments))
        return self._show(call) if call.is_named else []

    def _show(self, call: _Call) -> list[Event]:
        if call.shown:
            return []
        call.shown = True
        call_id = call.raw_id
        if call_id is None or call_id in self._ids:
            call_id = derived_id(self._scope, call.position)
        self._ids.add(call_id)
        events = self._blocks.open(call.position, call.header(call_id))
        for arguments in call.arguments.pieces:
            events += self._blocks.grow(call.position, self._delta(arguments))
        return events

    def _keep(self, call: _Call, item: Reader) -> list[Event]:
        """Keep the unknown fields of an entry: with the call while it is not shown, else as an event of its own."""
        rest = item.rest()
        if not rest:
            return []
        if not call.shown:
            call.fields |= rest
            return []
        delta = {"tool_calls": [{"index": call.position, **rest}]}
        data = {"choices": [{"index": self._candidate, "delta": delta, "finish_reason": None}]}
        return [OpaqueDelta(dialect=NAME, data=data, candidate=self._candidate)]

    def _delta(self, arguments: str) -> ArgumentsDelta:
        return ArgumentsDelta(text=arguments, candidate=self._candidate)
