"""Stage that turns tool calls and reasoning written as text into blocks of their own.

Theory of operation. The words of a candidate are one text, however many blocks and deltas they came in; a parser reads
it, and what it makes becomes blocks. A delta in which the parser finds nothing leaves as the event that came. What is
no text passes, after what was held back before it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.text.output_pieces import (
    ArgumentsPiece,
    CallEnded,
    CallStart,
    LossPiece,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
)
from xenoglot.text.parser.text_parser import parser
from xenoglot.text.payloads.repaired import repairing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Logprob, Part
    from xenoglot.model.events import Event
    from xenoglot.model.response import Finish
    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece
    from xenoglot.text.payloads.repaired import Repair
    from xenoglot.text.syntax import Syntax

Identify: TypeAlias = "Callable[[int, int], str]"
"""Candidate and number of a call in it -> its id."""

_ID: Final = re.compile(r"[\w.:-]{1,128}")
_NUMBERED: Final = re.compile(r"(.+:)(\d{1,6})")

_STOPPED: Final = ("stop", "unknown")
"""Why an answer ended that was not cut off."""


class TextStage:
    """A stage over events. `declared` are the tools that text may call; `identify` gives each call its id.

    With `repair`, arguments are held until they are whole, and repaired where they are not JSON; `losses` reports it
    unless it is `silent`. `thinking` is whether the request wants reasoning, where it specifies that.
    """

    def __init__(  # noqa: PLR0913  what a policy is made of
        self,
        syntax: Syntax,
        declared: DeclaredTools,
        identify: Identify,
        losses: Losses,
        *,
        repair: Repair | None = None,
        silent: bool = False,
        thinking: bool | None = None,
        taken: Iterable[str] = (),
    ) -> None:
        self._making = (syntax if repair is None else repairing(syntax, repair), declared, thinking)
        self._ids = ToolCallIds(identify, taken)
        self._losses = losses
        self._repair = repair
        self._silent = silent
        self._candidates: dict[int, _Candidate] = {}

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Take one event; return what it made."""
        match event:
            case TextDelta() | CitationDelta() | BlockStarted() | BlockEnded() | Finished():
                return self._candidate(event.candidate).feed(event)
            case Failed():
                return (*self.close(), event)
            case _:
                return (event,)

    def close(self) -> Sequence[Event]:
        """Return what was held back of candidates without an end."""
        return [event for candidate in self._candidates.values() for event in candidate.flush()]

    def _candidate(self, index: int) -> _Candidate:
        found = self._candidates.get(index)
        if found is None:
            syntax, declared, thinking = self._making
            calls = _Calls(index, declared, self._ids, self._losses, self._repair, silent=self._silent)
            found = _Candidate(index, syntax, declared, calls, thinking=thinking)
            self._candidates[index] = found
        return found


class ToolCallIds:
    """The ids of calls: as the model wrote them, each once in a conversation (`taken` are those before), or made."""

    def __init__(self, identify: Identify, taken: Iterable[str] = ()) -> None:
        self._identify = identify
        self._taken = set(taken)
        self._next: dict[str, int] = {}  # what stands before the number of an id -> the next number to try

    def of(self, candidate: int, number: int, written: str) -> str:
        """Return the id of the call that is `number` in `candidate`, of which the model wrote the id `written`."""
        if not _ID.fullmatch(written):
            return self._identify(candidate, number)
        if written in self._taken and (found := _NUMBERED.fullmatch(written)) is not None:
            written = self._numbered(found[1], int(found[2]) + 1)
        elif written in self._taken:
            return self._identify(candidate, number)
        self._taken.add(written)
        return written

    def _numbered(self, stem: str, least: int) -> str:
        """Return an id of the same kind with the next number that is free."""
        number = max(least, self._next.get(stem, 0))
        while f"{stem}{number}" in self._taken:
            number += 1
        self._next[stem] = number + 1
        return f"{stem}{number}"


class _Calls:
    """What becomes of the calls of one candidate: ids, losses, repaired arguments."""

    def __init__(  # noqa: PLR0913  as above
        self,
        candidate: int,
        declared: DeclaredTools,
        ids: ToolCallIds,
        losses: Losses,
        repair: Repair | None,
        *,
        silent: bool,
    ) -> None:
        self.count = 0
        self.cut = False
        self._candidate = candidate
        self._declared = declared
        self._ids = ids
        self._losses = losses
        self._repair = repair
        self._silent = silent
        self._name = ""
        self._held: list[str] = []

    @property
    def _where(self) -> str:
        return f"$.candidates[{self._candidate}]"

    def begin(self, name: str, written: str) -> ToolCall:
        """Return the call that begins; `written` is its id as the model wrote it, if it did."""
        tool = self._declared.tool(name)
        call_id = self._ids.of(self._candidate, self.count, written)
        self.count += 1
        self._name = name
        self._held.clear()
        return ToolCall(id=call_id, name=tool.name, namespace=tool.namespace)

    def add(self, text: str) -> str:
        """Return what of the arguments can leave now."""
        if self._repair is None:
            return text
        self._held.append(text)
        return ""

    def end(self, *, whole: bool) -> str:
        """Return what of the arguments was held."""
        self.cut = self.cut or not whole
        if self._repair is None:
            return ""
        text = "".join(self._held)
        mended = self._repair(text, self._declared.schema(self._name))
        if mended is None or mended == text:
            return text
        if not self._silent:
            self._losses.approximated(self._where, "arguments", "they were not a JSON object and were repaired")
        return mended

    def lost(self, piece: LossPiece) -> None:
        """Note what of a call was not kept as it was."""
        if piece.how == "dropped":
            self._losses.dropped(self._where, piece.what, piece.why)
        elif not self._silent:
            self._losses.approximated(self._where, piece.what, piece.why)

    def logprobs_lost(self) -> None:
        """Note that likelihoods stood on text that is none any more."""
        self._losses.dropped(self._where, "logprobs", "the text they belong to is a call or reasoning")

    def citations_lost(self) -> None:
        """Note that citations stood in a text that is none any more."""
        self._losses.dropped(self._where, "citations", "the text they belong to is a call or reasoning")

    def broken(self) -> None:
        """Note a call whose arguments never ended, in an answer that did."""
        self._losses.approximated(self._where, "tool_call", "the model ended its answer in the midst of it")


class _Candidate:
    """One answer."""

    def __init__(
        self, index: int, syntax: Syntax, declared: DeclaredTools, calls: _Calls, *, thinking: bool | None
    ) -> None:
        self._index = index
        self._making = (syntax, declared)
        self._parser = parser(syntax, declared, thinking=thinking)
        self._calls = calls
        self._header: Text | None = None  # of a text block that has not begun to be written
        self._open: type[Part] | None = None  # the block of ours that is open
        self._over = False
        self._foreign = False  # a block that is no text is open
        self._same = True  # the text block that is open is, so far, the one that came
        self._unsaid = True  # no text came yet in the block that is open there
        self._logprobs: tuple[Logprob, ...] = ()
        self._stale = False  # some of them came with an earlier event
        self._cited: list[CitationDelta] = []  # citations that came in the midst of a call or a thought
        self._marked = False  # no words since the last call or thought

    def feed(self, event: TextDelta | CitationDelta | BlockStarted | BlockEnded | Finished) -> Sequence[Event]:
        if self._foreign:
            self._foreign = not isinstance(event, BlockEnded)
            return (event,)
        match event:
            case TextDelta():
                return self._read(event)
            case BlockStarted():
                return self._start(event)
            case BlockEnded():
                return self._end_text(event)
            case CitationDelta():
                return self._cite(event)
            case Finished():
                events = self.flush(stopped=event.finish.reason in _STOPPED)
                self._over = True
                return (*events, replace(event, finish=self._finish(event.finish)))

    def flush(self, *, stopped: bool = False) -> list[Event]:
        """Give out what is held back, and end the open block."""
        events = [] if self._over else self._write(self._parser.close(stopped=stopped))
        self._header = None
        self._lose_logprobs()
        if self._cited:
            self._calls.citations_lost()
            self._cited.clear()
        return events + self._leave()

    def _start(self, event: BlockStarted) -> Sequence[Event]:
        part = event.part
        if not isinstance(part, Text):
            self._foreign = True
            events = self.flush()
            self._parser = parser(*self._making, thinking=False)  # what comes behind it began in no prompt
            return (*events, event)
        going_on = self._open not in (None, Text)  # in the midst of a call or a thought, which may go on
        events = [] if going_on else self._leave()
        said = part.text
        self._header = replace(part, text="") if said else part
        self._unsaid = not said
        self._same = self._unsaid and not going_on
        return events + self._write(self._parser.feed(said)) if said else events

    def _read(self, event: TextDelta) -> Sequence[Event]:
        pieces = self._parser.feed(event.text)
        self._unsaid = self._unsaid and not event.text
        if (
            len(pieces) == 1
            and isinstance(words := pieces[0], TextPiece)
            and words.text == event.text
            and not self._logprobs
        ):
            return (*self._enter_text(), event)
        self._same = False
        self._stale = bool(self._logprobs)
        self._logprobs += event.logprobs
        return self._write(pieces)

    def _end_text(self, event: BlockEnded) -> Sequence[Event]:
        """End a block that leaves as it came; the words of any other may continue."""
        if self._open is Text and self._same:
            self._open = self._header = None
            return (event,)
        if self._unsaid and isinstance(event.part, Text) and event.part.text:  # it came whole, at the end of its block
            self._same = False
            return self._write(self._parser.feed(event.part.text))
        if self._header is None or not self._same:
            return ()
        return (*self._enter_text(), *self._leave())

    def _write(self, pieces: Sequence[Piece]) -> list[Event]:
        events: list[Event] = []
        for piece in pieces:
            match piece:
                case TextPiece(text=text):
                    logprobs = self._take_logprobs()
                    events += [*self._enter_text(), TextDelta(text=text, logprobs=logprobs, candidate=self._index)]
                case ReasoningPiece(text=text):
                    events += [*self._enter(Reasoning()), ReasoningDelta(text=text, candidate=self._index)]
                case CallStart(name=name, id=written):
                    events += self._enter(self._calls.begin(name, written))
                case ArgumentsPiece(text=text):
                    events += self._argue(self._calls.add(text))
                case CallEnded(whole=whole):
                    events += [*self._argue(self._calls.end(whole=whole)), *self._leave()]
                case ReasoningEnded():
                    events += self._leave() if self._open is Reasoning else ()
                case LossPiece():
                    self._calls.lost(piece)
        return events

    def _argue(self, text: str) -> Sequence[Event]:
        return (ArgumentsDelta(text=text, candidate=self._index),) if text else ()

    def _cite(self, event: CitationDelta) -> Sequence[Event]:
        """Pass a citation on; in a call or in reasoning it waits for words."""
        if self._open is None or self._open is Text:
            return (*self._enter_text(), event)
        self._cited.append(event)
        return ()

    def _enter_text(self) -> Sequence[Event]:
        """Open a text block, unless one is open."""
        if self._open is Text:
            return ()
        header, self._header = self._header or Text(text=""), None
        cited, self._cited = self._cited, []
        return (*self._enter(header), *cited)

    def _enter(self, header: Part) -> list[Event]:
        """Open a block; reasoning continues in the one that is open."""
        if self._open is Reasoning and isinstance(header, Reasoning):
            return []
        if not isinstance(header, Text):
            self._lose_logprobs()
            self._marked = True
        events = self._leave()
        self._open = type(header)
        return [*events, BlockStarted(part=header, candidate=self._index)]

    def _take_logprobs(self) -> tuple[Logprob, ...]:
        """Return the likelihoods of the words that leave; after a call or reasoning some may be those of markup."""
        if self._marked and self._stale:
            self._lose_logprobs()
        taken, self._logprobs = self._logprobs, ()
        self._marked = False
        return taken

    def _lose_logprobs(self) -> None:
        if self._logprobs:
            self._calls.logprobs_lost()
            self._logprobs = ()

    def _leave(self) -> list[Event]:
        if self._open is None:
            return []
        self._open = None
        return [BlockEnded(candidate=self._index)]

    def _finish(self, finish: Finish) -> Finish:
        """Return why the answer ended: for its calls, if it made any and was not broken off."""
        if not self._calls.count or finish.reason not in _STOPPED:
            return finish
        if self._calls.cut:
            self._calls.broken()
        return replace(finish, reason="tool_calls", raw=None, dialect=None)
