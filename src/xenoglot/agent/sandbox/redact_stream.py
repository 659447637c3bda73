"""Redacts secrets from a command's output incrementally, including secrets split between reads."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.backends.redaction import Redactor


class StreamRedactor:
    """Converts bytes to redacted text. A possible beginning of a secret is held back until it is decided."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pending = ""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Return the text that is decided by now; with `last`, all that is left."""
        text = self._redactor(self._pending + self._decoder.decode(data, last))
        begun = 0 if last else self._redactor.partial_length(text)
        self._pending = text[len(text) - begun :]
        return text[: len(text) - begun]
