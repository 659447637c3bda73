"""The blocks of an answer as pieces of a stream: what each says at its start, as it grows, and at its end.

A piece is the fields of a message: words under `content`, a thought, pictures, or a whole call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.dialects.ollama.family import FAMILY, own_fields
from xenoglot.dialects.ollama.message_encoder import PARAGRAPH, encode_parts, is_readable, note_text, thought_of
from xenoglot.model.content import Audio, Inline, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, AudioDelta, CitationDelta, ReasoningDelta, SignatureDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.crossing import Crossing
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject


class Block:
    """A block that says nothing until it is whole; then it is written as a whole answer writes it."""

    def __init__(self, part: Part, where: str, crossing: Crossing, *, own: bool) -> None:
        self._own = own
        self._part = part
        self._where = where
        self._crossing = crossing

    def begin(self) -> Sequence[JSONObject]:
        """Return what is known at the start."""
        return ()

    def grow(self, event: Event) -> Sequence[JSONObject]:  # noqa: ARG002  other blocks look at it
        """Return what a delta adds."""
        return ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return what no delta said; `whole` is the part where the wire said more than the deltas."""
        part = whole or self._part
        if not (self._own or is_readable(part, self._where, self._crossing.losses)):
            return ()
        fields = encode_parts([(self._where, part)], "", self._where, self._crossing)
        said = {key: value for key, value in fields.items() if value}
        return [said] if said else ()


class WordsBlock(Block):
    """A `Text`, or a `Refusal`, of which the wire knows nothing."""

    def __init__(self, part: Text | Refusal, where: str, losses: Losses) -> None:
        self._text = part.text
        self._length = self._citations = 0
        self._where = where
        self._losses = losses
        if isinstance(part, Text):
            note_text(part, where, losses)
            self._citations = len(part.citations)
        else:
            own_fields(part.extra, where, losses, FAMILY)
            losses.approximated(where, "refusal", "written as words")

    def begin(self) -> Sequence[JSONObject]:
        """Return the words known at the start."""
        return self._say(self._text)

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Return more words."""
        if isinstance(event, CitationDelta):
            at = f"{self._where}.citations[{self._citations}]"
            self._losses.dropped(at, event.citation.kind, "a message cannot cite")
            self._citations += 1
        return self._say(event.text) if isinstance(event, TextDelta) else ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the words that no delta said."""
        if not isinstance(whole, Text | Refusal):
            return ()
        if isinstance(whole, Text):
            note_text(whole, self._where, self._losses)
        return self._say(whole.text[self._length :])

    def _say(self, text: str) -> Sequence[JSONObject]:
        self._length += len(text)
        return [{"content": text}] if text else ()


class ThoughtBlock(Block):
    """A `Reasoning`: its words, and what is told of them, each in a paragraph of its own."""

    def __init__(self, part: Reasoning, where: str, losses: Losses) -> None:
        self._part: Reasoning = part
        self._where = where
        self._losses = losses
        self._open: int | str | None = ""  # the summary that grows, `None` for the thought itself; nothing yet

    def begin(self) -> Sequence[JSONObject]:
        """Return what is known at the start."""
        texts = [(None, self._part.text or ""), *enumerate(self._part.summary or ())]
        return [piece for index, text in texts for piece in self._say(index, text)]

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Return more of it; a seal is lost."""
        match event:
            case ReasoningDelta(text=text, summary=index):
                self._part = _grown(self._part, text, index)
                return self._say(index, text)
            case SignatureDelta(signature=signature):
                self._part = replace(self._part, signature=signature)
            case _:
                pass  # nothing that a thought grows by
        return ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the words that no delta said."""
        part = whole if isinstance(whole, Reasoning) else self._part
        thought_of(part, self._where, self._losses)
        rest = (part.text or "")[len(self._part.text or "") :]
        told = enumerate(part.summary or ()) if not self._part.summary else ()
        return [piece for index, text in ((None, rest), *told) for piece in self._say(index, text)]

    def _say(self, index: int | None, text: str) -> Sequence[JSONObject]:
        if not text:
            return ()
        apart = self._open not in ("", index)
        self._open = index
        return [{"thinking": PARAGRAPH + text if apart else text}]


class CallBlock(Block):
    """A `ToolCall`: the wire has it whole."""

    def __init__(self, part: ToolCall, where: str, crossing: Crossing, place: int) -> None:
        super().__init__(part, where, crossing, own=True)
        self._call = part
        self._place = place
        self._arguments = [part.arguments]

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Keep more of the arguments."""
        if isinstance(event, ArgumentsDelta):
            self._arguments.append(event.text)
        return ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the call."""
        call = whole if isinstance(whole, ToolCall) else replace(self._call, arguments="".join(self._arguments))
        fields = encode_parts([(self._where, call)], "", self._where, self._crossing, self._place)
        return [{"tool_calls": fields["tool_calls"]}]


class SoundBlock(Block):
    """An `Audio` that the model makes."""

    def __init__(self, part: Audio, where: str, crossing: Crossing, *, own: bool) -> None:
        super().__init__(part, where, crossing, own=own)
        self._sound = part

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Keep more of the sound and of its words."""
        if isinstance(event, AudioDelta):
            sound = self._sound
            data = (sound.source.data if isinstance(sound.source, Inline) else "") + event.data
            words = (sound.transcript or "") + event.transcript
            self._part = self._sound = replace(
                sound, source=Inline(data=data) if data else sound.source, transcript=words or sound.transcript
            )
        return ()


def _grown(part: Reasoning, text: str, index: int | None) -> Reasoning:
    if index is None:
        return replace(part, text=(part.text or "") + text)
    summary = [*(part.summary or ()), *[""] * (index + 1 - len(part.summary or ()))]
    summary[index] += text
    return replace(part, summary=tuple(summary))
