"""Parser for gpt-oss (Harmony): messages with headers that name their channel and recipient.

Theory of operation. A message is `<|start|>` header `<|message|>` body, and an end token. Header by header it is known
what the body is: reasoning (`analysis`), words (`commentary`, `final`), or the arguments of a call (`to=` a declared
tool, in either part of the header). A message to another recipient stays as it is, with its tokens. From a garbled
header what can be found in it counts; a message of no known channel is reasoning. A header without its last token ends
after its known parts. The prompt ends in `<|start|>assistant`, so the first header begins after that; text without a
header is words. Where a server strips the tokens, the rest of the first header shows it, and the others are found
by that form.
Source: https://github.com/openai/harmony/blob/main/docs/format.md
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from xenoglot.text.formats import stripped_headers
from xenoglot.text.output_pieces import (
    ArgumentsPiece,
    CallEnded,
    CallStart,
    LossPiece,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
)
from xenoglot.text.parser.parser_input import LONGEST_BLANK
from xenoglot.text.parser.scanner import MarkerScanner
from xenoglot.text.payloads.bare_values import members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece

LONGEST_HEADER: Final = 512
"""Characters of a header; a longer one is none."""

_START: Final = "<|start|>"
_CHANNEL: Final = "<|channel|>"
_MESSAGE: Final = "<|message|>"
_CONSTRAIN: Final = "<|constrain|>"
_ENDS: Final = ("<|end|>", "<|return|>", "<|call|>")

_MARKERS: Final = MarkerScanner((_START, _CHANNEL, _MESSAGE, _CONSTRAIN, *_ENDS))
_BODY: Final = MarkerScanner((_START, _CHANNEL, *_ENDS))
_STRIPPED: Final = stripped_headers.LATER
_BEGINS: Final = MarkerScanner((_START, _CHANNEL, _MESSAGE, *_ENDS))
"""What may stand where a message begins: an empty header is the last token alone."""

_HEADER = re.compile(
    r"""(?:<\|start\|>)?\ ?(?:assistant)?(?:\ ?to=(?P<before>[^\s<]+))?
    (?:\ ?<\|channel\|>\ ?(?P<channel>analysis|commentary|final)(?:\ to=(?P<behind>[^\s<]+))?
    \ ?(?:<\|constrain\|>)?\ ?[\w.+/-]*)?\ ?""",
    re.VERBOSE,
)
"""A header with single spaces only."""

_UNENDED = re.compile(
    r"""(?:<\|start\|>)?\ ?(?:assistant)?(?:\ ?to=(?P<before>[^\s<]+))?
    \ ?<\|channel\|>\ ?(?P<channel>analysis|commentary|final)\b(?:\ to=(?P<behind>[^\s<]+))?
    (?:\ ?<\|constrain\|>\ ?\w+|\ (?:json|code)\b)?\s?""",
    re.VERBOSE,
)
"""A header that goes over into its message."""

_ROLES: Final = MarkerScanner(
    ("to=", *(f"assistant{blank}{mark}" for mark in ("to=", _CHANNEL) for blank in ("", " ")))
)
"""What a header begins with that has no token of its own."""

_FILLERS: Final = MarkerScanner(
    [f"{word}{token}" for word in ("analysis", "commentary", "final") for token in (_START, _CHANNEL)]
)
"""The name of a channel between two messages, as gpt-oss repeats it after calls."""

_TO = re.compile(r"(?<!\w)to=([^\s<]+)")
_FOREIGN = re.compile(r"<\|start\|>(?! ?assistant)")
"""A message that is not the assistant's: a result that the model made up."""

_NAMED = re.compile(r"<\|channel\|>\s?(analysis|commentary|final)")

_BLANKS = re.compile(rf"\s{{0,{LONGEST_BLANK + 1}}}")

_Mode: TypeAlias = Literal["first", "between", "words", "thought", "call", "raw"]
"""The state: before everything, after a message, or in a body, by what it is made into."""


class HarmonyParser:
    """A stage from text to pieces. `declared` are the tools that may be called."""

    def __init__(self, declared: DeclaredTools) -> None:
        self._declared = declared
        self._text = ""
        self._at = 0  # how much of the text was read
        self._made: list[Piece] = []
        self._mode: _Mode = "first"
        self._header: int | None = None  # where a header may have begun
        self._arguments: list[str] = []
        self._spaced = False  # the space that comes now belongs to the header's last token
        self._stripped = False  # the server stripped the tokens

    def feed(self, text: str, /) -> Sequence[Piece]:
        """Take more text; return what it made."""
        return self._run(text, ended=False)

    def close(self, *, stopped: bool = False) -> Sequence[Piece]:
        """Return what was held back: the text is over. `stopped` has no effect: arguments show their own end."""
        del stopped
        self._run("", ended=True)
        self._leave(marked=False)
        return self._made

    def _run(self, text: str, *, ended: bool) -> Sequence[Piece]:
        self._made = []
        if self._header is not None:
            self._header -= self._at
        self._text, self._at = self._text[self._at :] + text, 0
        while self._step(ended=ended):
            pass
        return self._made

    def _step(self, *, ended: bool) -> bool:
        """Continue reading; return whether the text read so far allows another step."""
        if self._header is not None and self._stripped:
            return self._read_stripped(ended=ended)
        if self._header is not None:
            return self._read_header(self._header, ended=ended)
        if self._mode in ("first", "between"):
            return self._read_blanks(ended=ended)
        return self._read_body(ended=ended)

    # ---- between messages

    def _read_blanks(self, *, ended: bool) -> bool:
        """Look for a header after whitespace that belongs to it; all else is words."""
        found = _BLANKS.match(self._text, self._at)
        start = self._at if found is None else found.end()
        place, marker = _BEGINS.find(self._text[start : start + _BEGINS.longest], 0, ended=ended)
        if start - self._at > LONGEST_BLANK:
            self._mode = "words"
            return True
        if start == len(self._text):
            return self._end_blank(ended=ended)
        if place == 0 and not marker and not ended:
            return False  # it may become a token
        if place or not marker:
            return self._read_role(start, ended=ended)
        if marker in _ENDS:
            self._at = start + len(marker)
            self._mode = "between"
        elif marker == _MESSAGE:
            self._begin(None, None, start + len(marker))
        else:
            self._header = start
        return True

    def _end_blank(self, *, ended: bool) -> bool:
        """Hold text that is only whitespace; at the end it is words if nothing else came."""
        if ended and self._mode == "first":
            self._give(len(self._text))
        return False

    def _read_role(self, start: int, *, ended: bool) -> bool:
        """Look for a header without its token: the prompt may have begun it, or the model forgot it."""
        stripped = self._stripped_at(start, ended=ended)
        if stripped:
            self._stripped, self._at, self._header = True, start, start
            return True
        window = self._text[start : start + max(_ROLES.longest, _FILLERS.longest)]
        place, marker = _ROLES.find(window, 0, ended=ended)
        if place == 0 and marker:
            self._header = start
            return True
        filled, filler = _FILLERS.find(window, 0, ended=ended) if self._mode == "between" else (1, "")
        if filled == 0 and filler:
            self._at = start + filler.index("<")
            return True
        if (0 in (place, filled) or stripped is None) and not ended:
            return False
        self._mode = "words"
        return True

    def _stripped_at(self, start: int, *, ended: bool) -> bool | None:
        """Return whether the answer begins with a header without tokens at `start`; `None`: more of it is needed."""
        if self._mode != "first":
            return False
        return stripped_headers.begins(self._text[start : start + stripped_headers.LONGEST], ended=ended)

    # ---- bodies

    def _read_body(self, *, ended: bool) -> bool:
        """Give out text up to the next token."""
        place, marker = (_STRIPPED if self._stripped else _BODY).find(self._text, self._at, ended=ended)
        self._give(place)
        if not marker:
            return False
        if self._stripped:
            return self._read_stripped(ended=ended)
        if marker in _ENDS:
            self._end(marker)
        else:
            self._header = self._at
        return True

    def _give(self, place: int) -> None:
        """Make what it is of the text up to `place`."""
        said, self._at = self._text[self._at : place], place
        if said and self._spaced:
            self._spaced = False
            said = said.removeprefix(" ")
        if not said:
            return
        match self._mode:
            case "thought":
                self._made.append(ReasoningPiece(said))
            case "call":
                self._arguments.append(said)
                self._made.append(ArgumentsPiece(said))
            case _:
                self._made.append(TextPiece(said))

    def _end(self, marker: str) -> None:
        if self._mode == "raw":
            self._made.append(TextPiece(marker))
        self._at += len(marker)
        self._leave(marked=True)
        self._mode = "between"

    def _leave(self, *, marked: bool) -> None:
        """End what is open; `marked` is whether a token ended it."""
        if self._mode == "thought":
            self._made.append(ReasoningEnded())
        elif self._mode == "call":
            arguments = "".join(self._arguments)
            if not arguments.strip():
                self._made.append(ArgumentsPiece("{}"))
            self._made.append(CallEnded(marked or members(arguments) is not None))

    # ---- headers

    def _read_header(self, start: int, *, ended: bool) -> bool:
        """Read the header that begins at `start` when all of it has arrived."""
        window = self._text[start : start + LONGEST_HEADER]
        over = ended or len(window) == LONGEST_HEADER
        place, marker = _MARKERS.find(window, 1, ended=over)
        while marker in (_CHANNEL, _CONSTRAIN):
            place, marker = _MARKERS.find(window, place + len(marker), ended=over)
        if not marker and not over:
            return False
        self._header = None
        header = " ".join(window[:place].split())
        if marker != _MESSAGE:
            self._read_unended(start, window, place)
        elif found := _HEADER.fullmatch(header):
            self._begin(found["before"] or found["behind"], found["channel"], start + place + len(marker))
        elif _CHANNEL in header and not _FOREIGN.match(header):  # garbled, as about every 25th of gpt-oss-20b is
            to, channels = _TO.findall(header), _NAMED.findall(header)
            known = next((name for name in to if self._declared.resolve(name) is not None), None)
            self._begin(known, channels[-1] if channels else "analysis", start + place + len(marker))
            self._made.append(LossPiece("header", "approximated", "it was garbled"))
        else:
            self._refuse(start, window, place + len(marker))
        return True

    def _read_unended(self, start: int, window: str, place: int) -> None:
        """Read a header whose last token is missing: where a message begins, what is known of it counts."""
        found = _UNENDED.match(window[:place]) if self._mode in ("first", "between") else None
        if found is None or found.end() == place:
            self._refuse(start, window, 0)
            return
        self._begin(found["before"] or found["behind"], found["channel"], start + found.end())
        self._made.append(LossPiece("header", "approximated", "it was garbled"))

    def _begin(self, recipient: str | None, channel: str | None, end: int) -> None:
        """Begin a message to `recipient` in `channel`; its header ends at `end`."""
        self._leave(marked=True)
        said, self._at = self._text[self._at : end], end
        self._spaced = self._stripped or f"{_CHANNEL} " in said  # LLM-jp writes one after each token
        if recipient is None:
            self._mode = "thought" if channel == "analysis" else "words"
        elif (name := self._declared.resolve(recipient)) is not None:
            self._mode = "call"
            self._arguments = []
            self._made.append(CallStart(name))
        else:
            self._mode = "raw"
            self._spaced = False
            self._made.append(TextPiece(said))

    def _read_stripped(self, *, ended: bool) -> bool:
        """Read the header without tokens that begins here; return whether all of it has arrived."""
        header = stripped_headers.header(self._text, self._at, self._declared.resolve, ended=ended)
        if header is None:
            return False
        self._header = None
        if header.channel is None and header.recipient is None:
            self._give(self._at + len("assistant"))
        else:
            self._begin(header.recipient, header.channel, header.end)
        return True

    def _refuse(self, start: int, window: str, end: int) -> None:
        """Continue as before: what looked like a header is part of the text around it.

        It is all of it where it ends as headers do (`end`), and else its first token.
        """
        if self._mode in ("first", "between"):
            self._mode = "raw"
        first = next(len(token) for token in (_START, _CHANNEL, window[:1]) if window.startswith(token))
        self._give(start + (end or first))
