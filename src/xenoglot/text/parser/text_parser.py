"""Parser that splits the text of an answer into text, reasoning and tool calls, incrementally.

Theory of operation. Among words, markers are looked for: those that open reasoning, those that begin calls, control
tokens. What may become a marker is held back. From a marker of calls on, every form that begins with it is tried side
by side, each on its own copy of the text, until one has read the name of a declared tool: that one continues alone. If
none does, what they read is words. In reasoning only its end is looked for (and calls, where the family has them
there). Whitespace before all words belongs to the markup around it: it is held until it is known what
follows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.text.output_pieces import CallStart, ReasoningEnded, ReasoningPiece, TextPiece, joined
from xenoglot.text.parser.format_run import FormatRun
from xenoglot.text.parser.marker_index import BEFORE, QUOTED, counts, table
from xenoglot.text.parser.parser_input import LONGEST_BLANK, ParserInput
from xenoglot.text.strip_citations import StripCitations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece
    from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, TextParser

SLICE: Final = 4096
"""Characters that are looked at together: what has been read is cut off their front, and that has to stay cheap."""

_SENTENCE: Final = re.compile(r"[.!?…。！？]\s*\Z")  # noqa: RUF001  as models write them

_HTML: Final = frozenset({"</s>"})

_BREAKS: Final = re.compile(r"[ \t\r\n]{1,16}\Z")
"""Whitespace before the end of reasoning; more than models write is part of it."""


def parser(syntax: Syntax, declared: DeclaredTools, *, thinking: bool | None = None) -> TextParser:
    """Return a stage from text to pieces for one answer in `syntax`, in which the tools `declared` may be called.

    `thinking` is whether the request wants reasoning, where it specifies that: the prompt then began one, or did not.
    """
    made = MarkerParser(syntax, declared, thinking=thinking) if syntax.own is None else syntax.own(declared)
    return StripCitations(made) if syntax.citations else made


class MarkerParser:
    """A stage from text to pieces, for a syntax that is made of sections of calls and reasoning between words."""

    def __init__(self, syntax: Syntax, declared: DeclaredTools, *, thinking: bool | None = None) -> None:
        self._table = table(syntax, calls=bool(declared))
        self._declared = declared
        self._text = ""
        self._made: list[Piece] = []
        self._attempts: list[FormatRun] = []
        self._thoughts: ReasoningSyntax | None = None  # what is open
        self._fresh = True  # there are no words since the beginning, or since the last markup
        self._marked = False  # there was markup before
        self._last = "\n"  # the last characters that were words, as many as `BEFORE`
        self._checked = 0  # up to here the text holds no marker that counts
        self._lead = False  # the blanks that come now belong to the marker before them
        self._opening = False  # the marker that opens the thought may come again
        self._mused = False  # there was a thought
        self._called = False  # there was a call
        self._spoken = False  # the beginning of a call was left among the words: what ends it is spoken of, too
        self._stopped = False  # the model ended the text of itself
        self._thoughts = next((thoughts for thoughts in syntax.thoughts if thoughts.begun(thinking)), None)
        self._lead = self._opening = self._thoughts is not None

    def feed(self, text: str, /) -> Sequence[Piece]:
        """Take more text; return what it made."""
        if text and self._idle and self._table.words.absent(text):
            self._last = (self._last + text)[-BEFORE:]
            return (TextPiece(text),)
        return self._run(text, ended=False)

    @property
    def _idle(self) -> bool:
        """Whether nothing is held, and what comes are words, or the beginning of a marker."""
        return not self._text and not self._attempts and not self._fresh and self._thoughts is None

    def close(self, *, stopped: bool = False) -> Sequence[Piece]:
        """Return what was held back: the text is over. `stopped`: the model ended it; no limit cut it off."""
        for attempt in self._attempts:
            attempt.section.stopped = stopped
        self._stopped = stopped
        return self._run("", ended=True)

    def _run(self, text: str, *, ended: bool) -> Sequence[Piece]:
        made: list[Piece] = []
        for start in range(0, len(text), SLICE):
            made += self._take(text[start : start + SLICE], ended=False)
        if ended:
            made += self._take("", ended=True)
        return joined(made)

    def _take(self, text: str, *, ended: bool) -> Sequence[Piece]:
        self._made = []
        if self._attempts:
            for attempt in self._attempts:
                attempt.section.more(text)
        else:
            self._text += text
        going = True
        while going:
            if self._attempts:
                going = self._try(ended=ended)
            elif self._thoughts is not None:
                going = self._think(self._thoughts, ended=ended)
            else:
                going = self._read_words(ended=ended)
        return self._made

    # ---- words

    def _read_words(self, *, ended: bool) -> bool:
        """Give out words up to the next marker; return whether the text read so far allows another step."""
        if self._lead and not self._skip_lead():
            return False
        start = self._blanks() if self._fresh else 0
        if self._fresh and start == len(self._text) <= LONGEST_BLANK:
            self._end_blank(ended=ended)
            return False
        place, marker = self._table.words.find(self._text, max(self._checked, start), ended=ended)
        if self._fresh and place == start < len(self._text) and not marker:
            return False  # it may become a marker, and decides what the blanks before it are
        if self._fresh and start < len(self._text) and (forms := self._bare(start, marker if place == start else "")):
            self._begin(start, forms)
            return True
        if not marker:
            self._say(place)
            return False
        return self._take_marker(place, marker, ended=ended)

    def _blanks(self) -> int:
        return len(self._text) - len(self._text.lstrip())

    def _end_blank(self, *, ended: bool) -> None:
        """Hold text that is only whitespace; at the end it is markup where markup came before."""
        if ended:
            if self._text and not self._marked:
                self._made.append(TextPiece(self._text))
            self._text = ""

    def _bare(self, start: int, marker: str) -> Sequence[CallSyntax]:
        """Return the forms that may begin at `start`, where no word came yet."""
        if self._checked > start or not self._declared:
            return ()
        bare, marked = self._table.bare(self._text[start]), self._table.forms(marker)
        return (*bare, *marked) if bare and bool(marker) == bool(marked) else ()

    def _take_marker(self, place: int, marker: str, *, ended: bool) -> bool:
        at_start = self._fresh and not self._text[:place].strip()
        before = (self._last + self._text[max(0, place - BEFORE) : place])[-BEFORE:]
        at_line = at_start or before.endswith("\n")
        if not at_start and QUOTED.search(before) is not None:
            return self._pass_over(place, marker)
        if self._removable(marker):
            return self._take_dropped(place, marker, at_start=at_start, ended=ended)
        if (thoughts := self._table.opening(marker, start=at_start)) is not None:
            self._open(place, marker, thoughts)
            return True
        forms = self._counting(marker, before, start=at_start, line=at_line)
        if forms:
            self._begin(place, forms)
            return True
        if marker in self._table.orphans:
            return self._take_orphan(place, marker, ended=ended)
        return self._pass_over(place, marker)

    def _counting(self, marker: str, before: str, *, start: bool, line: bool) -> Sequence[CallSyntax]:
        """Return the forms that `marker` begins where it stands, after `before`."""
        sentence = not self._called and (start or _SENTENCE.search(before) is not None)
        forms = self._table.forms(marker)
        return [form for form in forms if counts(form.place, start=start, line=line, sentence=sentence)]

    def _pass_over(self, place: int, marker: str) -> bool:
        """Leave a marker among the words. Where it opens reasoning, the marker that ends it is also text."""
        self._mused = self._mused or self._table.opening(marker, start=True) is not None
        self._speak(marker)
        self._checked = place + 1
        return True

    def _speak(self, marker: str) -> None:
        """Note that a marker of calls was left as text."""
        self._spoken = self._spoken or marker in self._table.speaking

    def _removable(self, marker: str) -> bool:
        """Return whether `marker` is a control token that is neither text nor the beginning of anything."""
        return marker in self._table.dropped or (marker in self._table.strays and not self._spoken)

    def _take_dropped(self, place: int, marker: str, *, at_start: bool, ended: bool) -> bool:
        """Remove a control token; whitespace before it that no word precedes is still held.

        One that is a tag of HTML too (`</s>`) counts only after markup, and where nothing follows it.
        """
        if not at_start and marker in _HTML:
            if self._text[place + len(marker) :]:
                return self._pass_over(place, marker)
            if not ended:
                self._say(place)
                return False
        if not at_start:
            self._say(place)
            place = 0
        if marker in self._table.headers:
            self._after_markup(place + len(marker))
            return True
        self._text = self._text[:place] + self._text[place + len(marker) :]
        self._checked = 0
        self._marked = True
        return True

    def _take_orphan(self, place: int, marker: str, *, ended: bool) -> bool:
        """Remove the end of reasoning that never began: once, where no words precede it, or an end follows it.

        Such an end is that of the line, or of the words: a call. A call that ended the reasoning left it without its
        own. What only a tokenizer writes is removed in every place.
        """
        behind = place + len(marker)
        following, call = self._table.words.find(self._text, behind, ended=ended)
        at_start = self._fresh and not self._text[:place].strip()
        if not ended and (behind == len(self._text) or (following == behind and not call)):
            self._say(0 if at_start else place)
            return False
        at_end = self._text[behind : behind + 1] in ("", "\n", "\r")
        at_call = following == behind and bool(self._table.forms(call))
        if self._mused or not (at_start or at_end or at_call):
            if marker in self._table.ends:
                return self._take_dropped(place, marker, at_start=at_start, ended=ended)
            self._checked = place + 1
            return True
        self._say(0 if at_start else place)
        self._mused = True
        self._lead = at_start or self._last.endswith("\n")  # blanks behind it part the words, where nothing else does
        self._after_markup(len(marker) + (place if at_start else 0))
        return True

    def _begin(self, place: int, forms: Sequence[CallSyntax]) -> None:
        """Try `forms` from `place` on. Whitespace before it waits with them, if there are no words."""
        if not self._fresh or self._text[:place].strip():
            self._say(place)
            place = 0
        self._try_from(place, forms)

    def _try_from(self, place: int, forms: Sequence[CallSyntax]) -> None:
        blanks, text = self._text[:place], self._text[place:]
        alone = (self._last + blanks).rstrip(" \t")[-1:] in ("", "\n")
        self._attempts = [self._attempt(form, text, alone=alone) for form in forms]
        self._text = blanks

    def _attempt(self, form: CallSyntax, text: str, *, alone: bool) -> FormatRun:
        section = ParserInput(self._declared, self._table.stops(form), self._table.others(form))
        section.stopped = self._stopped
        section.more(text)
        return FormatRun(form, section, alone=alone)

    def _say(self, count: int) -> None:
        """Make words of the first `count` characters."""
        if not count:
            return
        said, self._text = self._text[:count], self._text[count:]
        self._checked = max(0, self._checked - count)
        self._made.append(TextPiece(said))
        self._last = (self._last + said)[-BEFORE:]
        self._fresh = False

    def _after_markup(self, count: int) -> None:
        self._text = self._text[count:]
        self._checked = 0
        self._fresh = self._marked = True
        self._last = "\n"

    # ---- thoughts

    def _open(self, place: int, marker: str, thoughts: ReasoningSyntax) -> None:
        if not self._fresh or self._text[:place].strip():
            self._say(place)
            place = 0
        self._after_markup(place + len(marker))
        self._thoughts = thoughts
        self._lead = self._opening = True

    def _think(self, thoughts: ReasoningSyntax, *, ended: bool) -> bool:
        """Emit reasoning up to its end."""
        if self._opening and not self._skip_opening(thoughts, ended=ended):
            return False
        if self._lead and not self._skip_lead() and not ended:
            return False
        markers = self._table.thinking(thoughts)
        place, marker = markers.find(self._text, self._checked, ended=ended)
        inner = self._text[:place]
        kept = inner if ended and not marker else _BREAKS.sub("", inner)  # line breaks before the end belong to it
        if marker in thoughts.close or marker in thoughts.until:
            self._muse(kept)
            self._end_thought(place + len(marker))
        elif self._removable(marker):
            self._text = inner + self._text[place + len(marker) :]
        elif marker:
            self._call_in_thought(thoughts, place, marker, len(kept))
        else:
            self._muse(kept)
            self._text = self._text[len(kept) :]
            self._checked = max(0, self._checked - len(kept))
            if ended:
                self._end_thought(0)
        return bool(marker)

    def _call_in_thought(self, thoughts: ReasoningSyntax, place: int, marker: str, kept: int) -> None:
        before = (self._last + self._text[max(0, place - BEFORE) : place])[-BEFORE:]
        at_line = before.endswith("\n")
        forms = self._counting(marker, before, start=at_line, line=at_line)
        inner = thoughts.line and before.rstrip().endswith(self._table.begins)  # of a call that did not count
        if not forms or inner or QUOTED.search(before) is not None or (thoughts.line and not at_line):
            self._speak(marker)
            self._checked = place + 1
            return
        self._muse(self._text[:kept])
        self._text = self._text[kept:]
        self._try_from(place - kept, forms)

    def _skip_lead(self) -> bool:
        """Skip the whitespace after a marker; return whether there is anything else."""
        self._text = self._text.lstrip()
        self._lead = not self._text
        return not self._lead

    def _skip_opening(self, thoughts: ReasoningSyntax, *, ended: bool) -> bool:
        """Skip markers that open the reasoning again, as prompt or model did; return whether that is done."""
        while self._opening:
            self._text = self._text.lstrip()
            place, marker = self._table.opens(thoughts).find(self._text, 0, ended=ended)
            if place == 0 and not marker and not ended:
                return False
            self._opening = place == 0 and bool(marker)
            self._text = self._text[len(marker) :] if self._opening else self._text
        self._marked = True
        return True

    def _muse(self, text: str) -> None:
        if text:
            self._made.append(ReasoningPiece(text))
            self._last = (self._last + text)[-BEFORE:]

    def _end_thought(self, count: int) -> None:
        self._made.append(ReasoningEnded())
        self._thoughts = None
        self._lead = self._mused = True
        self._after_markup(count)

    # ---- calls

    def _try(self, *, ended: bool) -> bool:
        """Let the forms continue reading; once one form or none is left, continue from there."""
        for attempt in self._attempts:
            attempt.advance(ended=ended)
        chosen = next((attempt for attempt in self._attempts if attempt.section.decided), None)
        waiting = not all(attempt.over or attempt.section.refused for attempt in self._attempts)
        if chosen is None and waiting and not ended:
            return False
        if chosen is None:
            chosen = self._best_refusal()
        self._attempts = [chosen]
        self._give(chosen)
        return chosen.over

    def _best_refusal(self) -> FormatRun:
        """Return the one that read a call to an undeclared tool; else the one that read most."""
        refused = [attempt for attempt in self._attempts if attempt.section.refused]
        return refused[0] if refused else max(self._attempts, key=lambda attempt: attempt.section.read)

    def _give(self, attempt: FormatRun) -> None:
        """Take what the chosen form has made; when it is over, continue with what it left."""
        pieces, attempt.section.pieces = attempt.section.pieces, []
        blanks = self._text
        if pieces:
            self._text = ""
            self._called = self._called or attempt.section.called
            attempt.spoken = isinstance(pieces[0], TextPiece) if attempt.spoken is None else attempt.spoken
            self._spoken = self._spoken or (attempt.marked and attempt.spoken)
            if isinstance(pieces[0], TextPiece) and blanks:  # they stood before words after all
                pieces = [TextPiece(blanks), *pieces]
            self._made += self._in_thought(pieces) if self._thoughts is not None else pieces
            self._note_last(pieces[-1])
        if attempt.over:
            self._marked = self._marked or attempt.section.empty
            self._attempts = []
            self._checked = 0 if attempt.section.read else len(self._text) + 1  # nothing was read: no form begins there
            self._text += attempt.section.rest

    def _in_thought(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """Return the pieces made from text in reasoning: a call ends it, words were part of it."""
        if any(isinstance(piece, CallStart) for piece in pieces):
            self._thoughts = None
            return [ReasoningEnded(), *pieces]
        return [ReasoningPiece(piece.text) if isinstance(piece, TextPiece) else piece for piece in pieces]

    def _note_last(self, piece: Piece) -> None:
        if isinstance(piece, TextPiece):
            self._fresh = False
            self._last = piece.text[-BEFORE:]
        else:
            self._fresh = self._marked = True
