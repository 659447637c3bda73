"""Rounds between the model and executed tools, as one answer.

Theory of operation. In each round the model is called with functions in place of the executed tools. Its calls of them
become calls of hosted tools in the answer, and are executed as soon as their arguments are complete, several at once.
What follows them in the round is held back until they are done, so that each result stands after its call. Then the
model is called again, with its own turn and the results added to the conversation. The answer ends with a round without
such calls, with a call of one of the client's own functions, or when a limit is reached or a budget refuses a further
round: then it ends as a turn that the provider paused. Usage is the sum of all rounds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer
from xenoglot.backends.wrappers.fanout import UsageSum
from xenoglot.gateway.tool_execution.history import function_history, function_result
from xenoglot.gateway.tool_execution.outcome import ToolOutcome
from xenoglot.model.content import Citation, HostedCall, HostedResult, SearchResult, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Failed,
    Finished,
    HostedProgress,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.fold import Folder, unfold_part
from xenoglot.model.request import Message, ToolChoice
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.tool_execution.request_tools import RequestTools
    from xenoglot.model.content import ToolResult
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request

_GOES_ON: Final = frozenset({"tool_calls", "stop", "unknown"})
"""Reasons of a round that ended with whole calls."""
_NUMBER: Final = re.compile(r"\[(\d{1,4})\]")
MOST_CITATIONS: Final = 100
"""Citations of one block of text."""


class RoundCall(Protocol):
    """The request of a client, and its rounds."""

    request: Request
    losses: Losses

    def change(self, request: Request) -> None:
        """Send `request` in place of the client's."""
        ...

    async def affords(self, request: Request, used: Usage) -> bool:
        """Reserve what the call may cost with the next round; return whether the budgets allow it.

        `used` is what the rounds before have used.
        """
        ...

    async def follow_up(self, request: Request) -> Answer | None:
        """Send the request of the next round, and return its answer as it begins; `None` if limits refuse it."""
        ...


class ToolRounds:
    """The rounds of one request, and their one answer."""

    def __init__(self, tools: RequestTools, call: RoundCall) -> None:
        self._tools = tools
        self._call = call
        self._usage = UsageSum()
        self._answer: Answer | None = None
        self._round: _Round | None = None

    async def begin(self, ask: Callable[[], Awaitable[Answer]]) -> EventAnswer:
        """Return the answer as it begins; `ask` gives that of the first round.

        Raises:
            FailureError: there is none. `WireError` and `LossError` alike.
        """
        try:
            request = await self._tools.prepare()
            request = replace(request, messages=function_history(request.messages, self._tools))
            self._tools.note_losses(self._call.losses)
            self._call.change(request)
            self._answer = first = await ask()
        except BaseException:
            await self._tools.aclose()
            raise
        batches = self._batches(request, _events(first))

        async def aclose() -> None:
            await batches.aclose()
            await self._close()

        return EventAnswer(batches=batches, aclose=aclose, limits=first.limits, request_id=first.request_id)

    async def _batches(self, request: Request, answer: EventAnswer) -> AsyncGenerator[Sequence[Event]]:
        number, used, last = 0, Usage(), False
        while True:
            one = self._round = _Round(self._tools, self._usage, number, used)
            async for batch in answer.batches:
                if events := one.feed(batch):
                    yield events
                if one.broken:
                    return
            self._answer = None
            await answer.aclose()
            used = one.used
            if not one.executions:
                return
            async for late in one.results():
                yield late
            tokens = (used.input_tokens or 0) + (used.output_tokens or 0)
            last = last or tokens >= self._tools.max_tokens or number > self._tools.most_rounds
            if last or not one.goes_on:
                yield one.end()
                return
            last = self._tools.exhausted
            request = one.next_request(request)
            number += 1
            self._answer = following = await self._next(request, used)
            if following is None:
                yield one.end()
                return
            answer = _events(following)

    async def _next(self, request: Request, used: Usage) -> Answer | None:
        """Return the answer of the next round as it begins; `None` if budgets or limits do not allow it."""
        return await self._call.follow_up(request) if await self._call.affords(request, used) else None

    async def _close(self) -> None:
        if self._round is not None:
            self._round.cancel()
        if self._answer is not None:
            await self._answer.aclose()
        await self._tools.aclose()


def _events(answer: Answer) -> EventAnswer:
    if isinstance(answer, ByteAnswer):
        raise TypeError("a call without a body of its own is answered in events")
    return answer


class _Execution:
    """A call of the round: its part, and the task that executes it once its arguments are complete."""

    def __init__(self, call: ToolCall, part: HostedCall) -> None:
        self.call = call
        self.part = part
        self.arguments = [call.arguments] if call.arguments else []
        self.task: asyncio.Task[ToolOutcome] | None = None


class _Round:
    """One round: events of the upstream in, events for the client out."""

    def __init__(self, tools: RequestTools, usage: UsageSum, number: int, used: Usage) -> None:
        self.executions: list[_Execution] = []
        self.used = used
        """What this round and those before have used."""
        self.broken = False
        self._tools = tools
        self._usage = usage
        self._number = number
        self._folder = Folder()
        self._held: list[Event | _Execution] = []
        self._open: _Execution | None = None
        self._text: list[str] | None = None
        self._finish: Finished | None = None
        self._client_calls = False
        self._results: list[ToolResult] = []

    @property
    def goes_on(self) -> bool:
        """Whether the model is to be called again: it called executed tools alone."""
        reason = None if self._finish is None else self._finish.finish.reason
        return not self._client_calls and reason in _GOES_ON

    def feed(self, batch: Sequence[Event]) -> list[Event]:
        """Return the events of a batch that are sent now."""
        sent: list[Event] = []
        for event in batch:
            self._folder.feed(event)
            for made in self._changed(event):
                if isinstance(made, Failed):
                    self.broken = True
                    self.cancel()
                    sent.append(made)
                elif isinstance(made, _Execution) or self._held:
                    self._held.append(made)
                else:
                    sent.append(made)
        return sent

    async def results(self) -> AsyncGenerator[Sequence[Event]]:
        """Yield what was held back, and after each call its result, as soon as it exists."""
        ready: list[Event] = []
        for one in self._held:
            if not isinstance(one, _Execution):
                ready.append(one)
                continue
            if ready:
                yield ready
            ready = list(await self._result(one))
        if ready:
            yield ready

    def end(self) -> Sequence[Event]:
        """Return the end of the answer, where calls were the last of it."""
        if self._finish is None:
            return ()
        if self._client_calls or self._finish.finish.reason not in _GOES_ON:
            return (self._finish,)
        return (replace(self._finish, finish=Finish(reason="pause")),)

    def next_request(self, request: Request) -> Request:
        """Return the request of the next round: the model's turn and the results are added to it."""
        turn = Message(role="assistant", content=tuple(self._folder.content(0)))
        results = Message(role="tool", content=tuple(self._results))
        choice = request.tool_choice
        if self._tools.exhausted:
            choice = ToolChoice(mode="none")
        elif choice is not None and choice.mode == "required":
            choice = None
        return replace(request, messages=(*request.messages, turn, results), tool_choice=choice)

    def cancel(self) -> None:
        """Cancel calls that are being executed."""
        for one in self.executions:
            if one.task is not None:
                one.task.cancel()

    def _changed(self, event: Event) -> Iterator[Event | _Execution]:
        match event:
            case Started():
                if self._number == 0:
                    yield event
            case UsageReported(usage=usage):
                self.used = self._usage.put(self._number, usage)
                yield UsageReported(usage=self.used)
            case Finished() if self.executions:
                self._finish = event
            case BlockStarted():
                yield self._block_started(event)
            case TextDelta(text=text) if self._text is not None:
                self._text.append(text)
                yield event
            case ArgumentsDelta(text=text) if self._open is not None:
                self._open.arguments.append(text)
                yield event
            case BlockEnded():
                yield from self._block_ended(event)
            case _:
                yield event

    def _block_started(self, event: BlockStarted) -> Event:
        call = event.part
        if isinstance(call, Text) and self._tools.sources:
            self._text = [call.text]
        if not isinstance(call, ToolCall):
            return event
        function = self._tools.functions.get(call.name)
        if function is None:
            self._client_calls = True
            return event
        part = HostedCall(
            id=call.id, kind=function.kind, name=function.name, server=function.server, arguments=call.arguments
        )
        self._open = _Execution(call, part)
        return replace(event, part=part)

    def _block_ended(self, event: BlockEnded) -> Iterator[Event | _Execution]:
        execution, text = self._open, self._text
        self._open = self._text = None
        if execution is not None:
            whole = event.part.arguments if isinstance(event.part, ToolCall) else "".join(execution.arguments)
            execution.part = replace(execution.part, arguments=whole)
            execution.task = self._tools.start(execution.call.name, whole)
            self.executions.append(execution)
            yield HostedProgress(candidate=event.candidate)
            yield execution
            return
        if text is None:
            yield event
            return
        citations = tuple(_citations("".join(text), self._tools.sources))
        for citation in citations:
            yield CitationDelta(citation=citation, candidate=event.candidate)
        if isinstance(event.part, Text):
            event = replace(event, part=replace(event.part, citations=(*event.part.citations, *citations)))
        yield event

    async def _result(self, execution: _Execution) -> Iterator[Event]:
        """Return the end of a call, and its result."""
        call, part = execution.call, execution.part
        outcome = ToolOutcome() if execution.task is None else await execution.task
        first = len(self._tools.sources) + 1
        self._tools.sources += [one for one in outcome.content if isinstance(one, SearchResult)]
        self._results.append(function_result(call.id, call.name, outcome, first))
        result = HostedResult(
            call_id=part.id, kind=part.kind, name=part.name, content=outcome.content, error=outcome.error
        )
        return iter((BlockEnded(), *unfold_part(result)))


def _citations(text: str, sources: Sequence[SearchResult]) -> Iterator[Citation]:
    """Yield a citation for each number of a source in the text."""
    for count, found in enumerate(_NUMBER.finditer(text)):
        number = int(found[1])
        if count >= MOST_CITATIONS:
            return
        if 1 <= number <= len(sources) and (source := sources[number - 1]).url is not None:
            start, end = found.span()
            yield Citation(kind="url_citation", url=source.url, title=source.title, start=start, end=end)
