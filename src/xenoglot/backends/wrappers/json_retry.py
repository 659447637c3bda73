"""Retries an answer that is not valid JSON with the error in the prompt; nothing is emitted before it is valid.

A failed stream, a refusal and an answer that was cut are final: a retry would not help, and costs.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from xenoglot.backends.wrappers.fanout import UsageSum, failure_of
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.events import Event, Failed, Finished, Ping, Started, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder, merge_usage
from xenoglot.model.request import Message
from xenoglot.text.json.check import JSONFault, JSONFaultMonitor, let_pass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from xenoglot.backends.backend import Call, EventAnswer
    from xenoglot.backends.wrappers.emulation_settings import Emulate
    from xenoglot.model.content import Part
    from xenoglot.model.response import Usage
    from xenoglot.text.json.prompting import JSONPrompt
    from xenoglot.text.json.schema import JSONSchema

LARGEST: Final = 33_554_432
"""The most that is held of one try, in characters and what stands around them."""

_PER_EVENT: Final = 64
_REFUSALS: Final = (FailureError, WireError, LossError)
_Outcome: TypeAlias = "list[Event] | Failed"


class JSONCall(NamedTuple):
    """A call for an answer in JSON: `prompt` is the request for the model, `schema` what the answer must match."""

    call: Call
    prompt: JSONPrompt
    schema: JSONSchema


class JSONRetry:
    """An answer to `request` that is checked: `first` is the model's first answer.

    `ask` calls the model again, up to `retries` times for each candidate; `lenient` always returns the last answer.
    """

    def __init__(
        self, first: EventAnswer, request: JSONCall, ask: Callable[[Call], Awaitable[EventAnswer]], policy: Emulate
    ) -> None:
        self.batches = self._batches()
        self._open: EventAnswer | None = first
        self._call = request.call
        self._prompt = request.prompt
        self._schema = request.schema
        self._call_backend = ask
        self._retries = policy.retries
        self._lenient = policy.lenient
        self._counts = UsageSum()
        self._total: Usage | None = None
        self._tries = 0

    async def aclose(self) -> None:
        """Stop at once; does nothing the second time."""
        await self.batches.aclose()
        answer, self._open = self._open, None
        if answer is not None:
            await answer.aclose()

    async def _batches(self) -> AsyncGenerator[Sequence[Event]]:
        """Yield the complete answer when it is valid."""
        answer, self._open = self._open, None
        if answer is None:
            return
        first = await self._read(answer)
        yield first.events if first.failed else await self._settled(first)

    async def _settled(self, first: _Try) -> Sequence[Event]:
        """Return the events of the answer, each candidate as its last try has it."""
        candidates = first.candidates()
        for index in sorted(candidates.keys() - first.verdicts.keys()):
            self._accept(first, index, index)
        for index, verdict in first.verdicts.items():
            outcome = await self._retry_until_valid(first, index, verdict)
            if isinstance(outcome, Failed):
                return [first.started, *self._usage(), outcome]
            candidates[index] = outcome
        events = [event for index in sorted(candidates) for event in candidates[index]]
        ends = [place for place, event in enumerate(events) if isinstance(event, Finished)]
        last = ends[-1] if ends else len(events)
        return [first.started, *events[:last], *self._usage(), *events[last:]]

    def _usage(self) -> Sequence[Event]:
        return () if self._total is None else (UsageReported(usage=self._total),)

    async def _retry_until_valid(self, taken: _Try, index: int, verdict: JSONFault) -> _Outcome:
        """Ask again until the candidate is valid; return its events, or why there are none."""
        turns: list[Message] = []
        place, tries = index, 1
        while verdict.cut is None and tries <= self._retries:
            turns += _retry_turns(taken.content(place), verdict)
            again = await self._retry(turns)
            if isinstance(again, Failed):
                return again
            taken, place, tries = again, 0, tries + 1
            if 0 not in taken.verdicts:
                return self._accept(taken, place, index)
            verdict = taken.verdicts[0]
        if not self._lenient:
            return Failed(failure=verdict.failure(tries))
        let_pass(verdict, index, self._call.losses)
        return self._accept(taken, place, index)

    def _accept(self, taken: _Try, place: int, index: int) -> list[Event]:
        """Return the candidate `place` of a try as the candidate `index` of the whole; what it lost is lost now."""
        for loss in taken.losses:
            if loss.where == f"$.candidates[{place}]":
                note = getattr(self._call.losses, loss.how)
                note(f"$.candidates[{index}]", loss.what, loss.why)
        events = taken.candidates().get(place, [])
        return events if place == index else [replace(event, candidate=index) for event in events]

    async def _retry(self, turns: Sequence[Message]) -> _Try | Failed:
        request = self._call.request
        sampling = replace(request.sampling, n=None)
        messages = (*request.messages, *turns)
        places = _added_paths(len(request.messages), turns)
        losses = self._call.losses.moved({**self._prompt.moved, **places})
        again = replace(request, messages=messages, sampling=sampling)
        try:
            taken = await self._read(await self._call_backend(replace(self._call, request=again, losses=losses)))
        except _REFUSALS as error:
            return Failed(failure=failure_of(error))
        if taken.failed:
            return taken.failed
        if not taken.finished:
            return Failed(
                failure=Failure(kind="upstream", message="connection lost: the answer ended without being complete")
            )
        return taken

    async def _read(self, answer: EventAnswer) -> _Try:
        """Read a try to its end."""
        taken = _Try(self._prompt, self._schema)
        self._open = answer
        try:
            async with aclosing(_events(answer)) as events:
                async for event in events:
                    taken.feed(event)
                    if taken.failed:
                        break
            taken.close()
        finally:
            self._open = None
            await answer.aclose()
        if taken.usage is not None:
            summed = self._counts.put(self._tries, taken.usage)
            self._total = summed if self._tries else taken.usage
        self._tries += 1
        return taken


async def _events(answer: EventAnswer) -> AsyncGenerator[Event]:
    async for batch in answer.batches:
        for event in batch:
            yield event


class _Try:
    """One answer of the model, as it came and as it is read."""

    def __init__(self, asked: JSONPrompt, schema: JSONSchema) -> None:
        self.events: list[Event] = []
        self.verdicts: dict[int, JSONFault] = {}
        self.failed: Failed | None = None
        self.finished = False
        self.usage: Usage | None = None
        self.started = Started()
        self.losses = Losses()  # of a try that nobody may ever see
        self._folder = Folder()
        self._reading = asked.reading(self.losses)
        self._judge = JSONFaultMonitor(schema)
        self._size = 0

    def feed(self, event: Event) -> None:
        self._size += _PER_EVENT + len(getattr(event, "text", ""))
        if self._size > LARGEST:
            failure = Failure(kind="upstream", message=f"the answer is longer than {LARGEST} characters")
            event = Failed(failure=failure)
        self._folder.feed(event)
        for read in self._reading.feed(event):
            self._record(read)

    def close(self) -> None:
        for read in self._reading.close():
            self._record(read)

    def content(self, candidate: int) -> tuple[Part, ...]:
        """Return a candidate as the model gave it: so it gets it back."""
        return self._folder.response().candidates[candidate].content

    def candidates(self) -> dict[int, list[Event]]:
        """Return the events that belong to candidates, by these."""
        found: dict[int, list[Event]] = {}
        for event in self.events:
            if not isinstance(event, Started | UsageReported | Failed | Ping):
                found.setdefault(event.candidate, []).append(event)
        return found

    def _record(self, event: Event) -> None:
        self.events.append(event)
        verdict = self._judge.feed(event)
        match event:
            case Finished(candidate=index):
                self.finished = True
                if verdict is not None:
                    self.verdicts[index] = verdict
            case Failed():
                self.failed = event
            case Started():
                self.started = event
            case UsageReported(usage=usage):
                self.usage = merge_usage(self.usage, usage)
            case _:
                pass


def _retry_turns(content: tuple[Part, ...], verdict: JSONFault) -> list[Message]:
    """Return the turns after an answer that is not valid: the answer, and its problems."""
    said = Text(text=verdict.told())
    calls = [part for part in content if isinstance(part, ToolCall)]
    results = tuple(ToolResult(call_id=call.id, content=(said,), is_error=True, name=call.name) for call in calls)
    words = tuple(part for part in content if not isinstance(part, Text) or part.text)  # servers refuse empty ones
    turns = [Message(role="assistant", content=words)] if words else []
    return [*turns, Message(role="tool", content=results) if results else Message(role="user", content=(said,))]


def _added_paths(before: int, turns: Sequence[Message]) -> dict[str, str | None]:
    """Return the paths of the added turns: they are not the client's, so it cannot lose them."""
    return {
        f"$.messages[{before + index}].content[{place}]": None
        for index, turn in enumerate(turns)
        for place in range(len(turn.content))
    }
