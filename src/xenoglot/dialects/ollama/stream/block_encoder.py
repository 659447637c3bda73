"""Encodes the blocks of an answer as chunks of a stream: the start, growth and end of each.

A piece is the fields of a message: words under `content`, reasoning, images, or a whole call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.ollama.extras import FAMILY, own_fields
from xenoglot.dialects.ollama.request.message_encoder import (
    PARAGRAPH,
    encode_parts,
    is_readable,
    note_text,
    thought_of,
)
from xenoglot.model.content import Reasoning, Refusal, Text
from xenoglot.model.events import BlockEnded, BlockStarted, CitationDelta, ReasoningDelta, TextDelta
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject


class Block:
    """A block that is written when complete, as in a non-streaming response.

    `place` is the position of a call among those of the answer.
    """

    def __init__(self, part: Part, where: str, crossing: EncodeContext, *, own: bool, place: int = 0) -> None:
        self._own = own
        self._where = where
        self._crossing = crossing
        self._place = place
        self._grown = _PartBuilder(part)

    def begin(self) -> Sequence[JSONObject]:
        """Return what is known at the start."""
        return ()

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Return what a delta adds."""
        self._grown.feed(event)
        return ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return what no delta had; `whole` is the part where the wire sent more than the deltas."""
        part = self._grown.part(whole)
        if not (self._own or is_readable(part, self._where, self._crossing.losses)):
            return ()
        fields = encode_parts([(self._where, part)], "", self._where, self._crossing, self._place)
        said = {key: value for key, value in fields.items() if value}
        return [said] if said else ()


class TextBlock:
    """A `Text`, or a `Refusal`, for which the dialect has no field."""

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
        """Return the text known at the start."""
        return self._say(self._text)

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Return more words."""
        if isinstance(event, CitationDelta):
            at = f"{self._where}.citations[{self._citations}]"
            self._losses.dropped(at, event.citation.kind, "a message cannot cite")
            self._citations += 1
        return self._say(event.text) if isinstance(event, TextDelta) else ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the text that was in no delta."""
        if not isinstance(whole, Text | Refusal):
            return ()
        if isinstance(whole, Text):
            note_text(whole, self._where, self._losses)
        return self._say(whole.text[self._length :])

    def _say(self, text: str) -> Sequence[JSONObject]:
        self._length += len(text)
        return [{"content": text}] if text else ()


class ReasoningBlock:
    """A `Reasoning`: its text and its summaries, each in its own paragraph."""

    def __init__(self, part: Reasoning, where: str, losses: Losses) -> None:
        self._texts = [(None, part.text or ""), *enumerate(part.summary or ())]  # known at the start
        self._grown = _PartBuilder(part)
        self._where = where
        self._losses = losses
        self._open: int | str | None = ""  # the summary that grows, `None` for the thought itself; nothing yet
        self._length = 0  # of the thought itself, as far as it was said
        self._told = bool(part.summary)  # whether any summary was

    def begin(self) -> Sequence[JSONObject]:
        """Return what is known at the start."""
        return [piece for index, text in self._texts for piece in self._say(index, text)]

    def grow(self, event: Event) -> Sequence[JSONObject]:
        """Return more of it; a signature is lost."""
        self._grown.feed(event)
        return self._say(event.summary, event.text) if isinstance(event, ReasoningDelta) else ()

    def end(self, whole: Part | None) -> Sequence[JSONObject]:
        """Return the text that was in no delta."""
        part = self._grown.part(whole)
        if not isinstance(part, Reasoning):
            return ()
        thought_of(part, self._where, self._losses)
        told = () if self._told else enumerate(part.summary or ())
        rest = (part.text or "")[self._length :]
        return [piece for index, text in ((None, rest), *told) for piece in self._say(index, text)]

    def _say(self, index: int | None, text: str) -> Sequence[JSONObject]:
        if index is None:
            self._length += len(text)
        else:
            self._told = True
        if not text:
            return ()
        apart = self._open not in ("", index)
        self._open = index
        return [{"thinking": PARAGRAPH + text if apart else text}]


class _PartBuilder:
    """Collects the deltas of one part."""

    def __init__(self, part: Part) -> None:
        self._folder = Folder()
        self._folder.feed(BlockStarted(part=part))

    def feed(self, event: Event) -> None:
        self._folder.feed(event)

    def part(self, whole: Part | None) -> Part:
        """Return what it has become: `whole`, where the wire sent that."""
        self._folder.feed(BlockEnded(part=whole))
        return self._folder.response().candidates[0].content[0]
