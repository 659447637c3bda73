"""Validates a JSON answer against the requested schema, and describes its faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.model.content import Refusal, Text, ToolCall
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Failed, Finished, TextDelta
from xenoglot.model.failure import Failure
from xenoglot.text.json.schema import JSONSchema, SchemaProblem

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.response import FinishReason

LONGEST: Final = 4_194_304
"""The most characters of an answer that is looked at."""

_NOT_FINAL: Final[tuple[FinishReason, ...]] = ("refusal", "pause", "compaction", "tool_calls")
_CUT: Final = {
    "length": "it was cut at `max_tokens` before its JSON was whole",
    "context": "the context window was full before its JSON was whole",
}
_TOO_LONG: Final = SchemaProblem("$", f"at most {LONGEST} characters", "more")


class JSONFault(Struct, frozen=True):
    """Why an answer is not what the request wants; `cut`: it was truncated, which a retry does not repair."""

    problems: Sequence[SchemaProblem]
    cut: str | None = None

    @property
    def reason(self) -> str:
        """The first problem, in words without any of the answer."""
        return self.cut or str(self.problems[0])

    def failure(self, tries: int = 1) -> Failure:
        """Return why there is no answer, after as many tries; clients that ask again by themselves need not."""
        asked = f" (asked {tries} times)" if tries > 1 else ""
        message = f"the model's answer is not what was asked for: {self.reason}{asked}"
        return Failure(kind="upstream", message=message, non_retryable=tries > 1 or self.cut is not None)

    def told(self) -> str:
        """Return the message to the model for its next attempt."""
        listed = "\n".join(f"- {problem}" for problem in self.problems)
        return f"That is not valid:\n{listed}\n\nGive the whole answer again, mended, and nothing else."


class JSONFaultMonitor:
    """Looks on while an answer grows, and knows at the end of a candidate what is wrong with it.

    An answer that declines, calls tools, or is to be continued is not checked.
    """

    __slots__ = ("_candidates", "_schema")

    def __init__(self, schema: JSONSchema) -> None:
        self._schema = schema
        self._candidates: dict[int, _Said] = {}

    def feed(self, event: Event, /) -> JSONFault | None:
        """Take one event; return what is wrong, where it ends a candidate that is not as it should be."""
        match event:
            case BlockStarted() | TextDelta() | BlockEnded():
                self._said(event.candidate).feed(event)
            case Finished():
                return self._verdict(event, self._said(event.candidate))
            case _:
                pass
        return None

    def _said(self, candidate: int) -> _Said:
        return self._candidates.setdefault(candidate, _Said())

    def _verdict(self, event: Finished, said: _Said) -> JSONFault | None:
        reason = event.finish.reason
        if said.other or reason in _NOT_FINAL:
            return None
        problems = (_TOO_LONG,) if said.size > LONGEST else self._schema.problems(said.text())
        return JSONFault(problems, _CUT.get(reason)) if problems else None


class _Said:
    """The words of one candidate; `other`: something stood in place of an answer."""

    __slots__ = ("_block", "_pieces", "other", "size")

    def __init__(self) -> None:
        self.other = False
        self.size = 0
        self._block: int | None = None  # the size before the text that is open
        self._pieces: list[str] = []

    def text(self) -> str:
        return "".join(self._pieces)

    def feed(self, event: BlockStarted | TextDelta | BlockEnded) -> None:
        match event:
            case BlockStarted(part=Text(text=text)):
                self._block = len(self._pieces)
                self._add(text)
            case BlockStarted(part=part):
                self._block = None
                self.other = self.other or isinstance(part, Refusal | ToolCall)
            case TextDelta(text=text):
                if self._block is not None:
                    self._add(text)
            case BlockEnded(part=Text(text=text)) if self._block is not None:
                del self._pieces[self._block :]  # the whole of the block, where the wire says it once more
                self._add(text)
            case _:
                pass

    def _add(self, text: str) -> None:
        self.size += len(text)
        if self.size <= LONGEST:
            self._pieces.append(text)


class JSONCheck:
    """A stage that fails a stream whose answer turns out not to be what the request wants.

    What it passes on cannot be taken back: the failure takes the place of the answer's end. `lenient` lets it end,
    and `losses` reports the failure.
    """

    __slots__ = ("_failed", "_judge", "_lenient", "_losses")

    def __init__(self, schema: JSONSchema, losses: Losses, *, lenient: bool) -> None:
        self._judge = JSONFaultMonitor(schema)
        self._losses = losses
        self._lenient = lenient
        self._failed = False

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Pass an event on."""
        if self._failed:
            return ()
        verdict = self._judge.feed(event)
        if verdict is None or not isinstance(event, Finished):
            return (event,)
        if self._lenient:
            let_pass(verdict, event.candidate, self._losses)
            return (event,)
        self._failed = True
        return (Failed(failure=verdict.failure()),)

    def close(self) -> Sequence[Event]:
        """Nothing is held back."""
        return ()


def let_pass(verdict: JSONFault, candidate: int, losses: Losses) -> None:
    """Report an answer that is passed on although it is not what the request wants."""
    losses.approximated(f"$.candidates[{candidate}]", "text", f"not in the requested format: {verdict.reason}")
