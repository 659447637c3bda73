"""Headers of Harmony where a server strips its tokens: `analysisThe user asks ...assistantfinalThe answer`.

What is left of a header is joined to what follows it. The first header is the name of a channel alone, for the prompt
ends in `assistant`; it counts where no space and no punctuation follows, which would make it a word. Before every later
one `assistant` stands. A call names its tool before its JSON object: `commentary to=functions.NAME json{`.
Source: https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/parser/harmony_parser.py
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.text.parser.scanner import MarkerScanner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_RECIPIENT: Final = 256
"""Characters between a channel and the arguments of a call."""

_TO: Final = " to="
_FIRST: Final = ("assistantanalysis", "assistantcommentary", "assistantfinal", "analysis", f"commentary{_TO}", "final")
LONGEST: Final = max(map(len, _FIRST)) + 1
"""Characters that show whether an answer begins with a header."""

LATER: Final = MarkerScanner((*_FIRST[:3], f"assistant{_TO}"))
"""What every header but the first begins with."""

_BEGINS = re.compile(
    r"""assistant(?:analysis|commentary|final)|analysis(?=[^\W_]|["'])|commentary(?=[^\W_]|["']|\ to=\S)
    |final(?=[A-Z\d"'])""",
    re.VERBOSE,
)
_NAME = re.compile(r"(?:assistant)?(analysis|commentary|final)?")
_CALL = re.compile(r" to=([^\s{]+)\s?(?:json|code)?\s*(?=\{)")


class StrippedHeader(Struct, frozen=True):
    """A header up to `end`. Without a channel and a recipient it is none, but text."""

    channel: str | None
    recipient: str | None
    end: int


def begins(text: str, *, ended: bool) -> bool | None:
    """Return whether an answer that starts with `text` starts with a header; `None`: more of it is needed."""
    if _BEGINS.match(text):
        return True
    return None if not ended and any(first.startswith(text) for first in _FIRST) else False


def header(text: str, at: int, resolve: Callable[[str], str | None], *, ended: bool) -> StrippedHeader | None:
    """Return the header that begins at `at`; `None`: more of it is needed. `resolve` returns a declared tool's name."""
    found = _NAME.match(text, at)
    channel, end = (found[1], found.end()) if found is not None else (None, at)
    behind = text[end : end + LONGEST_RECIPIENT]
    open_ended = not ended and len(behind) < LONGEST_RECIPIENT
    if channel != "final" and behind.startswith(_TO):
        if (call := _CALL.match(behind)) is not None:
            return StrippedHeader(channel, _recipient(call[1], resolve), end + call.end())
        if open_ended and "{" not in behind:
            return None
    elif open_ended and channel != "final" and _TO.startswith(behind):
        return None
    return StrippedHeader(channel, None, end)


def _recipient(written: str, resolve: Callable[[str], str | None]) -> str:
    return next((name for name in _names(written) if resolve(name) is not None), written)


def _names(written: str) -> Iterator[str]:
    """Yield what `written` may name: all of it, or less of what is joined to it."""
    for stem in dict.fromkeys((written, written.removesuffix("json"), written.removesuffix("code"))):
        yield stem
        yield stem.removesuffix("analysis").removesuffix("commentary")
