"""The embedded model as a backend: requests turned into prompts and grammars, its text into events."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.transport import TransportError
from xenoglot.codec.fitting import check_tools
from xenoglot.codec.sse import SSEDecoder
from xenoglot.codec.stage import Pipeline
from xenoglot.engine.admission import Admission
from xenoglot.engine.calls import CallSpeech
from xenoglot.engine.child import Settings
from xenoglot.engine.completion import RESPONSE_FIELDS, Completion, Plan
from xenoglot.engine.constrain import constrain
from xenoglot.engine.failures import CRASHED, overflow
from xenoglot.engine.limits import check_size, note_losses, stop_words
from xenoglot.engine.process import EngineProcess
from xenoglot.engine.prompt import tokenize
from xenoglot.engine.runtime import Runtime
from xenoglot.engine.sampling import DEFAULT_MAX_TOKENS, completion_fields, wants_logprobs
from xenoglot.engine.speech import PlainSpeech
from xenoglot.engine.turns import turns
from xenoglot.errors import FailureError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.events import Failed
from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.backends.transport import Reply, Transport
    from xenoglot.codec.loss import Losses
    from xenoglot.engine.admission import Ticket
    from xenoglot.engine.constrain import Constraint
    from xenoglot.engine.runtime import Process
    from xenoglot.engine.speech import Speech
    from xenoglot.engine.weights import Weights
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request

STREAMED: Final = {"stream": True, "cache_prompt": True, "return_progress": True, "response_fields": RESPONSE_FIELDS}
"""Progress is asked for because the runtime sees a closed connection only when it has something to say."""


class _Job(Struct, frozen=True, kw_only=True):
    """A request, ready for the runtime."""

    fields: JSONObject
    plan: Plan
    slots: int
    tokens: int
    context: int


class Engine:
    """A model file and the process that runs it, as a backend. Nothing starts before `start` or the first request.

    It belongs to one event loop. `transport` stays its maker's; `process` is for tests that watch it.
    """

    def __init__(
        self,
        weights: Weights,
        settings: Settings | None = None,
        *,
        transport: Transport,
        name: str | None = None,
        process: Process | None = None,
    ) -> None:
        self.name = name or weights.name
        self._settings = settings or Settings()
        self._process: Process = process or EngineProcess(weights, self._settings)
        self._runtime = Runtime(self._process, transport)
        self._admission = Admission(self._settings.slots)

    async def start(self) -> None:
        """Load the model now, so that the first answer need not wait for it.

        Raises:
            EngineError: it cannot be loaded; the message says what to do.
        """
        await self._process.ready()

    async def answer(self, call: Call) -> Answer:
        """Start answering, as soon as there is room.

        Raises:
            FailureError: the request asks for something impossible, or the model cannot be used now.
        """
        job = await self._job(call)
        call.losses.settle()
        ticket = await self._admission.enter(job.slots, job.tokens, job.context)
        try:
            reply = await self._runtime.complete(job.fields)
        except BaseException:
            ticket.release_soon()
            raise
        run = _Run(reply, ticket, Completion(job.plan))
        return EventAnswer(batches=run.batches(), aclose=run.aclose)

    async def count(self, call: Call) -> int | None:
        """Return the tokens of the whole prompt as it would be sent; `None` where it is too long to be worth it."""
        constraint = await _constraint(call)
        try:
            return len(await self._prompt(call.request, constraint, call.losses))
        except FailureError as error:
            if error.failure.kind == "context_overflow":
                return None
            raise

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model it is."""
        return (ModelInfo(id=self.name, owned_by="xenoglot"),)

    async def aclose(self) -> None:
        """End the process."""
        await self._process.stop()

    async def _prompt(self, request: Request, constraint: Constraint | None, losses: Losses) -> list[int]:
        said = turns(request, constraint.instructions if constraint else "", losses)
        check_size(said, (await self._runtime.facts()).context)
        return await tokenize(said, self._runtime, losses)

    async def _job(self, call: Call) -> _Job:
        request, sampling = call.request, call.request.sampling
        check_tools(request, "")
        note_losses(request, call.losses)
        constraint = await _constraint(call)
        facts = await self._runtime.facts()
        fields = completion_fields(sampling, facts, self._settings.slots)
        prompt = await self._prompt(request, constraint, call.losses)
        count = sampling.n or 1
        room = (facts.context - len(prompt)) // count
        if room <= 0:
            raise overflow(len(prompt), facts.context)
        wanted = DEFAULT_MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens
        longest = min(wanted, room)
        if longest < (sampling.max_tokens or 0):
            call.losses.approximated("$.sampling", "max_tokens", f"the context has room for {longest}")
        fields |= {"prompt": prompt, "n_predict": longest, **STREAMED}
        if constraint is not None:
            fields["grammar"] = constraint.grammar
        if stop := stop_words(request, constraint, call.losses):
            fields["stop"] = stop
        plan = Plan(
            model=self.name,
            prompt_tokens=len(prompt),
            speeches=tuple(_speech(index, constraint) for index in range(count)),
            bounded=longest < wanted,
            tops=(sampling.top_logprobs or 0) if wants_logprobs(sampling) else None,
        )
        return _Job(fields=fields, plan=plan, slots=count, tokens=len(prompt) + count * longest, context=facts.context)


class _Run:
    """One completion under way."""

    def __init__(self, reply: Reply, ticket: Ticket, completion: Completion) -> None:
        self._reply = reply
        self._ticket = ticket
        self._completion = completion

    async def batches(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield what each read of the runtime's stream made."""
        stage = Pipeline(SSEDecoder(), self._completion)
        try:
            async for chunk in self._reply:
                if events := stage.feed(chunk):
                    yield events
                    if type(events[-1]) is Failed:
                        return
            if events := stage.close():
                yield events
        except TransportError:
            yield (Failed(failure=CRASHED),)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Stop at once: the runtime sees the connection closed, and drops its work."""
        await self._reply.aclose()
        if self._completion.complete:
            self._ticket.release()
        else:
            self._ticket.release_soon()


async def _constraint(call: Call) -> Constraint | None:
    """Compile the grammar, in a thread: the event loop has others to serve."""
    if not call.request.tools and not call.request.tool_choice and not call.request.output:
        return None
    return await asyncio.to_thread(constrain, call.request, call.losses)


def _speech(candidate: int, constraint: Constraint | None) -> Speech:
    if constraint is None or not constraint.branches:
        return PlainSpeech(candidate)
    return CallSpeech(candidate, constraint.branches, lambda: f"call_{secrets.token_hex(12)}")
