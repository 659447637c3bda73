"""Parses the text of a model by the syntax of its family into text, reasoning and tool calls, incrementally.

Stages that convert the runtime's text of one candidate to events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from xenoglot.codec.requests.custom_tools import PARAMETERS, UnwrapCustom
from xenoglot.codec.stage import Pipeline
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import BlockEnded, BlockStarted, Finished, TextDelta
from xenoglot.model.request import Tool
from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.stage import TextStage
from xenoglot.text.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.engine.server.model_traits import ModelTraits
    from xenoglot.model.content import Logprob
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request
    from xenoglot.model.response import Finish


class CandidateStage(Protocol):
    """A stage from the runtime's text to the events of one candidate, without its `Finished`."""

    def feed(self, text: str, logprobs: tuple[Logprob, ...]) -> Sequence[Event]:
        """Add text; return the new events."""
        ...

    def close(self, finish: Finish) -> tuple[Sequence[Event], Finish]:
        """End the candidate for the reason `finish`; return the events held back, and the finish reason."""
        ...


class PlainTextStage:
    """A stage that emits text unchanged, as one text block."""

    def __init__(self, candidate: int) -> None:
        self._candidate = candidate
        self._open = False

    def feed(self, text: str, logprobs: tuple[Logprob, ...]) -> Sequence[Event]:
        """Return a delta; before the first, the start of the block."""
        if not text and not logprobs:
            return ()
        started = () if self._open else (BlockStarted(part=Text(text=""), candidate=self._candidate),)
        self._open = True
        return (*started, TextDelta(text=text, logprobs=logprobs, candidate=self._candidate))

    def close(self, finish: Finish) -> tuple[Sequence[Event], Finish]:
        """End the block, if there is one."""
        return (BlockEnded(candidate=self._candidate),) if self._open else (), finish


class ParsedTextStage:
    """A stage from one candidate's text to its blocks. `request` holds the tools that the prompt describes.

    `held`: a grammar allows nothing but calls after a call. `losses` records `logprobs` of text that is not shown as
    text.
    """

    def __init__(  # noqa: PLR0913  each is of another kind
        self,
        candidate: int,
        manner: ModelTraits,
        request: Request,
        identify: Callable[[], str],
        losses: Losses,
        *,
        held: bool,
    ) -> None:
        self._candidate = candidate
        self._plain = PlainTextStage(candidate)
        stage = TextStage(_syntax(manner, request), _declared(request), lambda _candidate, _call: identify(), losses)
        self._stage = Pipeline(stage, UnwrapCustom(request))
        self._held = held
        self._called = False

    def feed(self, text: str, logprobs: tuple[Logprob, ...]) -> Sequence[Event]:
        """Take more text; return what it made."""
        events = [made for event in self._plain.feed(text, logprobs) for made in self._stage.feed(event)]
        self._called = self._called or any(isinstance(event, BlockStarted) and _is_call(event) for event in events)
        return events

    def close(self, finish: Finish) -> tuple[Sequence[Event], Finish]:
        """End the candidate; the calls in it may be why it ended."""
        ending, finish = self._plain.close(finish)
        last = (*ending, Finished(finish=finish, candidate=self._candidate))
        *events, finished = [made for event in last for made in self._stage.feed(event)]
        return _without_words(events) if self._held and self._called else events, finished.finish


def _is_call(event: BlockStarted) -> bool:
    return isinstance(event.part, ToolCall)


def _without_words(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events without a block of words, which is the beginning of a marker that was cut."""
    begun = next((at for at, event in enumerate(events) if isinstance(event, BlockStarted)), len(events))
    return events[:begun]


def _syntax(manner: ModelTraits, request: Request) -> Syntax:
    """Return the family's row; without tools only its reasoning is parsed."""
    row = manner.syntax or Syntax(name="thoughts", title="thoughts", source="the chat template")
    row = replace(row, thoughts=() if manner.thoughts is None else (manner.thoughts,))
    return row if request.tools else replace(row, calls=(), slips=())


def _declared(request: Request) -> DeclaredTools:
    tools = [tool for tool in request.tools if isinstance(tool, Tool)]
    return DeclaredTools.of([replace(tool, parameters=PARAMETERS) if tool.kind == "custom" else tool for tool in tools])
