"""Encodes the blocks of an answer as stream events: the start, growth and end of each inside its item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import Losses, form_of
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.codec.target import Target
from xenoglot.dialects.responses.extras import NAME
from xenoglot.dialects.responses.hosted.decoder import IMAGE
from xenoglot.dialects.responses.item_encoder import encode_item, is_generated, is_message, item_id
from xenoglot.dialects.responses.output_text import encode_annotation, encode_logprobs
from xenoglot.dialects.responses.parts import encode_said
from xenoglot.dialects.responses.stream.block_decoder import BlockDecoder, missing
from xenoglot.dialects.responses.stream.event_writer import DeltaTemplate
from xenoglot.model.content import (
    CompactedHistory,
    HostedCall,
    HostedResult,
    Opaque,
    Origin,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.events import ArgumentsDelta, CitationDelta, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.dialects.responses.stream.event_writer import EventWriter
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event, Piece
    from xenoglot.model.json import JSON, JSONObject


_BODIES = {"function": ("function_call_arguments", "arguments"), "custom": ("custom_tool_call_input", "input")}
"""The name in the events of each kind of call, and the key under which they have the whole of it."""


class ItemContext:
    """The item that is being encoded: its id and index, and the contents written so far."""

    __slots__ = ("contents", "events", "index", "item_id", "losses")

    def __init__(self, index: int, losses: Losses, events: EventWriter) -> None:
        self.index = index
        self.losses = losses
        self.events = events
        self.item_id = ""
        self.contents = 0  # of a message, that are over

    def event(self, kind: str, /, **fields: JSON) -> ServerSentEvent:
        """Return an event about the item."""
        return self.events.event(f"response.{kind}", item_id=self.item_id, output_index=self.index, **fields)

    def shape(self, kind: str, **place: int) -> DeltaTemplate:
        """Return the shape of the item's deltas of one kind."""
        return DeltaTemplate(f"response.{kind}.delta", item_id=self.item_id, output_index=self.index, **place)

    def add(self, item: JSONObject, answer_id: str) -> ServerSentEvent:
        """Return the event that opens the item, which is `item` by now."""
        named = item.get("id")
        self.item_id = named if isinstance(named, str) else item_id(str(item.get("type")), answer_id, self.index)
        return self.events.event("response.output_item.added", output_index=self.index, item=item)


class Block:
    """A block that is written when complete, because it cannot grow on this wire or is part of its item."""

    shape: DeltaTemplate | None = None
    grows: type[Piece] | None = None
    """What it grows by where its shape is all that is needed."""

    def __init__(self, header: Part, place: ItemContext, where: str) -> None:
        self.growth = BlockDecoder(header)
        self.place = place
        self._where = where

    @property
    def pulse(self) -> DeltaTemplate | None:
        """What the block grows by at this moment."""
        return self.shape

    def begin(self) -> list[ServerSentEvent]:
        """Return the events of the start."""
        return []

    def grow(self, event: Event) -> list[ServerSentEvent]:
        """Take a delta; return what it makes."""
        self.growth.add(event)
        return []

    def frame(self, piece: Piece) -> bytes | None:
        """Take a piece of the kind that it grows by, its text and nothing else; return the frame of what it makes."""
        if self.shape is None:
            return None
        self.growth.note(piece)
        return self.place.events.frame(self.shape, piece.text)

    def whole(self, told: Part | None) -> Part:
        """Return the part as it is at the end; `told` is the part that the end sends, if any."""
        return self.growth.part() if told is None else told

    def end(self, whole: Part) -> list[ServerSentEvent]:
        """Return the events of the end, and before them those of what no delta had of the `whole`."""
        late = missing(self.growth.part(), whole)
        return [*(event for delta in late for event in self.grow(delta)), *self._finish(whole)]

    def _finish(self, part: Part) -> list[ServerSentEvent]:  # noqa: ARG002  other blocks look at it
        return []

    def _first(self, *deltas: Event) -> list[ServerSentEvent]:
        """Write what the header knew already as the deltas it would have been."""
        return [event for delta in deltas for event in self.write(delta)]

    def write(self, event: Event) -> list[ServerSentEvent]:  # noqa: ARG002  other blocks look at it
        """Return what a delta makes that the block has grown by."""
        return []


class ContentBlock(Block):
    """A content of a message that is written when complete: an audio transcript, text for another dialect's part."""

    def _finish(self, part: Part) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        for content in contents_of(part, self._where, self.place.losses):
            at = self.place.contents
            opening = {**content, "text": ""} if content.get("type") == "output_text" else content
            events.append(self.place.event("content_part.added", content_index=at, part=opening))
            if opening is not content:
                shape = self.place.shape("output_text", content_index=at)
                if content["text"]:
                    events.append(self.place.events.piece(shape, content["text"]))
                done = self.place.event("output_text.done", content_index=at, text=content["text"], logprobs=[])
                events.append(done)
            events.append(self.place.event("content_part.done", content_index=at, part=content))
            self.place.contents += 1
        return events


class TextBlock(Block):
    """A `Text` or a `Refusal`: one content of a message."""

    grows = TextDelta

    def __init__(self, header: Text | Refusal, place: ItemContext, where: str) -> None:
        super().__init__(header, place, where)
        self._kind, self._key = ("refusal", "refusal") if isinstance(header, Refusal) else ("output_text", "text")
        self._at = place.contents
        self._annotations = 0
        self.shape = place.shape(self._kind, content_index=self._at)

    def begin(self) -> list[ServerSentEvent]:
        """Return the start of the content, and the words known by then."""
        header = self.growth.header
        (content,) = contents_of(unsaid(header), self._where, Losses())
        added = self.place.event("content_part.added", content_index=self._at, part=content)
        first: list[Event] = []
        if isinstance(header, (Text, Refusal)) and (header.text or header.logprobs):
            first.append(TextDelta(text=header.text, logprobs=header.logprobs))
        if isinstance(header, Text):
            first += [CitationDelta(citation=citation) for citation in header.citations]
        return [added, *self._first(*first)]

    def grow(self, event: Event) -> list[ServerSentEvent]:
        """Take a delta; return what it makes."""
        self.growth.add(event)
        return self.write(event)

    def write(self, event: Event) -> list[ServerSentEvent]:
        """Return what a delta makes that the block has grown by."""
        match event:
            case TextDelta(text=text, logprobs=()) if self.shape is not None:
                return [self.place.events.piece(self.shape, text)]
            case TextDelta(text=text, logprobs=logprobs):
                said = {"logprobs": encode_logprobs(logprobs, self._where, self.place.losses)}
                told = said if self._kind == "output_text" else {}
                return [self.place.event(f"{self._kind}.delta", content_index=self._at, delta=text, **told)]
            case CitationDelta(citation=citation):
                where = f"{self._where}.citations[{self._annotations}]"
                annotation = encode_annotation(citation, self.growth.length(), where, self.place.losses)
                if annotation is None:
                    return []
                self._annotations += 1
                at = {"content_index": self._at, "annotation_index": self._annotations - 1}
                return [self.place.event("output_text.annotation.added", **at, annotation=annotation)]
            case _:
                return []

    def _finish(self, part: Part) -> list[ServerSentEvent]:
        (content,) = contents_of(part, self._where, self.place.losses) or contents_of(
            unsaid(self.growth.header), self._where, Losses()
        )
        said: JSONObject = {self._key: content[self._key]}
        if self._kind == "output_text":
            said["logprobs"] = content.get("logprobs") or []
        self.place.contents += 1
        return [
            self.place.event(f"{self._kind}.done", content_index=self._at, **said),
            self.place.event("content_part.done", content_index=self._at, part=content),
        ]


class CallBlock(Block):
    """A `ToolCall`: a separate item."""

    grows = ArgumentsDelta

    def __init__(self, header: ToolCall, place: ItemContext, where: str) -> None:
        super().__init__(header, place, where)
        self._kind, self._key = _BODIES[header.kind]
        self._grown = ""
        self.shape = place.shape(self._kind)

    def begin(self) -> list[ServerSentEvent]:
        """Return the arguments known at the start."""
        header = self.growth.header
        text = header.arguments if isinstance(header, ToolCall) else ""
        return self._first(ArgumentsDelta(text=text)) if text else []

    def grow(self, event: Event) -> list[ServerSentEvent]:
        """Take a delta; return what it makes."""
        self.growth.add(event)
        return self.write(event)

    def write(self, event: Event) -> list[ServerSentEvent]:
        """Return what a delta makes that the block has grown by."""
        if not isinstance(event, ArgumentsDelta) or self.shape is None:
            return []
        return [self.place.events.piece(self.shape, event.text)]

    def _finish(self, part: Part) -> list[ServerSentEvent]:
        """Return the end, and before it what stands for no arguments at all."""
        item = encode_item([part], "", self.place.index, [self._where], self.place.losses) or {}
        said = item.get(self._key)
        text = said if isinstance(said, str) else part.arguments if isinstance(part, ToolCall) else ""
        late = text if isinstance(part, ToolCall) and not part.arguments else ""
        events = self.write(ArgumentsDelta(text=late)) if late else []
        named = {"name": part.name} if isinstance(part, ToolCall) and self._key == "arguments" else {}
        return [*events, self.place.event(f"{self._kind}.done", **named, **{self._key: text})]


class ImageBlock(Block):
    """An image that the model made: a separate item, with the events of a tool that makes one."""

    def begin(self) -> list[ServerSentEvent]:
        """Return the event of the start; none where the image cannot be written."""
        return [self.place.event(f"{IMAGE}.in_progress")] if self.place.item_id else []


class ReasoningBlock(Block):
    """A `Reasoning`: a separate item; its text is a content, each of its summaries a part (pitfall-112)."""

    def __init__(self, header: Reasoning, place: ItemContext, where: str) -> None:
        super().__init__(header, place, where)
        self._content = place.shape("reasoning_text", content_index=0)
        self._has_content = False
        self._summary: DeltaTemplate | None = None
        self._summaries = 0  # those that have begun; the last of them is open
        self._said: list[str] = []  # of the last of them

    @property
    def pulse(self) -> DeltaTemplate | None:
        """The template of the deltas by which the reasoning grows now."""
        return self._summary if self._summary is not None or not self._has_content else self._content

    def begin(self) -> list[ServerSentEvent]:
        """Return the reasoning known at the start."""
        header = self.growth.header
        if not isinstance(header, Reasoning):
            return []
        told = [ReasoningDelta(text=text, summary=index) for index, text in enumerate(header.summary or ())]
        return self._first(*([ReasoningDelta(text=header.text)] if header.text else []), *told)

    def grow(self, event: Event) -> list[ServerSentEvent]:
        """Take a delta; return what it makes."""
        self.growth.add(event)
        return self.write(event)

    def write(self, event: Event) -> list[ServerSentEvent]:
        """Return what a delta makes that the block has grown by."""
        match event:
            case ReasoningDelta(text=text, summary=None):
                return [*self._open_content(), self.place.events.piece(self._content, text)] if text else []
            case ReasoningDelta(text=text, summary=int(index)):
                return self._summarise(text, index)
            case _:
                return []

    def _open_content(self) -> list[ServerSentEvent]:
        if self._has_content:
            return []
        self._has_content = True
        empty = {"type": "reasoning_text", "text": ""}
        return [self.place.event("content_part.added", content_index=0, part=empty)]

    def _summarise(self, text: str, index: int) -> list[ServerSentEvent]:
        """Return more of a summary; one that is over grows in the whole item alone."""
        events: list[ServerSentEvent] = []
        while self._summaries <= index:
            events += [*self._close_summary(), *self._open_summary()]
        if index == self._summaries - 1 and self._summary is not None and text:
            self._said.append(text)
            events.append(self.place.events.piece(self._summary, text))
        return events

    def _open_summary(self) -> list[ServerSentEvent]:
        at, self._summaries, self._said = self._summaries, self._summaries + 1, []
        self._summary = self.place.shape("reasoning_summary_text", summary_index=at)
        empty = {"type": "summary_text", "text": ""}
        return [self.place.event("reasoning_summary_part.added", summary_index=at, part=empty)]

    def _close_summary(self, whole: Sequence[str] | None = None) -> list[ServerSentEvent]:
        if self._summary is None:
            return []
        at, self._summary = self._summaries - 1, None
        text = whole[at] if whole is not None and at < len(whole) else "".join(self._said)
        part = {"type": "summary_text", "text": text}
        return [
            self.place.event("reasoning_summary_text.done", summary_index=at, text=text),
            self.place.event("reasoning_summary_part.done", summary_index=at, part=part),
        ]

    def _finish(self, part: Part) -> list[ServerSentEvent]:
        if not isinstance(part, Reasoning):
            return []
        events = self._summarise("", len(part.summary) - 1) if part.summary else []
        events += self._close_summary(part.summary)
        if not self._has_content:
            return events
        content = {"type": "reasoning_text", "text": part.text or ""}
        return [
            *events,
            self.place.event("reasoning_text.done", content_index=0, text=part.text or ""),
            self.place.event("content_part.done", content_index=0, part=content),
        ]


class CompactionBlock(Block):
    """A `CompactedHistory`: a separate item, complete at its end."""

    def begin(self) -> list[ServerSentEvent]:
        """Return the event for the start of the summary."""
        return [self.place.event("compaction.compacting")]


def contents_of(part: Part, where: str, losses: Losses) -> list[JSONObject]:
    """Return the contents of a message that `part` is: one, or none if it cannot be expressed or the item had none."""
    if isinstance(part, Opaque) and part.dialect == NAME:
        contents: list[JSONObject] = part.data["content"] if is_content(part) else []
        return contents
    if not is_content(part):
        return []
    extra = None if isinstance(part, Opaque) else part.extra
    mark: JSONObject = form_of(extra, NAME).get("item", {})
    if mark.get("content") in ("empty", "null", "absent") and not getattr(part, "text", ""):
        return []
    encoded = encode_said(part, where, EncodeContext(losses, Target(), home=True), answer=True)
    return [] if encoded is None else [encoded]


def is_content(part: Part) -> bool:
    """Whether `part` is a content of a message, if anything; any other is an item of its own."""
    if isinstance(part, Opaque) and part.dialect == NAME:
        return is_message(part)
    items = (Reasoning, ToolCall, ToolResult, HostedCall, HostedResult, CompactedHistory)
    return not (isinstance(part, items) or is_generated(part))


def unsaid(part: Part) -> Part:
    """Return `part` as it is before it has any content."""
    match part:
        case Text():
            return replace(part, text="", logprobs=(), citations=())
        case Refusal():
            return replace(part, text="", logprobs=())
        case ToolCall() | HostedCall():
            return replace(part, arguments="")
        case CompactedHistory():
            return replace(part, text=None, encrypted="", signature=None, origin=Origin(dialect=NAME))
        case Reasoning():
            return replace(part, text=None, summary=(), signature=None, encrypted=None, redacted=False)
        case _:
            return part
