"""Prompt of `xenoglot ask`: the words of the command line, followed by the text on standard input."""

from __future__ import annotations

import sys
from threading import Timer
from typing import TYPE_CHECKING, Final

from xenoglot.errors import ConfigurationError
from xenoglot.terminal.attachments import LONGEST_TEXT, MEGABYTE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

STDIN: Final = "-"
"""As the last word: standard input, even if it is a terminal."""

PATIENCE: Final = 3.0
"""Seconds without input after which a notice explains what the command waits for."""

WAITING: Final = "waiting for standard input; to ask without it, add `< /dev/null`"


def read_prompt(
    words: Sequence[str], source: BinaryIO | None, waiting: Callable[[], object], command: str = "ask"
) -> str:
    """Return the prompt: `words`, and below them the text of `source` (standard input) unless it is a terminal.

    `waiting` is called if `source` has no data for a while. Blocks.

    Raises:
        ConfigurationError: the prompt is empty, or the input is too large or not text.
    """
    explicit = words[-1:] == [STDIN]
    typed = " ".join(words[:-1] if explicit else words)
    piped = ""
    if source is not None and (explicit or not source.isatty()):
        piped = _text(_read(source, waiting))
    if not typed.strip() and not piped.strip():
        raise ConfigurationError(f'no text; expected `xenoglot {command} "TEXT"`, or text on standard input')
    return "\n\n".join(text for text in (typed, piped) if text.strip())


def stdin_bytes() -> BinaryIO | None:
    """Return standard input as bytes; `None` if it is closed."""
    return None if sys.stdin is None else sys.stdin.buffer


def _read(source: BinaryIO, waiting: Callable[[], object], patience: float = PATIENCE) -> bytes:
    timer = Timer(patience, waiting)
    timer.daemon = True
    timer.start()
    try:
        first = source.read(1)
    finally:
        timer.cancel()
    return first + source.read(LONGEST_TEXT) if first else first


def _text(data: bytes) -> str:
    if len(data) > LONGEST_TEXT:
        limit = LONGEST_TEXT // MEGABYTE
        raise ConfigurationError(f"standard input is larger than {limit} MB; a prompt can have {limit} MB of text")
    text = data.decode("utf-8-sig", errors="replace")
    if "\0" in text:
        raise ConfigurationError(
            "standard input is not text; send images with `--image PATH` and PDFs with `--file PATH`"
        )
    return text
