"""Encodes the blocks of an answer as deltas of a stream: the start, growth and end of each.

A block that grows by one piece of text has `wraps`, the bytes of the delta around that piece, so that the commonest
chunk is written without building it. Ends give what a `BlockEnded` holds beyond the deltas before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import kind_of
from xenoglot.dialects.chat.assistant_decoder import encode_audio
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.reasoning import drop_seal, encode_details, is_listed, note_summary, said
from xenoglot.dialects.chat.signatures import with_signature
from xenoglot.dialects.chat.tool_calls import NO_ARGUMENTS, encode_call
from xenoglot.model.content import Audio, Extra, Opaque, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import AudioDelta, CitationDelta, ReasoningDelta, SignatureDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Citation, Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject


class Block:
    """A block without deltas: not supported, or written completely at its start."""

    wraps: tuple[bytes, bytes] | None = None

    def __init__(self, begun: Sequence[JSONObject] = ()) -> None:
        self._begun = begun
        self.entries = 0  # of a list of thoughts

    def begin(self) -> Sequence[JSONObject]:
        """Return the deltas of the start."""
        return self._begun

    def note(self, text: str) -> None:
        """Learn that a piece of text was written."""

    def grow(self, event: Event) -> Sequence[JSONObject]:  # noqa: ARG002  other blocks look at it
        """Return the deltas of anything but a piece of text."""
        return ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:  # noqa: ARG002  other blocks look at it
        """Return the deltas of the end; `whole` is the part where it holds more than the deltas."""
        return ()


class TextBlock(Block):
    """A `Text` or a `Refusal`; citations are written at the end, because they count from the start of the content."""

    def __init__(self, part: Text | Refusal) -> None:
        super().__init__()
        self.key = "content" if isinstance(part, Text) else "refusal"
        self.wraps = (b'{"%s":' % self.key.encode(), b"}")
        self.length = 0
        self.citations: list[Citation] = list(part.citations) if isinstance(part, Text) else []
        self._text = part.text

    def begin(self) -> Sequence[JSONObject]:
        """Return the text known at the start."""
        self.note(self._text)
        return [{self.key: self._text}] if self._text else []

    def note(self, text: str) -> None:
        """Count what was written."""
        self.length += len(text)

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Keep a citation."""
        if isinstance(event, CitationDelta):
            self.citations.append(event.citation)
        return ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the text that was in no delta."""
        if not isinstance(whole, Text | Refusal):
            return ()
        rest = whole.text[self.length :]
        self.note(rest)
        if isinstance(whole, Text):
            self.citations += whole.citations[len(self.citations) :]
        return [{self.key: rest}] if rest else []


class ForeignBlock(TextBlock):
    """An `Opaque` of another dialect: the text that replaces it, as soon as it is known."""

    def __init__(self, part: Opaque, where: str, losses: Losses) -> None:
        super().__init__(Text(text=part.text or ""))
        self._part = part
        self._where = where
        self._losses = losses

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the words that became known last; none at all are a loss."""
        part = whole if isinstance(whole, Opaque) else self._part
        kind = kind_of(part)
        if part.text is None:
            self._losses.dropped(self._where, kind, f"only {part.dialect} has it")
            return ()
        self._losses.approximated(self._where, kind, "written as text")
        return super().end(Text(text=part.text))


class ReasoningBlock(Block):
    """A `Reasoning`: its text as deltas, and at the end, if signed, the complete block for the client to store."""

    def __init__(self, part: Reasoning, where: str, index: int, losses: Losses) -> None:
        super().__init__()
        self._fields: list[str] = form_of(part.extra, NAME).get("fields", ["reasoning_content"])
        if len(self._fields) == 1:
            self.wraps = (b'{"%s":' % self._fields[0].encode(), b"}")
        self._header = part
        self._where = where
        self._index = index
        self._losses = losses
        self._text = [part.text or ""]
        self._summary = [[text] for text in part.summary or ()]
        self._signature = part.signature

    def begin(self) -> Sequence[JSONObject]:
        """Return the reasoning known at the start."""
        return self._say(said(self._header))

    def note(self, text: str) -> None:
        """Keep the words for the signed block."""
        self._text.append(text)

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Return a piece of reasoning that cannot be written in the commonest way; keep a signature."""
        match event:
            case SignatureDelta(signature=signature):
                self._signature = signature
            case ReasoningDelta(text=text, summary=None):
                self.note(text)
                return self._say(text)
            case ReasoningDelta(text=text, summary=int(index)):
                return self._say(self._summarise(text, index))
            case _:
                pass
        return ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the reasoning that was in no delta, and the entries that hold the signature."""
        grown = self._grown()
        part = whole if isinstance(whole, Reasoning) else grown
        deltas = [*self._say(said(part)[len(said(grown)) :])]
        if not is_listed(part):
            part = drop_seal(part, self._where, self._losses)
            note_summary(part, self._where, self._losses)
        if is_listed(part) or (self._index and said(part)):
            details = encode_details(part, self._index, self._where, self._losses)
            self.entries = len(details)
            placed = [{**detail, "index": self._index + place} for place, detail in enumerate(details)]
            if placed:
                deltas.append({form_of(part.extra, NAME).get("list", "reasoning_details"): placed})
        return deltas

    def _grown(self) -> Reasoning:
        text = "".join(self._text)
        return replace(
            self._header,
            text=None if self._header.text is None and not text else text,
            summary=None if self._header.summary is None and not self._summary else tuple(map("".join, self._summary)),
            signature=self._signature,
        )

    def _say(self, text: str) -> Sequence[JSONObject]:
        return [dict.fromkeys(self._fields, text)] if text else []

    def _summarise(self, text: str, index: int) -> str:
        """Note a piece of a summary; return it with the paragraphs that begin with it."""
        breaks = max(index, 0) - max(len(self._summary) - 1, 0)
        self._summary += [[] for _ in range(index + 1 - len(self._summary))]
        self._summary[index].append(text)
        return "\n\n" * breaks + text


class CallBlock(Block):
    """A `ToolCall`, or, if `legacy`, a deprecated `function_call`."""

    def __init__(self, part: ToolCall, where: str, index: int, losses: Losses, *, legacy: bool) -> None:
        super().__init__()
        self._part = part
        self._index = index
        self._where = where
        self._losses = losses
        self._legacy = legacy
        self._key = "arguments" if part.kind == "function" else "input"
        self._length = len(part.arguments)
        before = (
            b'{"function_call":{"arguments":'
            if legacy
            else (b'{"tool_calls":[{"index":%d,"%s":{"%s":' % (index, part.kind.encode(), self._key.encode()))
        )
        self.wraps = (before, b"}}" if legacy else b"}}]}")

    def begin(self) -> Sequence[JSONObject]:
        """Return the call without its arguments."""
        extra = self._part.extra
        if extra is not None:
            extra = Extra(dialect=extra.dialect, fields=extra.fields)
        part = with_signature(replace(self._part, extra=extra), self._where, self._losses)
        if self._legacy:
            return [{"function_call": {"name": part.name, "arguments": part.arguments}}]
        call = encode_call(part, part.id, part.name, self._where, self._losses)
        return [{"tool_calls": [{"index": self._index, **call}]}]

    def note(self, text: str) -> None:
        """Count what was written."""
        self._length += len(text)

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the arguments that were in no delta; a function without any gets an empty object (pitfall-94)."""
        rest = whole.arguments[self._length :] if isinstance(whole, ToolCall) else ""
        if not rest and not self._length and self._part.kind == "function":
            rest = NO_ARGUMENTS
        if not rest:
            return ()
        said = {self._key: rest}
        if self._legacy:
            return [{"function_call": said}]
        return [{"tool_calls": [{"index": self._index, self._part.kind: said}]}]


class AudioBlock(Block):
    """Audio that the model generates."""

    def __init__(self, part: Audio, where: str, losses: Losses) -> None:
        super().__init__([{"audio": encode_audio(part, where, losses)}])
        self._expires_at = part.expires_at

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Return more sound, more of its transcript."""
        if not isinstance(event, AudioDelta):
            return ()
        said = {"data": event.data, "transcript": event.transcript}
        return [{"audio": {key: value for key, value in said.items() if value}}]

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return until when the sound can be referred to, where that became known."""
        if isinstance(whole, Audio) and whole.expires_at is not None and self._expires_at is None:
            return [{"audio": {"expires_at": whole.expires_at}}]
        return ()
