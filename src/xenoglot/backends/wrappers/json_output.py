"""Wraps a backend to emulate structured output: prompts for JSON, validates the answer, and retries.

The prompt for the model and the parser of its answer are in `text.json.prompting`; what counts as valid is in
`text.json.check`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer
from xenoglot.backends.wrappers.emulation_settings import Emulate
from xenoglot.backends.wrappers.json_retry import JSONCall, JSONRetry
from xenoglot.codec.stage import Pipeline
from xenoglot.errors import FailureError, WireError
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure
from xenoglot.text.json.check import JSONCheck
from xenoglot.text.json.prompting import WHERE, JSONPrompt, as_prompt, as_tool, check_depth, wants_json
from xenoglot.text.json.schema import JSONSchema, require

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from xenoglot.backends.backend import Answer, Backend, Call
    from xenoglot.codec.stage import Stage
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.events import Event
    from xenoglot.model.request import OutputFormat, Request

__all__ = ["Emulate", "JSONBackend"]


class JSONBackend:
    """A backend that makes answers in JSON match the request. Other requests pass through it unchanged."""

    def __init__(self, backend: Backend, policy: Emulate) -> None:
        """Wrap `backend`, which stays its maker's to close.

        Raises:
            ConfigurationError: answers are to be checked, and the extra `structured` is not installed.
        """
        if policy.checks:
            require()
        self.name = backend.name
        self._backend = backend
        self._policy = policy

    async def answer(self, call: Call) -> Answer:
        """Start answering.

        Raises:
            FailureError: as the backend does; or the request's schema is none.
        """
        if not self._concerns(call.request):
            return await self._backend.answer(call)
        schema = _schema(call.request.output, compiled=self._policy.checks)
        asked = self._prompt(call)
        shaped = _shaped(call, asked)
        answer = await self._call_backend(shaped)
        if schema is None or not asked.judged:
            return _read(answer, asked.reading(call.losses))
        if self._policy.retries and call.request.prompt is None:
            request = JSONCall(shaped, asked, schema)
            insisting = JSONRetry(answer, request, self._call_backend, self._policy)
            return replace(answer, batches=insisting.batches, aclose=insisting.aclose)
        check = JSONCheck(schema, call.losses, lenient=self._policy.lenient)
        return _read(answer, Pipeline(asked.reading(call.losses), check))

    async def count(self, call: Call) -> int | None:
        """Count the tokens of the prompt, including the schema in it."""
        if self._concerns(call.request):
            call = _shaped(call, self._prompt(call))
        return await self._backend.count(call)

    async def models(self) -> Sequence[ModelInfo]:
        """Return the backend's models."""
        return await self._backend.models()

    async def aclose(self) -> None:
        """Do nothing: the backend belongs to its owner."""

    def _concerns(self, request: Request) -> bool:
        return self._policy.acts and wants_json(request)

    def _prompt(self, call: Call) -> JSONPrompt:
        match self._policy.schema:
            case "tool" if call.request.prompt is None:
                return as_tool(call.request, call.losses)
            case "none":
                return JSONPrompt(request=call.request)
            case _:  # a text that is to be continued has no turns for calls, but it may have a system turn
                return as_prompt(call.request, call.losses)

    async def _call_backend(self, call: Call) -> EventAnswer:
        answer = await self._backend.answer(call)
        if isinstance(answer, ByteAnswer):
            await answer.aclose()
            raise TypeError("a call without a body of its own is answered in events")
        return answer


Structured = JSONBackend
"""Its name in the last release: an alias for one release."""


def _schema(output: OutputFormat | None, *, compiled: bool) -> JSONSchema | None:
    """Return the schema that the answer is held against, if it is."""
    schema = None if output is None else output.schema
    try:
        check_depth(schema)
        return JSONSchema(schema, f"{WHERE}.schema") if compiled else None
    except WireError as error:
        raise FailureError(Failure(kind="invalid_request", message=str(error), param=error.path)) from None


def _shaped(call: Call, asked: JSONPrompt) -> Call:
    """Return the call for the model; nothing is passed through, because the answer has to be checked."""
    losses = call.losses.moved(asked.moved) if asked.moved else call.losses
    return replace(call, request=asked.request, losses=losses, body=None)


def _read(answer: EventAnswer, stage: Stage[Event, Event]) -> EventAnswer:
    batches = _through(answer.batches, stage)

    async def aclose() -> None:
        await batches.aclose()
        await answer.aclose()

    return replace(answer, batches=batches, aclose=aclose)


async def _through(
    batches: AsyncIterator[Sequence[Event]], stage: Stage[Event, Event]
) -> AsyncGenerator[Sequence[Event]]:
    async for batch in batches:
        made = [out for event in batch for out in stage.feed(event)]
        if made:
            yield made
            if type(made[-1]) is Failed:
                return
    if rest := stage.close():
        yield rest
