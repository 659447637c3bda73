"""Token counts of Google's dialects: sums, and details by modality.

Source: `ModalityTokenCount` (https://ai.google.dev/api/generate-content#ModalityTokenCount); `ModalityTokens` of the
Interactions API has the same in other spellings (`google/genai/_gaos/types/interactions/usage.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Usage


def add_counts(one: int | None, other: int | None) -> int | None:
    """Return the sum of two counts; a missing one is 0 next to the other."""
    return None if one is None and other is None else (one or 0) + (other or 0)


def whole_of(usage: Usage) -> int | None:
    """Return the total: the server's, or the sum of what is known."""
    if usage.total is not None or usage.input_tokens is None or usage.output_tokens is None:
        return usage.total
    return usage.input_tokens + usage.output_tokens


class TokenDetails(Struct, frozen=True, kw_only=True):
    """How a dialect spells the details of counts: `fields` of usage, those of input and output first."""

    fields: tuple[str, ...]
    text: str
    audio: str
    count: str

    def take(self, reader: Reader, form: JSONObject) -> tuple[int | None, int | None]:
        """Return the audio tokens of input and output; `form` gets the details of which nothing is lost.

        Those are the ones of text and audio alone: the rest of a count is text. Others stay in the rest of `reader`.
        """
        entered, made = (self._audio(reader.peek(field)) for field in self.fields[:2])
        for field in self.fields:
            value = reader.peek(field)
            if isinstance(value, list) and all(map(self._is_known, value)):
                form.setdefault("details", {})[field] = reader.take(field, list)
        return entered, made

    def write(self, usage: Usage) -> Iterator[tuple[str, JSON]]:
        """Yield the details of the audio tokens in `usage`, which came in another dialect."""
        for field, audio in zip(self.fields, (usage.input_audio, usage.output_audio), strict=False):
            if audio is not None:
                yield field, [{"modality": self.audio, self.count: audio}]

    def _is_known(self, item: JSON) -> bool:
        return isinstance(item, dict) and item.get("modality") in (self.text, self.audio)

    def _audio(self, details: JSON) -> int | None:
        for item in details if isinstance(details, list) else ():
            if isinstance(item, dict) and item.get("modality") == self.audio:
                return Reader(item).count(self.count)
        return None
