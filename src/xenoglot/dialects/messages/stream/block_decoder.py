"""Decodes one block of a stream: the meaning of its deltas, and of the complete block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.framing.event_template import TemplateHint
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.json.tool_arguments import arguments_of
from xenoglot.dialects.messages.citations import decode_citation
from xenoglot.dialects.messages.extras import NAME
from xenoglot.dialects.messages.hosted.decoder import CALLS
from xenoglot.dialects.messages.part_decoder import decode_part, opaque, sealed
from xenoglot.errors import WireError
from xenoglot.model.content import CompactedHistory, HostedCall, Opaque, Origin, Part, Reasoning, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    OpaqueDelta,
    ReasoningDelta,
    SignatureDelta,
    TextDelta,
)
from xenoglot.model.fold import unfold_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject


_CALLS = ("tool_use", *CALLS)

_DELTAS = ("citations_delta", "compaction_delta", "input_json_delta", "signature_delta", "thinking_delta")
"""Kinds of deltas that we know: in a block of another kind they are ignored, as the official accumulators do."""


def begin(content: JSONObject, path: str, index: int, answer_id: str) -> tuple[BlockDecoder, Sequence[Event]]:
    """Return the block that a `content_block_start` opens, and its first events.

    Content that a server put into the start becomes the first delta, as if it had come later.
    """
    kind = content.get("type")
    if kind == "thinking":
        return _begin_thinking(content, path, index)
    known = {**content}
    if kind == "text":
        known |= {"text": ""}
        if known.get("citations") == []:  # where the whole answer has a list, the deltas will fill it
            del known["citations"]
    elif kind in _CALLS:
        known |= {"input": {}}
    block = BlockDecoder(index, decode_part(known, path, answer_id), content)
    return block, (BlockStarted(part=block.header), *block.first())


def _begin_thinking(content: JSONObject, path: str, index: int) -> tuple[BlockDecoder, Sequence[Event]]:
    """Open a block of thinking; its signature is complete only at its end."""
    known = {key: value for key, value in content.items() if key != "signature"} | {"thinking": ""}
    part = decode_part(known, path)
    extra = part.extra if isinstance(part, Reasoning) else None
    fields = {} if extra is None else extra.fields
    header = Reasoning(
        text="",
        origin=Origin(dialect=NAME),
        extra=replace(extra, form={}) if extra is not None and fields else None,
    )
    block = BlockDecoder(index, header, content)
    return block, (BlockStarted(part=header), *block.first())


class BlockDecoder:
    """The open block at `index`, which started with `content`."""

    __slots__ = ("_content", "_pieces", "_signature", "_stray", "header", "index")

    def __init__(self, index: int, header: Part, content: JSONObject) -> None:
        self.index = index
        self.header = header
        self._content = content
        self._pieces: list[str] = []  # of thinking, and of the JSON of a call
        self._signature: JSON = content.get("signature")
        self._stray: list[str] = []  # text that has no place in this block

    def first(self) -> Sequence[Event]:
        """Return the deltas that the start already held."""
        match self.header, self._content:
            case Text(), {"text": str() as text} if text:
                return (TextDelta(text=text),)
            case Reasoning(redacted=False), {"thinking": str() as text} if text:
                self._pieces.append(text)
                return (ReasoningDelta(text=text),)
            case _:
                return ()

    @property
    def lesson(self) -> TemplateHint | None:
        """How a piece of text grows the block, if it does."""
        match self.header:
            case Text():
                return TemplateHint(("delta", "text"), TextDelta)
            case Reasoning():
                return TemplateHint(("delta", "thinking"), partial(self._more, ReasoningDelta))
            case ToolCall() | HostedCall():
                return TemplateHint(("delta", "partial_json"), partial(self._more, ArgumentsDelta))
            case _:
                return None

    def _more(self, delta: type[ReasoningDelta | ArgumentsDelta], text: str) -> Event:
        self._pieces.append(text)
        return delta(text)

    def grow(self, data: JSONObject, delta: Reader) -> Sequence[Event]:
        """Return the events of a delta; one that does not belong to such a block is carried unchanged."""
        kind = delta.take("type", str)
        events: Sequence[Event] = ()
        match self.header, kind:
            case Text(), "text_delta":
                events = (TextDelta(text=delta.need("text", str)),)
            case Text(), "citations_delta":
                citation = decode_citation(delta.need("citation", dict), delta.at("citation"))
                events = (CitationDelta(citation=citation),)
            case Reasoning(), "thinking_delta":
                self._pieces.append(delta.need("thinking", str))
                events = (ReasoningDelta(text=self._pieces[-1]),)
            case Reasoning(), "signature_delta":
                self._signature = delta.need("signature", str)
                if sealed(Reasoning(), self._signature).origin == self.header.origin:
                    events = (SignatureDelta(signature=self._signature),)
            case ToolCall() | HostedCall(), "input_json_delta":
                self._pieces.append(delta.need("partial_json", str))
                events = (ArgumentsDelta(text=self._pieces[-1]),) if self._pieces[-1] else ()
            case ((Opaque() | CompactedHistory()), _):
                return self._note(kind, delta, data)
            case _, "text_delta":  # held to the end: it must not be lost, nor grow another block (pitfall-96)
                self._stray.append(delta.need("text", str))
            case _:
                return () if kind in _DELTAS else (_carried(data),)
        return (*events, _carried(_emptied(data))) if delta.rest() else events

    def _note(self, kind: str | None, delta: Reader, data: JSONObject) -> Sequence[Event]:
        """Remember the growth of a block that only this dialect understands, and carry it."""
        if kind == "compaction_delta":
            self._content = {**self._content, **delta.rest()}
            return ()
        if kind == "input_json_delta":
            self._pieces.append(delta.need("partial_json", str))
        return (_carried(data),)

    def end(self) -> Sequence[Event]:
        """Return the end of the block, with the whole of it where the deltas do not make it up."""
        ended = self._ended()
        if not self._stray:
            return ended
        return (*ended, *unfold_part(Text(text="".join(self._stray))))

    def _ended(self) -> Sequence[Event]:
        match self.header:
            case ToolCall() | HostedCall() if not "".join(self._pieces) and (
                text := arguments_of(self._content.get("input") or {})
            ):
                return (ArgumentsDelta(text=text), BlockEnded())
            case Opaque():
                return (BlockEnded(part=self._whole()),)
            case CompactedHistory() as header:
                part = decode_part(self._content, "$.content_block")
                return (BlockEnded(part=None if part == header else part),)
            case Reasoning(redacted=False) as header:
                whole = sealed(replace(header, text="".join(self._pieces), origin=None), self._signature)
                return (BlockEnded(part=None if whole.origin == header.origin else whole),)
            case _:
                return (BlockEnded(),)

    def _whole(self) -> Opaque:
        content = self._content
        text = "".join(self._pieces)
        if text:
            try:
                content = {**content, "input": decode_json(text)}
            except WireError:
                content = {**content, "input": text}
        return opaque(content, answered=True)


def _carried(data: JSONObject) -> OpaqueDelta:
    return OpaqueDelta(dialect=NAME, data=data, name="content_block_delta")


def _emptied(data: JSONObject) -> JSONObject:
    """Return a delta without its text, which has been emitted: the rest of it is carried."""
    delta = {key: "" if key in ("text", "thinking", "partial_json") else value for key, value in data["delta"].items()}
    return {**data, "delta": delta}
