"""Backend for the embedded model: converts requests to prompts and grammars, and generated text to events."""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.http.client import TransportError
from xenoglot.backends.operation import OperationAnswer
from xenoglot.backends.timings import TIMINGS, timings_field
from xenoglot.backends.wrappers.fanout import fan_out, shares_of
from xenoglot.codec.framing.sse import SSEDecoder
from xenoglot.codec.invalid_request import refused
from xenoglot.codec.requests.adapt_request import check_tools
from xenoglot.codec.requests.prompt_echo import made_here
from xenoglot.codec.requests.provider_tools import as_functions
from xenoglot.codec.stage import Pipeline
from xenoglot.engine.admission import Admission
from xenoglot.engine.decoding.completion_stream import RESPONSE_FIELDS, CompletionContext, CompletionDecoder, unspoken
from xenoglot.engine.decoding.prompt_logprobs import prompt_logprobs
from xenoglot.engine.embedding import EmbeddingEngine
from xenoglot.engine.errors import CRASHED, context_overflow
from xenoglot.engine.extras import apply_extras, fields_of, wants_timings
from xenoglot.engine.metrics import Meter
from xenoglot.engine.prompting.prompt_plan import PromptPlanner
from xenoglot.engine.samplers import sampler_fields
from xenoglot.engine.sampling import DEFAULT_MAX_TOKENS, completion_fields, wants_logprobs
from xenoglot.engine.server.lifecycle import EngineProcess
from xenoglot.engine.server.runtime import Runtime
from xenoglot.engine.server.server_process import DEFAULT_CONTEXT, Settings, fingerprint
from xenoglot.engine.text_completion import best, best_of, checked_length, echo, of_several
from xenoglot.engine.tokens import checked_text, pieces_of, texts_of, tokens_of_prompt
from xenoglot.engine.unsupported import note_losses, stop_words
from xenoglot.errors import FailureError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold, unfold
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Prompt
from xenoglot.model.tokens import TokenizerInfo, Tokens
from xenoglot.text.stop import StopStage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.backends.http.client import Transport, UpstreamResponse
    from xenoglot.backends.operation import EmbeddingAnswer, EmbeddingCall, OperationCall
    from xenoglot.engine.admission import Ticket
    from xenoglot.engine.metrics import EngineMetrics
    from xenoglot.engine.server.runtime import Process, RuntimeProperties
    from xenoglot.engine.server.weights import Weights
    from xenoglot.model.content import Extra, Text
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request
    from xenoglot.model.tokens import TextRequest, TokenizerInfoRequest, TokensRequest

STREAMED: Final = {"stream": True, "return_progress": True, "response_fields": RESPONSE_FIELDS}
"""Progress is requested because the runtime notices a closed connection only when it writes."""


class _Job(Struct, frozen=True, kw_only=True):
    """A request that is ready for the runtime."""

    fields: JSONObject
    plan: CompletionContext
    stops: StopStage | None
    slots: int
    tokens: int
    context: int


class Engine:
    """Backend that runs a model file in a child process. Nothing starts before `start` or the first request.

    It belongs to one event loop. `transport` is closed by its creator; `process` can be replaced in tests.
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
        self._context = self._settings.context or weights.context or DEFAULT_CONTEXT
        self._asking = PromptPlanner(self._runtime, weights.name, self._settings.syntax)
        self._admission = Admission(self._settings.slots, self._settings.queue, self._settings.queue_seconds)
        pooling = replace(self._settings, pooling="mean")
        self._meter = Meter()
        self._fingerprint = fingerprint(weights, self._settings)
        self._embedding = EmbeddingEngine(self.name, lambda: weights, pooling, transport=transport)

    async def start(self) -> None:
        """Load the model now, so that the first request does not wait for it.

        Raises:
            EngineError: the model cannot be loaded; the message has the remedy.
        """
        await self._process.ready()

    async def answer(self, call: Call) -> Answer:
        """Start the answer as soon as the request is admitted.

        Raises:
            FailureError: the request is invalid for this model, or the model cannot be used now.
        """
        call = replace(call, request=apply_extras(call.request))
        shares = shares_of(call, texts=True, candidates=False)
        return await (fan_out(shares, self._answer) if len(shares) > 1 else self._answer(call))

    async def _answer(self, call: Call) -> EventAnswer:
        if (wanted := best_of(call.request)) is not None:
            return await self._best(call, wanted)
        job = await self._job(call)
        call.losses.settle()
        if call.request.sampling.max_tokens == 0:
            return _known(unspoken(job.plan))
        run = await self._run(job)
        if job.plan.timings and not call.request.stream:
            return await _whole(run)
        return EventAnswer(batches=run.batches(), aclose=run.aclose)

    async def _run(self, job: _Job) -> _Run:
        ticket = await self._turn(job)
        try:
            reply = await self._runtime.complete(job.fields)
        except BaseException:
            self._meter.add((), finished=False)
            ticket.release_soon()
            raise
        return _Run(reply, ticket, CompletionDecoder(job.plan), job.stops, self._meter, self._runtime)

    async def _turn(self, job: _Job) -> Ticket:
        """Wait until `job` is admitted; a disconnect during the wait cancels it."""
        try:
            return await self._admission.enter(job.slots, job.tokens, job.context)
        except CancelledError:
            self._meter.add((), finished=False)
            raise

    async def count(self, call: Call) -> int | None:
        """Return the number of tokens of the whole prompt as sent; `None` if it is too long to be counted cheaply."""
        try:
            asking = replace(call, request=apply_extras(call.request))
            requests = [share.call.request for share in shares_of(asking, texts=True, candidates=False)]
            asked = [await self._asking.asked(request, call.losses) for request in requests]
            call.losses.settle()
            return sum(len(one.prompt) for one in asked)
        except FailureError as error:
            if error.failure.kind == "context_overflow":
                return None
            raise

    async def embed(self, call: EmbeddingCall) -> EmbeddingAnswer:
        """Return embeddings pooled from the token states of this model, which was not trained for embeddings."""
        return await self._embedding.embed(call)

    async def tokenize(self, call: OperationCall[TokensRequest, Tokens]) -> OperationAnswer[Tokens]:
        """Return the tokens of the prompt: those of a lone text, or those that an answer would be made to."""
        asked, losses = call.request, call.losses
        request, context = apply_extras(asked.request), (await self._runtime.facts()).context
        match request.prompt:
            case Prompt(texts=(str(text),)) if not request.messages:
                numbers = await tokens_of_prompt(text, self._runtime, special=asked.special, control=asked.control)
            case _:
                numbers = (await self._asking.asked(request, losses)).prompt
        losses.settle()
        texts = await texts_of(numbers, self._runtime) if asked.texts else None
        pieces = (
            await pieces_of(numbers, request.prompt, self._runtime, control=asked.control) if asked.pieces else None
        )
        made = Tokens(numbers=tuple(numbers), longest=context, texts=texts, pieces=pieces, bare=asked.bare)
        return OperationAnswer(result=made)

    async def tokenizer_info(
        self, _call: OperationCall[TokenizerInfoRequest, TokenizerInfo]
    ) -> OperationAnswer[TokenizerInfo]:
        """Return information about the model's tokenizer; the padding token is not known."""
        facts = await self._runtime.facts()
        template = facts.template.text or None
        info = TokenizerInfo(kind=facts.tokenizer, eos=facts.eos or None, bos=facts.bos or None, chat_template=template)
        return OperationAnswer(result=info)

    async def detokenize(self, call: OperationCall[TextRequest, str]) -> OperationAnswer[str]:
        """Return the text of the tokens."""
        return OperationAnswer(result=await checked_text(call.request.tokens, self._runtime))

    def is_available(self) -> bool:
        """Return whether its process runs, or would be started now."""
        return not isinstance(self._process, EngineProcess) or self._process.is_available()

    def measures(self) -> EngineMetrics:
        """Return the current metrics."""
        queue = self._admission.queue
        said = self._meter.measures(self.name, self._settings.slots, self._runtime.starts)
        return replace(said, running=queue.running, waiting=queue.waiting, refused=queue.refused)

    def continues(self, _model: str) -> bool:
        """Return that the model can continue a started assistant turn."""
        return True

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model; its context is shared by all concurrent requests."""
        info = ModelInfo(
            id=self.name,
            owned_by="xenoglot",
            max_input_tokens=self._context,
            input_modalities=("text",),  # weights without a projector
            output_modalities=("text",),
        )
        return (info,)

    async def aclose(self) -> None:
        """Stop the child processes."""
        await self._embedding.aclose()
        await self._process.stop()

    async def _best(self, call: Call, wanted: int) -> EventAnswer:
        """Generate more answers than requested, and choose among them when all are complete."""
        if wanted > self._settings.slots:
            raise refused("$.best_of", f"found {wanted}, expected at most {self._settings.slots}")
        made = await self._answer(replace(call, request=of_several(call.request, wanted)))
        async with aclosing(made):
            response = fold([event async for batch in made.batches for event in batch])
        if isinstance(response, Failure):
            raise FailureError(response)
        return _known(list(unfold(best(response, call.request.sampling))))

    async def _echo(self, request: Request, tokens: list[int], facts: RuntimeProperties) -> Text | None:
        """Return the echoed prompt, if requested; with log probabilities, if those are too."""
        prompt, sampling = request.prompt, request.sampling
        if prompt is None or not prompt.echo or request.messages:
            return None
        logprobs = None
        if wants_logprobs(sampling):
            ticket = await self._admission.enter(1, len(tokens) + 1, facts.context)
            try:
                logprobs = await prompt_logprobs(tokens, sampling.top_logprobs or 0, self._runtime, facts)
            finally:
                ticket.release()
        return await echo(prompt, tokens, logprobs, self._runtime)

    def _named(self, dialect: str) -> Extra | None:
        """Return what names the build and the weights in an answer of `dialect`, where it has a field for that."""
        field = dialects.get(dialect).fingerprint_field if dialect in dialects.names() else ""
        return made_here(dialect, {field: self._fingerprint}) if field else None

    async def _job(self, call: Call) -> _Job:
        request, sampling = as_functions(call.request, call.losses), call.request.sampling
        check_tools(request, "")
        timed = wants_timings(fields_of(request))
        timings = timings_field(call.dialect) if timed else ""
        note_losses(request, call.losses, *([] if timed and not timings else [TIMINGS]))
        asked = await self._asking.asked(request, call.losses)
        facts, prompt = await self._runtime.facts(), asked.prompt
        fields = completion_fields(checked_length(request), facts, self._settings.slots)
        count = sampling.n or 1
        room = (facts.context - len(prompt)) // count
        if room <= 0:
            raise context_overflow(len(prompt), facts.context)
        wanted = DEFAULT_MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens
        longest = min(wanted, room)
        if longest < (sampling.max_tokens or 0):
            call.losses.approximated("$.sampling", "max_tokens", f"the context has space for {longest}")
        further = fields_of(request)
        remembers = self._settings.remembers and further.get("cache_prompt") is not False
        fields |= {**sampler_fields(further, facts.context), "prompt": prompt, "n_predict": longest, **STREAMED}
        fields["cache_prompt"] = remembers
        fields[TIMINGS] = bool(timings) and request.stream
        if asked.constraint.grammar:
            fields["grammar"] = asked.constraint.grammar
            if fields.pop("ignore_eos", False):
                call.losses.dropped("$", "ignore_eos", "an answer that is held to a form ends with it")
        if (stop := stop_words(request)) and not asked.calls:
            fields["stop"] = stop
        echoed = await self._echo(request, prompt, facts)
        plan = CompletionContext(
            model=self.name,
            prompt_tokens=len(prompt),
            speeches=tuple(asked.speech(index, echoed) for index in range(count)),
            bounded=longest < wanted,
            tops=(sampling.top_logprobs or 0) if wants_logprobs(sampling) else None,
            extra=self._named(call.dialect),
            timings=timings,
        )
        stops = StopStage(stop, candidates=count) if stop and asked.calls else None  # the runtime would end calls, too
        tokens = len(prompt) + count * longest
        return _Job(fields=fields, plan=plan, stops=stops, slots=count, tokens=tokens, context=facts.context)


class _Run:
    """One running completion."""

    def __init__(  # noqa: PLR0913, PLR0917  what a completion is made of
        self,
        reply: UpstreamResponse,
        ticket: Ticket,
        completion: CompletionDecoder,
        stops: StopStage | None,
        meter: Meter,
        runtime: Runtime,
    ) -> None:
        self._runtime = runtime
        self._reply = reply
        self._ticket = ticket
        self._completion = completion
        self._stops = stops
        self._meter: Meter | None = meter

    @property
    def extra(self) -> Extra | None:
        """What the answer has in the client's dialect alone, as far as it is known."""
        return self._completion.extra

    async def batches(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield what each read of the runtime's stream made."""
        stage = Pipeline(SSEDecoder(), self._completion, *(() if self._stops is None else (self._stops,)))
        try:
            async for chunk in self._reply:
                if events := stage.feed(chunk):
                    yield events
                    if type(events[-1]) is Failed:
                        return
                if self._stops is not None and self._stops.stopped:
                    yield (self._completion.usage(),)
                    return
            if events := stage.close():
                yield events
        except TransportError as error:
            self._runtime.broken(error)
            yield (Failed(failure=CRASHED),)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Stop at once: the runtime sees the connection closed, and drops its work."""
        meter, self._meter = self._meter, None
        if meter is not None:
            meter.add(self._completion.timings, finished=self._completion.complete)
        await self._reply.aclose()
        if self._completion.complete:
            self._ticket.release()
        else:
            self._ticket.release_soon()


async def _whole(run: _Run) -> EventAnswer:
    """Return the answer when it is complete, with the facts that are known only at its end."""
    async with aclosing(run):
        response = fold([event async for batch in run.batches() for event in batch])
    if isinstance(response, Failure):
        raise FailureError(response)
    return _known(list(unfold(replace(response, extra=run.extra))))


def _known(events: Sequence[Event]) -> EventAnswer:
    """Return an answer that is already complete."""
    batches = _once(events)
    return EventAnswer(batches=batches, aclose=batches.aclose)


async def _once(events: Sequence[Event]) -> AsyncGenerator[Sequence[Event], None]:
    yield events
