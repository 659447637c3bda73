"""Encodes the open block of a stream, and counts the blocks before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.converse.citations import encode_citation
from xenoglot.dialects.converse.extras import NAME
from xenoglot.dialects.converse.parts.encoder import SUMMARY_BREAK, PartEncoder
from xenoglot.model.content import Audio, Citation, Part, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    CitationDelta,
    Event,
    OpaqueDelta,
    ReasoningDelta,
    SignatureDelta,
    TextDelta,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

WHERE: Final = "$.candidates[0]"
START, DELTA, STOP = "contentBlockStart", "contentBlockDelta", "contentBlockStop"

_FREE_TEXT: Final = ('{"input":"', '"}')
"""What stands around the free text of a custom tool."""


def wire_event(name: str, body: JSONObject) -> ServerSentEvent:
    """Return one event."""
    return ServerSentEvent(encode_json(body), name)


class BlockEncoder:
    """Encodes one block after the other. A part that the dialect cannot hold is not written at all."""

    __slots__ = ("_citations", "_count", "_grew", "_losses", "_part", "_parts", "_place", "_summary", "_wrote", "begun")

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._parts = PartEncoder(losses, home=False)
        self._count = 0
        self._place = -1  # of the last part begun, those included that are not written
        self._part: Part | None = None  # the open block, as it was when it opened
        self._grew = self._wrote = False
        self._citations = 0
        self._summary: int | None = None
        self.begun: list[Part] = []
        """The parts begun so far that the reason of the end may depend on."""

    @property
    def _where(self) -> str:
        return f"{WHERE}.content[{self._place}]"

    def begin(self, part: Part) -> Sequence[ServerSentEvent]:
        """Open a block; what the part already holds becomes its first deltas."""
        self._place += 1
        self._part = part
        self._grew = self._wrote = False
        self._citations, self._summary = 0, None
        if isinstance(part, (ToolCall, Refusal)):
            self.begun.append(part)
        match part:
            case ToolCall():
                return self._call(part)
            case Text(text=text, citations=citations):
                self._losses.carry(part.extra, self._where, NAME)
                return (*self._text(text), *self._cite(*citations))
            case Refusal(text=text):
                self._losses.approximated(self._where, "refusal", "written as text")
                return self._text(text)
            case Reasoning(redacted=False, text=text, summary=None):
                return self._reason({"text": text}) if text else ()
            case _:
                return ()

    def _call(self, part: ToolCall) -> Sequence[ServerSentEvent]:
        block = self._parts.block(replace(part, arguments=""), self._where, "assistant") or {}
        call: JSONObject = {key: value for key, value in block["toolUse"].items() if key != "input"}
        start = self._event(START, start={"toolUse": call})
        if part.kind == "custom":
            return (start, *self._argue(_FREE_TEXT[0] + _escaped(part.arguments)))
        self._grew = bool(part.arguments)
        return (start, *self._argue(part.arguments))

    def _event(self, name: str, **fields: JSON) -> ServerSentEvent:
        self._wrote = True
        return wire_event(name, {**fields, "contentBlockIndex": self._count})

    def _text(self, text: str) -> Sequence[ServerSentEvent]:
        if not text:
            return ()
        self._grew = True
        return (self._event(DELTA, delta={"text": text}),)

    def _argue(self, text: str) -> Sequence[ServerSentEvent]:
        return (self._event(DELTA, delta={"toolUse": {"input": text}}),) if text else ()

    def _reason(self, fields: JSONObject) -> Sequence[ServerSentEvent]:
        self._grew = True
        return (self._event(DELTA, delta={"reasoningContent": fields}),)

    def grow(self, event: Event) -> Sequence[ServerSentEvent]:
        """Return what a delta makes."""
        match self._part, event:
            case (Text() | Refusal(), TextDelta(text=text, logprobs=logprobs)):
                if logprobs:
                    self._losses.dropped(self._where, "logprobs", "the dialect has none")
                return self._text(text)
            case (Text(), CitationDelta(citation=citation)):
                return self._cite(citation)
            case (Reasoning(), ReasoningDelta(text=text, summary=summary)):
                return self._think(text, summary)
            case (Reasoning() as part, SignatureDelta(signature=signature)):
                self._part = replace(part, signature=signature)
                return ()
            case (ToolCall(kind=kind), ArgumentsDelta(text=text)):
                self._grew = self._grew or bool(text)
                return self._argue(_escaped(text) if kind == "custom" else text)
            case _:
                return self._speak(event)

    def _speak(self, event: Event) -> Sequence[ServerSentEvent]:
        if not isinstance(self._part, Audio) or not isinstance(event, AudioDelta):
            return ()
        self._losses.approximated(self._where, "audio", "only its transcript is written")
        return self._text(event.transcript)

    def _think(self, text: str, summary: int | None) -> Sequence[ServerSentEvent]:
        if summary is not None:
            self._losses.approximated(self._where, "summary", "written as the reasoning itself")
            if self._summary not in (None, summary) or (self._summary is None and self._grew):
                text = SUMMARY_BREAK + text
            self._summary = summary
        return self._reason({"text": text}) if text else ()

    def _cite(self, *citations: Citation) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        for citation in citations:
            encoded = encode_citation(citation, f"{self._where}.citations[{self._citations}]", self._losses)
            self._citations += 1
            events.append(self._event(DELTA, delta={"citation": encoded}))
        return events

    def carry(self, event: OpaqueDelta) -> Sequence[ServerSentEvent]:
        """Return an event that only its own dialect understands, if that is this one."""
        if event.dialect != NAME or not isinstance(event.data, dict) or event.name is None:
            self._losses.dropped("$", event.name or "event", f"only {event.dialect} has it")
            return ()
        if event.name == DELTA:
            return (self._event(DELTA, delta=event.data["delta"]),) if self._wrote else ()
        return (wire_event(event.name, event.data),)

    def end(self, whole: Part | None) -> Sequence[ServerSentEvent]:
        """Close the block; `whole` may have what no delta had."""
        part, self._part = self._part, None
        if part is None:
            return ()
        if isinstance(whole, Text):
            self._losses.carry(whole.extra, self._where, NAME)
        last = [*self._rest(part, part if whole is None else whole)]
        if not self._wrote and isinstance(part, (Text, Refusal)):
            last.append(self._event(DELTA, delta={"text": ""}))
        elif not self._wrote and isinstance(part, Reasoning):
            last += self._reason({"text": ""})
        if not self._wrote:
            return last
        last.append(self._event(STOP))
        self._count += 1
        self._wrote = False
        return last

    def _rest(self, part: Part, whole: Part) -> Sequence[ServerSentEvent]:
        """Return what of the whole block was not written."""
        match whole:
            case Text(text=text, citations=citations):
                return (*(() if self._grew else self._text(text)), *self._cite(*citations[self._citations :]))
            case ToolCall(kind="custom", arguments=text):
                return self._argue(("" if self._grew else _escaped(text)) + _FREE_TEXT[1])
            case ToolCall(arguments=text):
                return () if self._grew else self._argue(text)
            case Reasoning() if isinstance(part, Reasoning):
                return self._reasoned(whole)
            case Refusal() | Audio() if self._grew:
                return ()
            case _:
                return self._as_a_whole(whole)

    def _reasoned(self, whole: Reasoning) -> Sequence[ServerSentEvent]:
        block = self._parts.block(whole, self._where, "assistant") or {}
        content = block.get("reasoningContent", {})
        if "redactedContent" in content:
            return self._reason(content)
        inner: JSONObject = content.get("reasoningText", {})
        text = () if self._grew or not inner.get("text") else self._reason({"text": inner["text"]})
        return (*text, *(self._reason({"signature": inner["signature"]}) if "signature" in inner else ()))

    def _as_a_whole(self, part: Part) -> Sequence[ServerSentEvent]:
        """Return the events of a block that does not grow: an image, or one that only this dialect understands."""
        block = self._parts.block(part, self._where, "assistant")
        match block:
            case None:
                return ()
            case {"text": str() as text}:
                return self._text(text)
            case {"image": {"source": source, **rest}}:
                return (
                    self._event(START, start={"image": rest}),
                    self._event(DELTA, delta={"image": {"source": source}}),
                )
            case {"toolUse": {"input": value, **rest}}:
                return (self._event(START, start={"toolUse": rest}), *self._argue(encode_json(value).decode()))
            case {"toolResult": {"content": content, **rest}}:
                return (
                    self._event(START, start={"toolResult": rest}),
                    self._event(DELTA, delta={"toolResult": content}),
                )
            case _:
                self._losses.dropped(
                    self._where, next(iter(block), "block"), "a stream of the dialect has no such block"
                )
                return ()


def _escaped(text: str) -> str:
    """Return a text as it stands inside a JSON string."""
    return encode_json(text)[1:-1].decode()
