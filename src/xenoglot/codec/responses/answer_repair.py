"""Repairs answers of servers: finish reasons that are missing or wrong, and ids of calls that are not unique.

A whole body is a whole answer, and `[DONE]` ends a stream, whether or not a finish reason was sent before it.

Servers that give no ids get derived ones, which are alike from turn to turn where their answers have no ids either;
some servers count their calls from zero in each answer. Clients find results by the id, and some servers reject
duplicate ids. The new id follows from the history and the answer, so it is the same whenever both are read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import REPORTED, TOLERATED, Loss
from xenoglot.model.content import ToolCall, ToolResult
from xenoglot.model.events import BlockEnded, BlockStarted, Finished
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Extra, Part
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request
    from xenoglot.model.response import Candidate, Response


def with_finish(response: Response, losses: Losses, *, unfinished: bool = False) -> Response:
    """Return a whole answer in which each candidate has a finish; each that had none is a loss.

    Where its dialect has `unfinished` answers, one without a finish remains one. What the server reports is a loss too.
    """
    told = True
    for index, candidate in enumerate(response.candidates):
        if candidate.extra is not None:
            _note_tolerated(candidate.extra, index, losses)
        told = told and _is_told(candidate)
    if told or unfinished:
        return response
    candidates = tuple(_finished(candidate) for candidate in response.candidates)
    for index, candidate in enumerate(candidates):
        if candidate.finish is not None:
            _note(candidate.finish, index, losses)
    return replace(response, candidates=candidates)


def note_finishes(events: Iterable[Event], losses: Losses) -> None:
    """Record a loss for each assumed finish among `events`, and for what was tolerated."""
    for event in [event for event in events if type(event) is Finished]:
        _note(event.finish, event.candidate, losses)
        _note_tolerated(event.extra, event.candidate, losses)


class FinishLosses:
    """A stage that passes events on and records a loss for each assumed finish."""

    __slots__ = ("_losses",)

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Take one event and return it."""
        note_finishes((event,), self._losses)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Return nothing: nothing is buffered."""
        return ()


def _is_told(candidate: Candidate) -> bool:
    return candidate.finish is not None and candidate.finish.raw != ""


def _finished(candidate: Candidate) -> Candidate:
    if _is_told(candidate):
        return candidate
    calls = any(isinstance(part, ToolCall) for part in candidate.content)
    return replace(candidate, finish=Finish(reason="tool_calls" if calls else "unknown", assumed=True))


def _note(finish: Finish, index: int, losses: Losses) -> None:
    if finish.assumed:
        why = f"the server sent no finish reason; `{finish.reason}` is assumed"
        losses.approximated(f"$.candidates[{index}]", "finish", why)


def _note_tolerated(extra: Extra | None, index: int, losses: Losses) -> None:
    if extra is None or not extra.form:
        return
    for what, why in extra.form.get(TOLERATED, {}).items():
        losses.approximated(f"$.candidates[{index}]", what, why)
    if REPORTED in extra.form:
        losses.extend(Loss(f"$.candidates[{index}]", *one) for one in extra.form[REPORTED])


def has_calls(response: Response) -> bool:
    """Whether there is a call, or the result of one, in `response`."""
    for candidate in response.candidates:
        for part in candidate.content:
            kind = type(part)
            if kind is ToolCall or kind is ToolResult:
                return True
    return False


_LONGEST = 56
"""Characters of an id before its number: OpenAI takes 64."""


class UniqueIds:
    """A stage that renames calls of an answer to `request`; it reads the history at the first call."""

    __slots__ = ("_known", "_numbers", "_renamed", "_request")

    def __init__(self, request: Request | None) -> None:
        self._request = request
        self._known: set[str] | None = None  # ids in the history, and in the answer
        self._numbers: dict[str, int] = {}  # the last number after each id
        self._renamed: dict[tuple[int, str], str] = {}  # the ids of calls in the answer, as they are now

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event, its call (or the result of one) with an id that no other call has."""
        if isinstance(event, BlockStarted):
            part = self._begun(event.part, event.candidate)
            return (event if part is event.part else replace(event, part=part),)
        if isinstance(event, BlockEnded) and event.part is not None:
            part = self._told(event.part, event.candidate)
            return (event if part is event.part else replace(event, part=part),)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Return nothing: nothing is buffered."""
        return ()

    def response(self, response: Response) -> Response:
        """Return a whole answer as `feed` leaves its events; the same object where no id is taken."""
        if not has_calls(response):  # most answers
            return response
        candidates = list(response.candidates)
        for index, candidate in enumerate(candidates):
            content = tuple([self._begun(part, index) for part in candidate.content])
            if any(new is not old for new, old in zip(content, candidate.content, strict=True)):
                candidates[index] = replace(candidate, content=content)
        if all(new is old for new, old in zip(candidates, response.candidates, strict=True)):
            return response
        return replace(response, candidates=tuple(candidates))

    def _begun(self, part: Part, candidate: int) -> Part:
        if isinstance(part, ToolCall):
            known = self._ids()
            call_id = self._free(part.id, known) if part.id in known else part.id
            known.add(call_id)
            self._renamed[candidate, part.id] = call_id
        return self._told(part, candidate)

    def _told(self, part: Part, candidate: int) -> Part:
        if isinstance(part, ToolCall):
            call_id = self._renamed.get((candidate, part.id), part.id)
            return part if call_id == part.id else replace(part, id=call_id)
        if isinstance(part, ToolResult):
            call_id = self._renamed.get((candidate, part.call_id), part.call_id)
            return part if call_id == part.call_id else replace(part, call_id=call_id)
        return part

    def _ids(self) -> set[str]:
        if self._known is None:
            messages = () if self._request is None else self._request.messages
            self._known = {part.id for message in messages for part in message.content if isinstance(part, ToolCall)}
        return self._known

    def _free(self, call_id: str, known: set[str]) -> str:
        number = self._numbers.get(call_id, 1)
        while (made := f"{call_id[:_LONGEST]}_{(number := number + 1)}") in known:
            pass
        self._numbers[call_id] = number
        return made
