"""Encodes the open block of a stream, and counts the blocks before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.framing.sse import ServerSentEvent, around
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.messages.extras import NAME
from xenoglot.dialects.messages.hosted.decoder import CALLS
from xenoglot.dialects.messages.part_encoder import SUMMARY_BREAK, PartEncoder
from xenoglot.model.content import Audio, CompactedHistory, HostedCall, Part, Reasoning, Refusal, Text, ToolCall
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
    from xenoglot.model.content import Citation
    from xenoglot.model.events import Piece
    from xenoglot.model.json import JSONObject

WHERE = "$.candidates[0]"

_BEFORE, _END = around("content_block_delta")
_AFTER = b"}}" + _END

FREE_TEXT = ('{"input":"', '"}')
"""What stands around the free text of a custom tool."""

_DELTA = b'{"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":'
_GROWS = {
    "text": (b"text_delta", b"text"),
    "thinking": (b"thinking_delta", b"thinking"),
    "tool_use": (b"input_json_delta", b"partial_json"),
    **dict.fromkeys(CALLS, (b"input_json_delta", b"partial_json")),
}
"""Type of a block -> type of the delta that grows it, and the delta's field."""


def wire_event(body: JSONObject) -> ServerSentEvent:
    """Return one event; its name is its type (pitfall-84)."""
    return ServerSentEvent(encode_json(body), body["type"])


class BlockEncoder:
    """Encodes one block after the other. A part that the dialect cannot hold is not written at all."""

    __slots__ = (
        "_citations",
        "_count",
        "_framed",
        "_grew",
        "_losses",
        "_part",
        "_parts",
        "_place",
        "_prefix",
        "_signed",
        "_summary",
        "told",
    )

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._parts = PartEncoder(losses, home=False)
        self._count = 0
        self._place = -1  # of the last part begun, silent ones counted
        self._part: Part | None = None  # as it was when the block opened; `None` while none is open, or a silent one
        self._prefix: bytes | None = None  # of a delta, up to its text
        self._framed = b""  # the same in its frame
        self._grew = self._signed = False
        self._citations = 0
        self._summary: int | None = None
        self.told: list[Part] = []
        """The parts begun so far that the reason of the end may depend on."""

    @property
    def _where(self) -> str:
        return f"{WHERE}.content[{self._place}]"

    def begin(self, part: Part) -> Sequence[ServerSentEvent]:
        """Open a block; what the part already holds becomes its first deltas."""
        self._place += 1
        self._part, self._prefix = None, None
        self._grew = self._signed = False
        self._citations, self._summary = 0, None
        content = self._parts.block(_opening(part), self._where, "assistant")
        if content is None:
            return ()
        self._part = part
        if isinstance(part, (ToolCall, Refusal)):
            self.told.append(part)
        kind = content["type"]
        if kind in _GROWS:
            self._prefix = _DELTA % (self._count, *_GROWS[kind])
            self._framed = _BEFORE + self._prefix
        first = self._take_first(content, part)
        start = wire_event({"type": "content_block_start", "index": self._count, "content_block": content})
        made = (start, *self.write(first), *self._cite(*(part.citations if isinstance(part, Text) else ())))
        if isinstance(part, ToolCall | HostedCall):  # what stands around a free text is no growth of it
            self._grew = bool(part.arguments)
        return made

    def _take_first(self, content: JSONObject, part: Part) -> str:
        """Empty the block that is about to open of what grows in it, and return that."""
        match content:
            case {"type": "text", "text": text}:
                content["text"] = ""
                content.pop("citations", None)
                return str(text)
            case {"type": "thinking", "thinking": text}:
                content |= {"thinking": "", "signature": ""}
                return str(text)
            case {"type": "compaction"}:
                content |= {"content": None}
                content.pop("encrypted_content", None)
                return ""
            case {"type": "tool_use"} if isinstance(part, ToolCall):
                content["input"] = {}
                return self._arguments(part.arguments, FREE_TEXT[0])
            case {"input": _} if isinstance(part, HostedCall):
                content["input"] = {}
                return part.arguments
            case _:
                return ""

    def write(self, text: str) -> Sequence[ServerSentEvent]:
        """Return the delta that adds `text` to the open block."""
        if self._prefix is None or not text:
            return ()
        self._grew = True
        return (ServerSentEvent(self._prefix + encode_json(text) + b"}}", "content_block_delta"),)

    def frame(self, piece: Piece) -> bytes | None:
        """Return the frame of the delta that adds a mere text to the open block; `None` for what cannot be so brief."""
        text = piece.text
        if self._prefix is None or not text or piece.candidate:
            return None
        if type(piece) is ArgumentsDelta and self._is_free_text:
            return None
        self._grew = True
        return self._framed + encode_json(text) + _AFTER

    def stop(self) -> None:
        """Write no more: the message is over, whether its last block has ended or not."""
        self._part = self._prefix = None

    def frames(self, texts: Sequence[str]) -> bytes | None:
        """Return the frames of such deltas for many texts; `None` for what cannot be so brief."""
        if self._prefix is None or not all(texts):
            return None
        self._grew = True
        return self._framed + (_AFTER + self._framed).join(map(encode_json, texts)) + _AFTER

    def grow(self, event: Event) -> Sequence[ServerSentEvent]:
        """Return what a delta makes."""
        match event:
            case SignatureDelta(signature=signature) if isinstance(self._part, Reasoning):
                return self._sign(replace(self._part, signature=signature))
            case CitationDelta(citation=citation) if isinstance(self._part, Text):
                return self._cite(citation)
            case TextDelta() | ArgumentsDelta() | ReasoningDelta() | AudioDelta():
                return self.write(self._text_of(event))
            case _:
                return ()

    def _text_of(self, delta: TextDelta | ArgumentsDelta | ReasoningDelta | AudioDelta) -> str:
        match delta:
            case AudioDelta(transcript=text):
                return text
            case ReasoningDelta(text=text, summary=int(number)):
                self._losses.approximated(self._where, "summary", "written as the thinking itself")
                begun, self._summary = self._summary, number
                return text if begun == number or not self._grew else SUMMARY_BREAK + text
            case TextDelta(text=text, logprobs=logprobs) if logprobs:
                self._losses.dropped(self._where, "logprobs", "the dialect has none")
                return text
            case ArgumentsDelta(text=text):
                return self._arguments(text)
            case TextDelta(text=text) | ReasoningDelta(text=text):
                return text

    @property
    def _is_free_text(self) -> bool:
        return isinstance(self._part, ToolCall) and self._part.kind == "custom"

    def _arguments(self, text: str, begin: str = "") -> str:
        """Return more of the arguments; a custom tool's free text grows inside the one string of `input`."""
        if self._is_free_text:
            return begin + encode_json(text)[1:-1].decode()
        return text

    def carry(self, event: OpaqueDelta) -> Sequence[ServerSentEvent]:
        """Return an event that only its own dialect understands, if that is this one."""
        if event.dialect != NAME or not isinstance(event.data, dict) or not isinstance(event.data.get("type"), str):
            self._losses.dropped("$", event.name or "event", f"only {event.dialect} has it")
            return ()
        if "index" not in event.data:
            return (wire_event(event.data),)
        return () if self._part is None else (wire_event({**event.data, "index": self._count}),)

    def end(self, whole: Part | None) -> Sequence[ServerSentEvent]:
        """Close the block; `whole` may have content that no delta had (pitfall-114)."""
        part = self._part
        if part is None:
            return ()
        if isinstance(whole, Text):
            self._losses.carry(whole.extra, self._where, NAME)
        last = [*self._unsaid(part if whole is None else whole)]
        if self._is_free_text:
            last += self.write(FREE_TEXT[1])
        if isinstance(part, CompactedHistory):
            last.append(self._compacted(whole if isinstance(whole, CompactedHistory) else part))
        if isinstance(part, Reasoning) and not self._signed:
            last += self._seal(whole if isinstance(whole, Reasoning) else part)
        last.append(wire_event({"type": "content_block_stop", "index": self._count}))
        self._count += 1
        self._part, self._prefix = None, None
        return last

    def _unsaid(self, whole: Part) -> Sequence[ServerSentEvent]:
        match whole:
            case ToolCall(arguments=text) | HostedCall(arguments=text) if not self._grew:
                return self.write(self._arguments(text))
            case Refusal(text=text) if not self._grew:
                return self.write(text)
            case Text(text=text, citations=citations):
                return (*(() if self._grew else self.write(text)), *self._cite(*citations[self._citations :]))
            case Reasoning() if not self._grew:
                return self._unsaid_thought(whole)
            case _:
                return ()

    def _unsaid_thought(self, whole: Reasoning) -> Sequence[ServerSentEvent]:
        if whole.summary:
            self._losses.approximated(self._where, "summary", "written as the thinking itself")
        return self.write(SUMMARY_BREAK.join(said for said in (whole.text, *(whole.summary or ())) if said))

    def _cite(self, *citations: Citation) -> list[ServerSentEvent]:
        written = []
        for citation in citations:
            encoded = self._parts.citation(citation, f"{self._where}.citations[{self._citations}]")
            self._citations += 1
            if encoded is not None:
                written.append(self._delta({"type": "citations_delta", "citation": encoded}))
        return written

    def _delta(self, delta: JSONObject) -> ServerSentEvent:
        return wire_event({"type": "content_block_delta", "index": self._count, "delta": delta})

    def _compacted(self, part: CompactedHistory) -> ServerSentEvent:
        """Return the one delta of a compaction block."""
        block = self._parts.block(part, self._where, "assistant") or {}
        told: JSONObject = {key: block[key] for key in ("content", "encrypted_content") if key in block}
        return self._delta({"type": "compaction_delta", **told})

    def _sign(self, part: Reasoning) -> Sequence[ServerSentEvent]:
        """Write a signature at once if it is the dialect's own; another's is wrapped when all of it is known."""
        if part.origin is not None and part.origin.dialect != NAME:
            self._part = part
            return ()
        self._signed = True
        return self._seal(part)

    def _seal(self, part: Reasoning) -> Sequence[ServerSentEvent]:
        own = part.origin is not None and part.origin.dialect == NAME
        signature = None if part.redacted and own else self._parts.signature(part, self._where)
        if not signature:
            return ()
        return (self._delta({"type": "signature_delta", "signature": signature}),)


def _opening(part: Part) -> Part:
    """Return `part` as it can be written before it has grown."""
    match part:
        case Reasoning() if not part.redacted or part.origin is None or part.origin.dialect != NAME:
            return replace(part, signature=None, encrypted=None, origin=None)
        case ToolCall() | HostedCall():
            return replace(part, arguments="")
        case Text():
            return replace(part, citations=())
        case Audio():
            return replace(part, transcript=part.transcript or "")
        case _:
            return part
