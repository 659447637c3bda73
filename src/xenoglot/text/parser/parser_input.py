"""Input of the payload grammars: they pause where the text stops and resume when more arrives.

Theory of operation. A grammar is a generator: it reads from its `ParserInput`, and gives way (`yield`) where the text
has not arrived yet. Until a call to a declared tool has begun, all that was read is held; if it turns out to be no such
call, it is given back as words, character for character. From then on arguments leave as they are read. Nothing is
read twice, but the few characters that distinguish one literal from another.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from xenoglot.text.output_pieces import ArgumentsPiece, CallEnded, CallStart, LossPiece, TextPiece

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.model.json import JSON
    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece
    from xenoglot.text.parser.scanner import MarkerScanner

Reading: TypeAlias = "Generator[None, None, None]"
"""A grammar at work; it yields where it needs more text."""

LONGEST_BLANK: Final = 1024
"""Characters of whitespace that may stand between two markers."""

LONGEST_ECHO: Final = 4096
"""Characters of calls that may be written again."""

LONGEST_HELD: Final = 65_536
"""Characters that are held for a call whose name is not known yet."""

_BLANK = re.compile(r"\s*")


class MismatchError(Exception):
    """What stands there is no call of this form."""


class IncompleteInputError(Exception):
    """The text ended where more of it was needed."""


class ParserInput:
    """Text from the marker of a form on, and what was made of it (`pieces`)."""

    def __init__(self, declared: DeclaredTools, stops: MarkerScanner, others: MarkerScanner | None = None) -> None:
        self.declared = declared
        self.stops = stops
        self._others = others
        self.pieces: list[Piece] = []
        self.ended = False
        self.stopped = False  # where it ended, the model ended it, and nobody cut it off
        self.called = False
        self.empty = False  # its markers had no call between them
        self.read = 0
        self._text = ""
        self._at = 0
        self._held: list[str] = []
        self._held_size = 0
        self._state: Literal["holding", "call", "words", "between"] = "holding"
        self._told = False  # whether the call before was one, rather than words
        self._refused = False
        self._whole = False
        self._recorded: list[str] | None = None
        self._losses: list[Piece] = []  # of a call that is not known to be one yet

    # ---- for the parser

    def more(self, text: str) -> None:
        """Take more text."""
        self._text = self._text[self._at :] + text
        self._at = 0

    @property
    def rest(self) -> str:
        """The text that was not read yet."""
        return self._text[self._at :]

    @property
    def decided(self) -> bool:
        """Whether it is known that this is a call to a declared tool, or no call at all."""
        return self.called or self.empty

    @property
    def refused(self) -> bool:
        """Whether it is a call, but all so far were to undeclared tools."""
        return self._refused and not self.called

    def give_back(self) -> None:
        """Make words of what is held; a call that has begun is over. What of it was whole stays whole."""
        if self._state == "call":
            self.end()
        elif self._held:
            self.pieces.append(TextPiece("".join(self._held)))
        self._clear()

    def leave(self) -> None:
        """Make words of what is held, and of what is read from here on until a call may begin."""
        self.give_back()
        self._state = "between"
        self._told = False
        self._refused = True

    def cut(self) -> None:
        """Note that the answer ended here: whitespace after a call was markup."""
        if self._state == "between" and self._told:
            self._clear()
        self.give_back()

    def close(self) -> None:
        """Note that the form ended as forms end."""
        if self._state == "between" and not self._told:
            self.give_back()
        self._clear()

    def void(self) -> None:
        """Note that the markers had no call between them: they are markup without content."""
        self._clear()
        self._state = "between"
        self.empty = self._told = True

    def settle(self) -> None:
        """Note that what was read after a call belongs to its form, whatever follows."""
        if self._state == "between" and self._told:
            self._clear()

    def record(self) -> None:
        """Keep what is read from here on, for `echo`."""
        self._recorded = []

    def echo(self) -> Reading:
        """Pass over what was recorded, if anything was, where it stands here again."""
        recorded, self._recorded = "".join(self._recorded or ()).strip(), None
        if recorded and (yield from self.accept((recorded,))):
            self.settle()

    # ---- for grammars: reading

    def peek(self) -> Generator[None, None, str]:
        """Return the next character, without reading it.

        Raises:
            IncompleteInputError: there is none.
        """
        while self._at == len(self._text):
            if self.ended:
                raise IncompleteInputError
            yield
        return self._text[self._at]

    def take(self, count: int) -> str:
        """Read `count` characters, which must be there."""
        start = self._at
        self._at = start + count
        text = self._text[start : self._at]
        self._note(text)
        return text

    def run(self, pattern: re.Pattern[str]) -> str:
        """Read what `pattern` matches here in the text so far; more of the same may come."""
        found = pattern.match(self._text, self._at)
        return self.take(found.end() - self._at) if found is not None and found.end() > self._at else ""

    def ahead(self, count: int) -> Generator[None, None, str]:
        """Return the next `count` characters, fewer at the end, without reading them."""
        while len(self._text) - self._at < count and not self.ended:
            yield
        return self._text[self._at : self._at + count]

    def accept(self, options: Sequence[str], *, blanks: bool = True) -> Generator[None, None, str]:
        """Read one of `options`, the longest that matches, with the whitespace before it; return it.

        Where none is, nothing is read, and the empty string returned.
        """
        while options:
            start = self._skip_blanks() if blanks else self._at
            if start - self._at > LONGEST_BLANK:
                return ""
            text, left, found = self._text, len(self._text) - start, ""
            for option in options:
                if len(option) > left:
                    if not self.ended and option.startswith(text[start:]):
                        break
                elif len(option) > len(found) and text.startswith(option, start):
                    found = option
            else:
                if found:
                    self.take(start - self._at + len(found))
                return found
            yield
        return ""

    def expect(self, options: Sequence[str], *, blanks: bool = True) -> Generator[None, None, str]:
        """Read one of `options` as `accept` does; none at all need be there if there are no options.

        Raises:
            MismatchError: none of them matches.
        """
        found = yield from self.accept(options, blanks=blanks)
        if options and not found:
            raise IncompleteInputError if self.ended and not self.rest.strip() else MismatchError
        return found

    def blank(self) -> Reading:
        """Read whitespace.

        Raises:
            IncompleteInputError: nothing follows it.
        """
        self.run(_BLANK)
        while (yield from self.peek()).isspace():
            self.run(_BLANK)

    def follows(self, starts: str) -> Generator[None, None, bool]:
        """Return whether one of the characters `starts` stands here, after whitespace; nothing is read."""
        while True:
            at = self._skip_blanks()
            if at < len(self._text) or self.ended or at - self._at > LONGEST_BLANK:
                return self._text[at : at + 1] in starts and at < len(self._text)
            yield

    def at_stop(self) -> Generator[None, None, bool]:
        """Return whether a marker that ends the call stands here; it is not read."""
        return (yield from self._at_marker(self.stops))

    def at_other(self) -> Generator[None, None, bool]:
        """Return whether a marker that begins another call stands here; it is not read."""
        return self._others is not None and (yield from self._at_marker(self._others))

    def _at_marker(self, markers: MarkerScanner) -> Generator[None, None, bool]:
        while markers:
            place, marker = markers.find(self._text[self._at : self._at + markers.longest], 0, ended=self.ended)
            if place > 0:
                return False
            if marker or self.ended:
                return bool(marker)
            yield
        return False

    def take_stop(self) -> str:
        """Read the marker that ends the call, which must be there."""
        _, marker = self.stops.find(self._text[self._at : self._at + self.stops.longest], 0, ended=True)
        return self.take(len(marker))

    def at_cut(self, options: Sequence[str] = ()) -> bool:
        """Return whether the text ends here or after whitespace, in one of `options` or a marker that ends the call.

        One character alone is no part of a marker.
        """
        start = self._skip_blanks() if self.ended else len(self._text)
        longest = max(self.stops.longest, *map(len, options), 0)
        if not 1 < len(self._text) - start < longest:
            return False
        rest = self._text[start:]
        return self.stops.partial(rest) or any(option.startswith(rest) for option in options)

    def drop_cut(self, options: Sequence[str] = ()) -> bool:
        """Read the part of such a marker after a call that the end of the text cut off; return whether one was read."""
        if not self._told or not self.at_cut(options):
            return False
        self.take(len(self.rest))
        if self._state == "holding":
            self._state = "between"
        self.settle()
        return True

    # ---- for grammars: telling

    def begin(self) -> None:
        """Note that a call may begin here."""
        if self._state != "holding" and not self._told:
            self.give_back()
        self._state = "holding"
        self._whole = False
        self._losses.clear()

    def name(self, name: str, call_id: str = "") -> bool:
        """Set the tool of the call, when it is certain that it is a call; return whether the tool is declared.

        The arguments of a call to an undeclared tool are words. `call_id` is the id that the model wrote of the call.
        """
        known = self.declared.resolve(name)
        if known is None:
            self._state = "words"
            self._refused = True
            self.pieces.append(TextPiece("".join(self._held)))
        else:
            self._state = "call"
            self.called = True
            self.pieces += (CallStart(known, call_id), *self._losses)
        self._told = known is not None
        self._clear()
        return known is not None

    def reopen(self) -> None:
        """Note that the opening marker of another call may follow: it is no word, whatever the call before was."""
        if not self._told:
            self.give_back()
            self._state = "holding"

    def schema(self, name: str) -> JSON:
        """Return the schema of the arguments of the tool `name`."""
        return self.declared.schema(name)

    def arguments(self, text: str) -> None:
        """Add to the arguments."""
        if self._state == "call" and text:
            self.pieces.append(ArgumentsPiece(text))

    def complete(self) -> None:
        """Note that the arguments are complete."""
        self._whole = True

    def end(self) -> None:
        """Note that the call is over."""
        if self._state == "call":
            self.pieces.append(CallEnded(whole=self._whole))
        self._state = "between"

    def lost(self, what: str, why: str, how: Literal["dropped", "approximated"] = "dropped") -> None:
        """Note that `what` the model wrote of a call has no place in one, or not as it was."""
        if self._state == "holding":
            self._losses.append(LossPiece(what, how, why))
        elif self._state == "call" or (self._state == "between" and self._told):
            self.pieces.append(LossPiece(what, how, why))

    # ----

    def _skip_blanks(self) -> int:
        found = _BLANK.match(self._text, self._at, self._at + LONGEST_BLANK + 1)
        return self._at if found is None else found.end()

    def _note(self, text: str) -> None:
        self.read += len(text)
        if self._recorded is not None:
            self._recorded.append(text)
            if self.read > LONGEST_ECHO:
                self._recorded = None
        if self._state == "words" or (self._state == "between" and not self._told):
            self.pieces.append(TextPiece(text))
        elif self._state != "call":
            self._held.append(text)
            self._held_size += len(text)
            if self._held_size > LONGEST_HELD:
                raise MismatchError

    def _clear(self) -> None:
        self._held.clear()
        self._held_size = 0
