"""Encodes messages of a request or an answer. One message holds text, images and tool calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.hosted_text import hosted_words
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import kind_of, name_of
from xenoglot.dialects.ollama.extras import FAMILY, own_fields
from xenoglot.dialects.ollama.media import encode_media
from xenoglot.dialects.ollama.request.message_decoder import TOOL_ERROR
from xenoglot.dialects.ollama.tool_calls import encode_call
from xenoglot.dialects.ollama.tools import tool_name
from xenoglot.model.content import (
    Audio,
    File,
    HostedCall,
    HostedResult,
    Image,
    Nested,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Message

    Placed = tuple[str, Part]
    """A part, and its path."""

PARAGRAPH = "\n\n"

_JOINTS = {"system": PARAGRAPH, "developer": PARAGRAPH, "user": PARAGRAPH, "tool": "\n", "assistant": ""}
"""What stands between the texts of one turn, which the wire holds as one."""

_RANKS = {Reasoning: 0, Image: 1, Audio: 1, ToolCall: 3}
_WORDY = (Text, Refusal, Opaque, File)
_WORDS = 2
"""The order in which the parts of a message are read from its fields."""


class MessageEncoder:
    """The encoder of one request's messages. Results contain the name of their tool: chat templates read it."""

    def __init__(self, crossing: EncodeContext) -> None:
        self._crossing = crossing
        self._losses = crossing.losses
        self._names: dict[str, str] = {}  # of the tools called, by the ids of the calls

    def encode(self, messages: Sequence[Message]) -> list[JSONObject]:
        """Return the wire's messages."""
        written = [self._message(message, f"$.messages[{index}]") for index, message in enumerate(messages)]
        return [wire for turn in written for wire in turn]

    def _message(self, message: Message, where: str) -> list[JSONObject]:
        for name in ("name", "id"):
            if getattr(message, name) is not None:
                self._losses.dropped(where, name, "a message has none")
        own_role = _own_message(message)
        if own_role is not None:
            return [own_role]
        parts = [(f"{where}.content[{index}]", part) for index, part in enumerate(message.content)]
        results = [self._result(at, part, message, where) for at, part in parts if isinstance(part, ToolResult)]
        rest = [(at, part) for at, part in parts if not isinstance(part, ToolResult)]
        if not results:
            return [self._turn(rest, message, where)]
        if not all(isinstance(part, ToolResult) for part in message.content[: len(results)]):  # pitfall-4
            self._losses.approximated(where, "order", "the results of tools come first")
        return [*results, self._turn(rest, message, where)] if rest else results

    def _turn(self, parts: Sequence[Placed], message: Message, where: str) -> JSONObject:
        role = {"developer": "system", "tool": "user"}.get(message.role, message.role)
        if message.role == "developer":
            self._losses.approximated(where, "role", "`developer` is written as `system`")
        for at, part in parts:
            if isinstance(part, ToolCall):
                self._names[part.id] = tool_name(part.name, part.namespace, at, self._crossing)
        note_joined(parts, where, self._losses)
        fields = encode_parts(parts, _JOINTS[message.role], where, self._crossing)
        return self._with_form({"role": role, **fields}, message, where)

    def _result(self, at: str, result: ToolResult, message: Message, where: str) -> JSONObject:
        form = form_of(message.extra, FAMILY)
        own = own_fields(result.extra, at, self._losses, FAMILY)
        if result.cache is not None:
            self._losses.dropped(at, "cache", "the server decides what it caches")
        if result.kind == "custom":
            self._losses.emulated(at, "kind", "a custom tool is written as a function of one string")
        parts = [(f"{at}.content[{index}]", part) for index, part in enumerate(result.content)]
        note_joined(parts, at, self._losses)
        fields = {"role": "tool", **encode_parts(parts, _JOINTS["tool"], at, self._crossing), **own}
        if result.is_error:
            fields["content"] = TOOL_ERROR + fields["content"]
            if not self._crossing.home:
                self._losses.emulated(at, "is_error", f"the text begins with `{TOOL_ERROR.strip()}`")
        name = result.name
        if not self._crossing.home:
            name = self._names.get(result.call_id) or (name and tool_name(name, None, at, self._crossing))
        if name is not None:
            fields["tool_name"] = name
        if "derived" not in form:
            fields["tool_call_id"] = result.call_id
        return self._with_form(fields, message, where) if message.role == "tool" else fields

    def _with_form(self, fields: JSONObject, message: Message, where: str) -> JSONObject:
        """Return the fields spelled as they came, with the unknown ones."""
        form, own = form_of(message.extra, FAMILY), own_fields(message.extra, where, self._losses, FAMILY)
        if "role" in form:
            fields["role"] = form["role"]
        if not fields["content"] and (form.get("words") == "absent" or "content" in own):
            del fields["content"]
        return {**form.get("blanks", {}), **own, **fields}


def note_joined(parts: Sequence[Placed], where: str, losses: Losses) -> None:
    """Record that a turn has more texts than the one field for them can separate, and what no request can express."""
    words = [part for _, part in parts if isinstance(part, _WORDY) and (not isinstance(part, Text) or part.text)]
    thoughts = [part for _, part in parts if isinstance(part, Reasoning)]
    if len(words) > 1 or len(thoughts) > 1:
        losses.approximated(where, "content", "its texts are joined")
    for at, part in parts:
        if isinstance(part, Text) and part.logprobs:
            losses.dropped(at, "logprobs", "a request has none")


def encode_parts(
    parts: Sequence[Placed], joint: str, where: str, crossing: EncodeContext, first: int = 0
) -> JSONObject:
    """Return the fields that hold `parts`; `content` always, empty where there are no words.

    `first` is the position of the first call among those of the answer.
    """
    losses = crossing.losses
    ranks = [_RANKS.get(type(part), _WORDS) for _, part in parts]
    if ranks != sorted(ranks):
        losses.approximated(where, "order", "reasoning comes first, then images, then words, and calls last")
    thoughts = [thought_of(part, at, losses) for at, part in parts if isinstance(part, Reasoning)]
    media = [data for at, part in parts if isinstance(part, Image | Audio) for data in _media(part, at, losses)]
    words = [text for at, part in parts if (text := words_of(part, at, losses))]
    calls = [(at, part) for at, part in parts if isinstance(part, ToolCall)]
    fields: JSONObject = {"content": joint.join(words)}
    if any(thoughts):
        fields["thinking"] = "".join(thoughts)
    if media:
        fields["images"] = media
    if calls:
        fields["tool_calls"] = [_call(call, place, at, crossing) for place, (at, call) in enumerate(calls, first)]
    return fields


def is_readable(part: Part, where: str, losses: Losses) -> bool:
    """Return whether clients can read a part of an answer; what they cannot read is a loss.

    That is an image, a sound without words, and what a tool of the provider did.

    `images` in an answer are in the documentation (`docs/openapi.yaml`), but python's SDK fails on them.
    """
    if isinstance(part, HostedCall | HostedResult):
        losses.dropped(where, name_of(part), "an answer holds the model's words and calls only")
        return False
    if not isinstance(part, Image | Audio) or (isinstance(part, Audio) and part.transcript is not None):
        return True
    losses.dropped(where, name_of(part), "clients fail on one in an answer")
    return False


def thought_of(part: Reasoning, where: str, losses: Losses) -> str:
    """Return what can be shown of reasoning: its words and its summary; a signature cannot be passed on."""
    own_fields(part.extra, where, losses, FAMILY)
    for name in ("signature", "encrypted", "id"):
        if getattr(part, name) is not None:
            losses.dropped(where, name, "the dialect has no such field")
    if part.summary is not None:
        losses.approximated(where, "summary", "written as the reasoning itself")
    return PARAGRAPH.join(text for text in (part.text, *(part.summary or ())) if text)


def words_of(part: Part, where: str, losses: Losses) -> str | None:
    """Return the words of a part, and `None` for one that has none or goes elsewhere; the inexpressible is a loss."""
    text: str | None = None
    match part:
        case Text():
            note_text(part, where, losses)
            text = part.text
        case Refusal():
            own_fields(part.extra, where, losses, FAMILY)
            losses.approximated(where, "refusal", "written as words")
            text = part.text
        case Audio(transcript=str(text)):
            own_fields(part.extra, where, losses, FAMILY)
            losses.approximated(where, "audio", "written as its transcript")
        case File(source=Plain() | Nested()):
            text = _file_text(part, where, losses)
        case Opaque(text=None):
            losses.dropped(where, kind_of(part), f"only {part.dialect} has it")
        case Opaque(text=str(text)):
            losses.approximated(where, kind_of(part), "written as its text")
        case HostedCall() | HostedResult():
            words = hosted_words(part, where, losses)
            text = None if words is None else words.text
        case Reasoning() | Image() | Audio() | ToolCall():
            pass  # these have fields of their own
        case _:
            losses.dropped(where, name_of(part), "a message holds words, images and calls only")
    return text


def note_text(part: Text, where: str, losses: Losses) -> None:
    """Record what a text has in addition to its words."""
    own_fields(part.extra, where, losses, FAMILY)
    for index, citation in enumerate(part.citations):
        losses.dropped(f"{where}.citations[{index}]", citation.kind, "a message cannot cite")
    if part.cache is not None:
        losses.dropped(where, "cache", "the server decides what it caches")


def _own_message(message: Message) -> JSONObject | None:
    """Return a message of a role that only this dialect knows."""
    match message.content:
        case (Opaque(dialect=dialect, data={"role": str()} as data),) if dialect == FAMILY:
            own: JSONObject = data
            return own
        case _:
            return None


def _media(part: Image | Audio, where: str, losses: Losses) -> list[str]:
    if isinstance(part, Audio) and part.transcript is not None:
        return []
    data = encode_media(part, where, losses)
    return [] if data is None else [data]


def _call(call: ToolCall, place: int, where: str, crossing: EncodeContext) -> JSONObject:
    if call.cache is not None:
        crossing.losses.dropped(where, "cache", "the server decides what it caches")
    name = tool_name(call.name, call.namespace, where, crossing)
    return encode_call(call, place, name, where, crossing.losses)


def _file_text(part: File, where: str, losses: Losses) -> str:
    losses.approximated(where, "file", "written as its text")
    own_fields(part.extra, where, losses, FAMILY)
    for name in ("context", "citable", "cache"):
        if getattr(part, name) is not None:
            losses.dropped(where, name, "a message has no such field")
    if part.name is not None:
        losses.emulated(where, "name", "stands in the line before its text")
    match part.source:
        case Plain(text=text):
            pass
        case Nested(parts=parts):
            text = "\n".join(inner.text for inner in parts if isinstance(inner, Text))
        case _:
            text = ""
    return text if part.name is None else f"{part.name}\n{text}"
