"""Encodes the `input` of a request: splits turns into items."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.hosted_text import hosted_words
from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.loss import form_of
from xenoglot.dialects.responses.client_calls import (
    CALLS,
    OUTPUTS,
    TABLE,
    answered_id,
    call_kind,
    encode_client_output,
    missing_output,
    result_kind,
    told,
)
from xenoglot.dialects.responses.extras import NAME, own_fields
from xenoglot.dialects.responses.fast.frequent_shapes import TOOL_ERROR, write_plain
from xenoglot.dialects.responses.item_encoder import ItemEncoder, spans
from xenoglot.dialects.responses.output_text import encode_output_text
from xenoglot.dialects.responses.parts import encode_input
from xenoglot.model.content import HostedCall, HostedResult, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Message

MISSING_RESULT = TOOL_ERROR + "there is no result of this call"
"""The output written for a call that the history leaves without one: servers refuse such a history (pitfall-44)."""

_CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    **{call: kind.output for call, kind in CALLS.items()},
}
_OUTPUTS = frozenset(_CALLS.values())


class InputEncoder:
    """Encodes the messages of one request as items."""

    __slots__ = ("_crossing", "_encoder", "_items", "_kinds", "_losses")

    def __init__(self, crossing: EncodeContext) -> None:
        self._crossing = crossing
        self._losses = crossing.losses
        self._encoder = ItemEncoder(crossing, answer=False)
        self._items: list[JSONObject] = []
        self._kinds: dict[str, str] = {}  # of the calls so far, by their ids

    def encode(self, messages: Sequence[Message], first: int = 0) -> list[JSONObject]:
        """Return the items of `messages` from the `first` on."""
        for index in range(first, len(messages)):
            plain = write_plain(messages[index], self._crossing, self._kinds)
            if plain is None:
                self._turn(messages[index], f"$.messages[{index}]")
            else:
                self._items += plain
                self._kinds |= {item["call_id"]: "function" for item in plain if item["type"] == "function_call"}
        return self._items if self._crossing.home else list(self._answered(self._items))

    def _turn(self, message: Message, where: str) -> None:
        form = form_of(message.extra, NAME)
        if self._crossing.home:
            self._items += form.get("before", ())
        if message.name is not None:
            self._losses.dropped(where, "name", "a message has none")
        if message.id is not None:
            self._losses.dropped(where, "id", "the server knows only those it gave")
        if message.role == "assistant":
            self._said(message, where)
        elif "item" in form:
            self._items += [part.data for part in message.content if isinstance(part, Opaque)]
        else:
            self._asked(message, where)

    def _said(self, message: Message, where: str) -> None:
        if (own := own_fields(message.extra, where, self._losses)) and not self._crossing.home:
            self._losses.dropped(where, ", ".join(own), "the turn is written as items")
        placed = [
            (part, at)
            for index, part in enumerate(message.content)
            if not self._unsaid(part, at := f"{where}.content[{index}]")
        ]
        if not self._crossing.home:
            placed = [(said, at) for part, at in placed if (said := self._as_said(part, at)) is not None]
        parts = [part for part, _ in placed]
        for start, end in spans(parts):
            item = self._encoder.item(parts[start:end], [at for _, at in placed[start:end]])
            if item is not None:
                self._items.append(item)
        for part in parts:
            if isinstance(part, ToolCall):
                ours = call_kind(part)
                self._kinds[part.id] = part.kind if ours is None else ours.tool

    def _as_said(self, part: Part, where: str) -> Part | None:
        """Return a part of a turn; what tools of another provider did is written as text, which any server takes."""
        return hosted_words(part, where, self._losses) if isinstance(part, HostedCall | HostedResult) else part

    def _unsaid(self, part: Part, where: str) -> bool:
        """Return whether a part is left out: an empty text, which a server rejects, with all that is attached to it."""
        if self._crossing.home or not isinstance(part, Text) or part.text:
            return False
        encode_output_text(part, where, self._losses, whole=False)  # what it would lose, it loses here too
        if part.citations:
            self._losses.dropped(where, "citations", "they stand on a text without words")
        return True

    def _asked(self, message: Message, where: str) -> None:
        """Write each result as an item of its own, then the rest of the turn (pitfall-4)."""
        rest: list[tuple[str, Part]] = []
        for index, part in enumerate(message.content):
            at = f"{where}.content[{index}]"
            if not isinstance(part, ToolResult):
                rest.append((at, part))
                continue
            if rest:
                self._losses.approximated(at, "order", "the results of tools come first")
            self._items.append(self._result(part, at))
        if rest or len(message.content) == 0:
            self._message(message, rest, where)
        else:
            own_fields(message.extra, where, self._losses)

    def _message(self, message: Message, parts: Sequence[tuple[str, Part]], where: str) -> None:
        form, own = form_of(message.extra, NAME), own_fields(message.extra, where, self._losses)
        encoded = [item for at, part in parts if (item := encode_input(part, at, self._crossing)) is not None]
        if not encoded and not self._crossing.home:
            if parts:
                self._losses.dropped(where, "message", "no content is left")
            return
        head = {} if form.get("type") == "absent" else {"type": "message"}
        mark: JSONObject = {key: form[key] for key in ("id", "status") if key in form}
        content = _content(encoded, form.get("content", "string"))
        self._items.append({**head, **mark, "role": self._role(message, where), **content, **own})

    def _role(self, message: Message, where: str) -> str:
        if message.role == "developer" and not self._crossing.takes(self._crossing.target.developer_role):
            self._losses.approximated(where, "role", "`developer` is written as `system`")
            return "system"
        return "user" if message.role == "tool" else message.role

    def _result(self, result: ToolResult, at: str) -> JSONObject:
        ours = TABLE.get(self._kinds.get(result.call_id, "")) or result_kind(result)
        if ours is not None:
            call_id = self._encoder.call_id(result.call_id, at)
            return encode_client_output(result, ours, call_id, at, self._losses)
        form, own = form_of(result.extra, NAME), own_fields(result.extra, at, self._losses)
        mark: JSONObject = form.get("item", {})
        if result.cache is not None:
            self._losses.dropped(at, "cache", "a result takes no cache mark")
        kind = self._kinds.get(result.call_id, result.kind) if not mark else result.kind
        item: JSONObject = {"type": "function_call_output" if kind == "function" else "custom_tool_call_output"}
        item |= {key: mark[key] for key in ("id", "status") if key in mark}
        if "call_id" not in form:
            item["call_id"] = self._encoder.call_id(result.call_id, at)
        if result.name is not None and mark:
            item["name"] = result.name
        return {**item, **self._output(result, form, at), **own}

    def _output(self, result: ToolResult, form: JSONObject, at: str) -> JSONObject:
        parts = [(f"{at}.content[{index}]", part) for index, part in enumerate(result.content)]
        if result.is_error:
            if not self._crossing.home:
                self._losses.emulated(at, "is_error", f"the text begins with `{TOOL_ERROR.strip()}`")
            parts = _mark_error(parts, at)
        written = (encode_input(part, where, self._crossing, result=True) for where, part in parts)
        encoded = [item for item in written if item is not None]
        spelled = form.get("output")
        if (spelled == "absent" or ("item" in form and _is_null(result))) and not encoded:
            return {}
        alone = encoded[0] if len(encoded) == 1 and _is_plain(encoded[0]) else None
        if spelled == "list" or (encoded and alone is None):
            return {"output": encoded}
        return {"output": "" if alone is None else alone["text"]}

    def _answered(self, items: Iterable[JSONObject]) -> Iterable[JSONObject]:
        """Yield the items, each call followed by one output, and no other outputs (pitfall-44).

        An error replaces a missing output; an output without a call becomes a message of the user.
        """
        waiting = _PendingCalls()
        held: list[JSONObject] = []  # messages that stand between a call and its result
        for item in items:
            kind = item.get("type")
            if kind in _OUTPUTS and _is_whole(item):
                if not waiting.answered(item):
                    held.append(self._told(item))
                    continue
                if held:
                    self._losses.approximated("$.messages", "order", "the results of tools come first")
                yield item
            elif waiting.calls and item.get("role") in ("user", "system", "developer"):
                held.append(item)
            else:
                if held:
                    yield from self._missing(waiting.calls.values())
                    yield from held
                    waiting, held = _PendingCalls(), []
                if kind in _CALLS and "call_id" in item:
                    waiting.add(item)
                yield item
        yield from self._missing(waiting.calls.values())
        yield from held

    def _told(self, output: JSONObject) -> JSONObject:
        self._losses.approximated("$.messages", "content", "the result of no call before it is written as text")
        head, said = f"Result of the tool call {answered_id(output)}:", output.get("output", "")
        if output["type"] in OUTPUTS:
            encoded = [encode_input(part, "$.messages", self._crossing) for part in told(output)]
            said = [part for part in encoded if part is not None]
        if isinstance(said, str):
            return {"type": "message", "role": "user", "content": f"{head}\n{said}"}
        parts = ({"detail": "auto", **part} if part["type"] == "input_image" else part for part in said)
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": head}, *parts]}

    def _missing(self, calls: Iterable[JSONObject]) -> Iterable[JSONObject]:
        for call in calls:
            self._losses.emulated("$.messages", "content", "an error stands for the result of a call that is missing")
            if call["type"] in CALLS:
                yield missing_output(call, MISSING_RESULT)
            else:
                yield {"type": _CALLS[call["type"]], "call_id": call["call_id"], "output": MISSING_RESULT}


class _PendingCalls:
    """Calls without a result, in order; of several with one id, the first is answered first."""

    __slots__ = ("_count", "_places", "calls")

    def __init__(self) -> None:
        self.calls: dict[int, JSONObject] = {}
        self._count = 0
        self._places: dict[str, deque[int]] = {}

    def add(self, call: JSONObject) -> None:
        self.calls[self._count] = call
        self._places.setdefault(_key(call), deque()).append(self._count)
        self._count += 1

    def answered(self, output: JSONObject) -> bool:
        """Whether a call waited for the result; it does no more."""
        places = self._places.get(_key(output))
        if not places:
            return False
        del self.calls[places.popleft()]
        return True


def _is_whole(item: JSONObject) -> bool:
    """Whether an output has what it needs: what is carried along may lack it."""
    return item["type"] in OUTPUTS or ("call_id" in item and "output" in item)


def _key(item: JSONObject) -> str:
    """Return the id of a call; what is carried along may have something else there."""
    call_id = answered_id(item)
    return call_id if isinstance(call_id, str) else f"\0{to_text(call_id)}"


def has_seal(messages: Sequence[Message]) -> bool:
    """Whether the history has reasoning that a server of this dialect encrypted."""
    parts = (part for message in messages for part in message.content)
    return any(isinstance(part, Reasoning) and part.encrypted and _is_ours(part) for part in parts)


def _is_ours(part: Reasoning) -> bool:
    return part.origin is not None and part.origin.dialect == NAME


def _is_null(result: ToolResult) -> bool:
    """Whether the wire had a null for an output: it is among the fields that the decoder did not take."""
    return result.extra is not None and "output" in result.extra.fields


def _is_plain(item: JSONObject) -> bool:
    return item.keys() == {"type", "text"} and item["type"] == "input_text"


def _content(encoded: list[JSONObject], spelled: str) -> JSONObject:
    """Return the content of a message, spelled as it was; a stranger's lone text is a string."""
    if spelled in ("absent", "null") and not encoded:
        return {} if spelled == "absent" else {"content": None}
    if spelled == "string" and not encoded:
        return {"content": ""}
    if spelled == "string" and len(encoded) == 1 and _is_plain(encoded[0]):
        return {"content": encoded[0]["text"]}
    return {"content": encoded}


def _mark_error(parts: list[tuple[str, Part]], at: str) -> list[tuple[str, Part]]:
    where, first = parts[0] if parts else (at, None)
    if isinstance(first, Text):
        return [(where, replace(first, text=TOOL_ERROR + first.text)), *parts[1:]]
    return [(at, Text(text=TOOL_ERROR)), *parts]
