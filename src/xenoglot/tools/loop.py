"""The tool loop: call the model, run its tool calls, send the results, repeat; a generator of effects.

Theory of operation. `steps` yields effects and is sent their results; a driver performs them, and knows nothing of the
loop. All decisions are made here, from the request, the options and the results, time included. At every moment the
transcript so far can be sent again, with a result for each call: an answer with calls is added together with their
results; if a run ends in between, the results state that.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from msgspec.structs import replace

from xenoglot.errors import ConfigurationError, failure_error
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message, Request, Tool, ToolChoice
from xenoglot.policy.token_estimate import estimate
from xenoglot.tools.compaction import Compaction, replace_results, shorten, summary_request
from xenoglot.tools.effects import (
    Approve,
    CallModel,
    Cancelled,
    Execute,
    FinishedCall,
    ModelAnswer,
    ReadClock,
    ReportEvent,
)
from xenoglot.tools.events import (
    AnswerAborted,
    ApprovalReceived,
    ApprovalRequested,
    CallEnded,
    Compacted,
    Continued,
    MessagesAdded,
    RoundEnded,
    RoundStarted,
    RunEnded,
)
from xenoglot.tools.loop_steps import CANCELLED, OVERFLOW, EndError, Steps, expect, is_overflow
from xenoglot.tools.resolve_calls import Calls
from xenoglot.tools.result import Outcome, RunResult
from xenoglot.tools.spend import SpendCounter
from xenoglot.tools.tool import Approval
from xenoglot.tools.tool_output import failed, result_of
from xenoglot.tools.transcript import distinct, ids_in, is_truncated, join_parts, relaxed, reminder, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Loss
    from xenoglot.model.content import Part
    from xenoglot.model.response import Response
    from xenoglot.tools.budget import RunSpend
    from xenoglot.tools.effects import PreparedCall
    from xenoglot.tools.run_options import RunOptions
    from xenoglot.tools.tool import LocalTool
    from xenoglot.tools.tool_output import ToolOutput

MOST_PIECES: Final = 16
"""Most answers that one message is joined from."""

MOST_PARALLEL: Final = 16
"""Most parallel calls."""

_Pause: TypeAlias = Literal["length", "pause", "compaction"]

_REFUSED: Final = "the model, or a filter, declined"
_KILLED: Final = "not run: the run ended before it came to this"


class ToolLoop:
    """One run; `steps` is the generator. `messages` can be read at any time.

    Raises:
        ConfigurationError: two tools have the same name, or the request cannot start a loop.
    """

    def __init__(self, request: Request, tools: Sequence[LocalTool], rules: RunOptions) -> None:
        if request.prompt is not None or (request.sampling.n or 1) > 1:
            raise ConfigurationError(
                "a tool loop needs `messages` and one answer per request: no `prompt`, and no `n` above 1"
            )
        self._rules = rules
        declared = tuple(tool.spec for tool in tools)
        ours = {tool.name for tool in declared}
        others = tuple(tool for tool in request.tools if not isinstance(tool, Tool) or tool.name not in ours)
        strange = next((tool.name for tool in others if isinstance(tool, Tool)), None)
        if strange is not None:
            raise ConfigurationError(
                f"the tool `{strange}` has no function here: pass a function, or a tool that the upstream runs"
            )
        self._request = replace(request, tools=(*declared, *others))
        self._calls = Calls(tools, rules.time_limit)
        self._messages = replace_results(request.messages, _KILLED)
        self._ids = ids_in(self._messages)
        self._choice = request.tool_choice
        self._account = SpendCounter(rules)
        self._window = rules.window
        self._response: Response | None = None
        self._losses: dict[Loss, None] = {}
        self._rounds = self._ran = 0
        self._open: Message | None = None
        self._outputs: dict[str, ToolOutput] = {}
        self._partial: tuple[Part, ...] = ()
        """The received part of an incomplete message."""
        self._limit_reason: str | None = None
        """The budget that refused a call."""
        self._last = False
        """Whether the final answer was requested already."""

    @property
    def spent(self) -> RunSpend:
        """The usage so far."""
        return self._account.spent

    def spend(self, more: RunSpend) -> None:
        """Add the usage of a tool."""
        self._account.spend(more)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The transcript so far, complete messages only."""
        return self._messages

    def steps(self) -> Steps[RunResult]:
        """Run."""
        failure = None
        try:
            yield from self._run()
        except EndError as end:
            outcome, reason, failure = end.outcome, end.reason, end.failure
        else:
            outcome, reason = "answered", "the model was done"
        yield from self._close(f"not run: {reason}")
        if self._partial:
            yield from self._add_reminder(self._partial)
        result = RunResult(
            outcome=outcome,
            reason=reason,
            response=self._response,
            messages=self._messages,
            rounds=self._rounds,
            calls=self._ran,
            usage=self._account.usage,
            spent=self._account.spent,
            failure=failure,
            losses=tuple(self._losses),
        )
        yield ReportEvent(event=RunEnded(result=result))
        return result

    def _run(self) -> Steps[None]:
        yield from self._check_time()
        while calls := (yield from self._turn()):
            self._choice = relaxed(self._choice)
            if self._rounds >= self._rules.max_rounds:
                yield from self._stop_at_limit("limit", f"the limit of {self._rules.max_rounds} rounds is reached")
            yield from self._answer(calls)

    # --- one turn of the model

    def _turn(self) -> Steps[Sequence[ToolCall | FinishedCall]]:
        """Get one message from the model, in as many answers as needed; return its calls."""
        going: str | None = None
        for _ in range(MOST_PIECES):
            before = self._partial
            response = yield from self._call_model(before, reminded=going == "length")
            candidate = response.candidates[0]
            piece = distinct(candidate.content, self._ids)
            grown = join_parts(before, piece, trim=going == "length")
            self._response = replace(response, candidates=(replace(candidate, content=grown),))
            reason = "unknown" if candidate.finish is None else candidate.finish.reason
            if calls := [part for part in piece if isinstance(part, ToolCall)]:
                self._partial, self._open = (), Message(role="assistant", content=grown)
                return self._callable(calls, reason)
            if not self._continues(reason, before, grown):
                return (yield from self._add_text_turn(grown, reason))
            self._partial, going = grown, reason
            yield ReportEvent(event=Continued(round=self._rounds, reason=cast("_Pause", reason)))
        return (yield from self._add_text_turn(self._partial, "length"))

    def _continues(self, reason: str, before: tuple[Part, ...], grown: tuple[Part, ...]) -> bool:
        """Return whether the message is incomplete and may be continued."""
        if self._rounds >= self._rules.max_rounds:
            return False
        if reason == "length":  # where nothing came of it, nothing will
            return self._rules.continue_length and text_of(grown) != text_of(before)
        return reason in ("pause", "compaction")

    def _add_text_turn(self, content: tuple[Part, ...], reason: str) -> Steps[Sequence[ToolCall | FinishedCall]]:
        """Add a message without calls; end the run unless the model stopped for another reason."""
        if content:
            yield from self._add_reminder(content)
        match reason:
            case "refusal":
                raise EndError("refused", _REFUSED)
            case "length" | "pause" | "compaction":
                raise EndError("limit", "the answer was cut off: it reached the longest length of an answer")
            case "context":
                raise EndError("failed", OVERFLOW.message, OVERFLOW)
            case _:
                return ()

    def _callable(self, calls: Sequence[ToolCall], reason: str) -> Sequence[ToolCall | FinishedCall]:
        """Return the calls of an answer; truncated calls get an error as their result."""
        if reason == "refusal":
            raise EndError("refused", _REFUSED)
        if reason not in ("length", "context"):
            return calls
        told = failed("not run: your answer was cut off in the middle of this call; write a shorter one")
        return [
            FinishedCall(call=call, output=told) if is_truncated(call, last=call is calls[-1]) else call
            for call in calls
        ]

    def _call_model(self, turn: tuple[Part, ...], *, reminded: bool) -> Steps[Response]:
        """Return one answer; `turn` is the part of the message received before."""
        begun = (Message(role="assistant", content=turn), *((reminder(),) if reminded else ())) if turn else ()
        if self._rules.compaction is not None:
            yield from self._compact_if_needed(begun)
        asked = yield from self._round(begun)
        if (
            self._rules.compaction is not None
            and is_overflow(asked)
            and (yield from self._shrink(begun, asked.failure))
        ):
            asked = yield from self._round(begun)
        if asked.failure is not None or asked.response is None or not asked.response.candidates:
            failure = asked.failure or Failure(kind="upstream", message="there was no answer in what came")
            raise EndError("failed", str(failure_error(failure)), failure)
        self._rounds += 1
        yield ReportEvent(event=RoundEnded(round=self._rounds, response=asked.response))
        return asked.response

    def _round(self, begun: tuple[Message, ...]) -> Steps[ModelAnswer]:
        """Call the model; a truncated answer is requested again, as long as the retry policy allows it."""
        request = replace(self._request, messages=(*self._messages, *begun), tool_choice=self._choice)
        ask = CallModel(request=request)
        while True:
            ask = replace(ask, request=self._sized(request))
            yield ReportEvent(event=RoundStarted(round=self._rounds + 1))
            asked = yield from self._send(ask)
            if asked.failure is None or asked.retry_after is None:
                return asked
            yield ReportEvent(event=AnswerAborted(round=self._rounds + 1, failure=asked.failure))
            ask = replace(ask, attempts=ask.attempts + 1, wait=asked.retry_after)

    def _send(self, ask: CallModel) -> Steps[ModelAnswer]:
        """Call the model once, and count its usage."""
        asked = expect(ModelAnswer, (yield replace(ask, seconds=self._account.seconds_left)))
        self._losses.update(dict.fromkeys(asked.losses))
        if asked.response is not None:
            self._account.count(ask.request, asked.response)
        if asked.cancelled:
            if not ask.internal:
                self._keep_partial(asked.response)
            raise EndError("cancelled", CANCELLED)
        yield from self._check_time()
        if asked.failure is not None and self._account.seconds_left == 0:
            raise EndError("budget", f"the budget of {self._rules.budget.seconds} seconds is spent")
        return asked

    def _keep_partial(self, response: Response | None) -> None:
        """Keep the text of a cancelled answer, without its calls and reasoning, which are incomplete."""
        content = response.candidates[0].content if response is not None and response.candidates else ()
        said = tuple(part for part in content if isinstance(part, Text) and part.text.strip())
        if said:
            self._partial, self._response = join_parts(self._partial, said, trim=True), response

    def _sized(self, request: Request) -> Request:
        """Return the request with `max_tokens` within the budget; end the run if none are left."""
        sized = self._account.size_request(request)
        if isinstance(sized, str):
            raise EndError("budget", sized)
        return sized

    # --- the calls of one turn

    def _answer(self, asked: Sequence[ToolCall | FinishedCall]) -> Steps[None]:
        """Run the calls, in parallel if allowed, and add them with their results."""
        waiting = deque(asked)
        while waiting:
            group = self._calls.group(waiting, MOST_PARALLEL if self._rules.parallel else 1)
            for _ in group:
                waiting.popleft()
            yield from self._check_time()
            ready: list[PreparedCall | FinishedCall] = []
            for call in group:
                ready.append((yield from self._prepared(call, sum(not isinstance(one, FinishedCall) for one in ready))))
            calls = tuple(self._account.is_in_time(one) for one in ready)  # questions take time
            outputs = expect(tuple, (yield Execute(calls=calls, round=self._rounds, limit=self._rules.result_limit)))
            for one, output in zip(calls, outputs, strict=True):
                self._outputs[one.call.id] = output
                if not isinstance(one, FinishedCall):
                    self._calls.record(one.call, output)
                    self._ran += 1
                    self._account.call()
        yield from self._close(_KILLED)
        yield from self._check_time()
        if self._limit_reason is not None:
            yield from self._stop_at_limit("budget", self._limit_reason)

    def _prepared(self, one: ToolCall | FinishedCall, running: int) -> Steps[PreparedCall | FinishedCall]:
        """Return the call ready to run, or its result if it cannot run."""
        if isinstance(one, FinishedCall):
            return one
        found = self._calls.ready(one)
        if isinstance(found, FinishedCall):
            return found
        if (reason := self._account.tool_call_refusal(running)) is not None:
            self._limit_reason = reason
            return FinishedCall(call=one, output=failed(f"not run: {reason}"))
        if not found.tool.needs_approval:
            return found
        yield ReportEvent(event=ApprovalRequested(call=one))
        approval = expect(Approval, (yield Approve(call=one)))
        yield ReportEvent(event=ApprovalReceived(call=one, approval=approval))
        yield from self._check_time()
        return self._calls.approved(found, approval)

    def _close(self, note: str) -> Steps[None]:
        """Add the message with calls, and a result for each; `note` for calls without one."""
        message, self._open = self._open, None
        if message is None:
            return
        outputs, self._outputs = self._outputs, {}
        results: list[Message] = []
        for call in message.content:
            if isinstance(call, ToolCall):
                output = outputs.get(call.id)
                if output is None:
                    output = failed(note)
                    yield ReportEvent(event=CallEnded(call=call, output=output))
                results.append(Message(role="tool", content=(result_of(call, output),)))
        yield from self._add(message, *results)

    def _stop_at_limit(self, outcome: Outcome, reason: str) -> Steps[None]:
        """End the run with calls that are not run; with `on_limit="answer"` after one more model call."""
        yield from self._close(f"not run: {reason}")
        if self._rules.on_limit == "answer" and not self._last:
            self._last = True
            self._choice = ToolChoice(mode="none")
            try:
                yield from self._turn()
            except EndError as end:
                if end.outcome in ("cancelled", "refused"):
                    raise
                raise EndError(outcome, reason, end.failure) from None
        raise EndError(outcome, reason)

    # --- what both need

    def _add_reminder(self, content: tuple[Part, ...]) -> Steps[None]:
        self._partial = ()
        yield from self._add(Message(role="assistant", content=content))

    def _add(self, *messages: Message) -> Steps[None]:
        self._messages = (*self._messages, *messages)
        yield ReportEvent(event=MessagesAdded(messages=messages))

    def _check_time(self) -> Steps[None]:
        """Read the clock; end the run if it is cancelled."""
        now = yield ReadClock()
        if isinstance(now, Cancelled):
            raise EndError("cancelled", CANCELLED)
        self._account.tick(expect(float, now))

    def _compact_if_needed(self, begun: tuple[Message, ...]) -> Steps[None]:
        """Compact the transcript if the next prompt comes near the context window."""
        settings = self._rules.compaction
        window = None if settings is None else settings.window or self._window
        if settings is None or window is None:
            return
        size = estimate(replace(self._request, messages=(*self._messages, *begun)))
        if size > settings.above * window:
            yield from self._compact(size, int(settings.target * window))

    def _shrink(self, begun: tuple[Message, ...], failure: Failure | None) -> Steps[bool]:
        """Compact the transcript after a context overflow; return whether that was possible."""
        size = estimate(replace(self._request, messages=(*self._messages, *begun)))
        if failure is not None and failure.limit is not None:
            self._window = failure.limit
        share = Compaction().target if self._rules.compaction is None else self._rules.compaction.target
        return (yield from self._compact(size, int(min(self._window or size, size) * share)))

    def _compact(self, size: int, target: int) -> Steps[bool]:
        settings = self._rules.compaction or Compaction()

        def weigh(messages: tuple[Message, ...]) -> int:
            return estimate(replace(self._request, messages=messages))

        cut = shorten(self._messages, settings.keep_turns, target, weigh)
        note = (yield from self._summary(cut.dropped, target)) if cut.dropped and settings.summarise else None
        messages = cut.join(note)
        after = weigh(messages)
        if after >= weigh(self._messages):
            return False
        self._messages = messages
        yield ReportEvent(event=Compacted(before=size, after=after, messages=messages))
        return True

    def _summary(self, dropped: Sequence[Message], target: int) -> Steps[str | None]:
        """Return the model's summary of the dropped messages; `None` if it returns no text."""
        request = summary_request(self._request, dropped, target * 3)  # characters: about three for a token
        try:
            request = self._sized(request)
        except EndError:
            return None
        asked = yield from self._send(CallModel(request=request, internal=True))
        if asked.failure is not None or asked.response is None or not asked.response.candidates:
            return None
        return text_of(asked.response.candidates[0].content).strip() or None
