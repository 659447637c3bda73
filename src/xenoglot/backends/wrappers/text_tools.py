"""Wraps a backend whose model only writes text: parses tool calls and reasoning out of it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer
from xenoglot.backends.wrappers.emulation_settings import RepairMode
from xenoglot.backends.wrappers.stop_strings import stop_answer, stop_stage, with_stops
from xenoglot.codec.requests.custom_tools import UnwrapCustom
from xenoglot.codec.stage import Pipeline
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import ToolCall
from xenoglot.model.failure import Failure
from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.registry import AUTO, chosen, get, marked
from xenoglot.text.stage import TextStage
from xenoglot.text.strip_control_tokens import ending
from xenoglot.text.tools.tool_prompt import told

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from xenoglot.backends.backend import Answer, Backend, Call
    from xenoglot.codec.stage import Stage
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request, Thinking
    from xenoglot.text.syntax import Syntax


class TextPolicy(Struct, frozen=True, kw_only=True):
    """How a model's text is read: `syntax` is the name of a row, `auto` or `off`.

    `tools` describes them in the prompt, for a server that supports none. `repair` repairs arguments that are not
    JSON: `on` silently, `loss` with a loss.
    """

    syntax: str = AUTO
    tools: bool = False
    repair: RepairMode = "off"


class TextBackend:
    """A backend whose answers are read by `policy`. `identify` makes the id of a call."""

    def __init__(
        self, backend: Backend, policy: TextPolicy | None = None, *, identify: Callable[[], str] | None = None
    ) -> None:
        self.name = backend.name
        self._backend = backend
        self._policy = policy or TextPolicy()
        self._identify = identify or _identify

    async def answer(self, call: Call) -> Answer:
        """Answer with the model's text made into blocks. Stop strings end what is words of it, and nothing else.

        Raises:
            FailureError: as the backend does; or the tools are such that only another server runs them.
            WireError: the stop strings are too long.
        """
        syntax = self._syntax(call.request)
        asked = self._with_tool_prompt(call, syntax)
        stops = None if syntax is None or call.request.prompt is not None else stop_stage(call.request)
        answer = await self._backend.answer(asked if stops is None else with_stops(asked))
        if isinstance(answer, ByteAnswer):
            raise TypeError("a call without a body of its own is answered in events")
        if syntax is None:
            return answer
        batches = _read(answer, self._stage(call, syntax))

        async def aclose() -> None:
            await batches.aclose()
            await answer.aclose()

        return stop_answer(replace(answer, batches=batches, aclose=aclose), stops)

    async def count(self, call: Call) -> int | None:
        """Count the prompt with the tools that are described in it."""
        return await self._backend.count(self._with_tool_prompt(call, self._syntax(call.request)))

    async def models(self) -> Sequence[ModelInfo]:
        """Return the backend's models."""
        return await self._backend.models()

    async def aclose(self) -> None:
        """Do nothing: the backend belongs to its owner."""

    def _syntax(self, request: Request) -> Syntax | None:
        """Return the syntax of the answer to `request`; for a text that is continued, only its end is read."""
        syntax = chosen(self._policy.syntax, request.model)
        if request.prompt is not None:
            return None if syntax is None else ending(syntax)
        if syntax is None or request.output is None or request.output.kind == "text":
            return syntax
        return marked(syntax)  # an answer that is JSON is no call for being JSON

    def _with_tool_prompt(self, call: Call, syntax: Syntax | None) -> Call:
        request = call.request
        if self._policy.tools:
            known = syntax if syntax is not None and syntax.name != AUTO else get("hermes")
            try:
                request = told(request, known, call.losses)
            except WireError as error:
                failure = Failure(kind="invalid_request", message=error.problem, param=error.path)
                raise FailureError(failure) from None
        return replace(call, request=request, body=None)

    def _stage(self, call: Call, syntax: Syntax) -> Stage[Event, Event]:
        stage = TextStage(
            syntax,
            DeclaredTools.by(call.request),
            lambda _candidate, _number: self._identify(),
            call.losses,
            repair=_repair() if self._policy.repair != "off" else None,
            silent=self._policy.repair == "on",
            thinking=_wants_reasoning(call.request.thinking),
            taken=_ids(call.request),
        )
        custom = UnwrapCustom(call.request)
        return Pipeline(stage, custom) if custom else stage


async def _read(answer: EventAnswer, stage: Stage[Event, Event]) -> AsyncGenerator[Sequence[Event], None]:
    async for batch in answer.batches:
        if events := [made for event in batch for made in stage.feed(event)]:
            yield events
    if rest := stage.close():
        yield rest


def _ids(request: Request) -> Iterator[str]:
    """Yield the ids of the calls before."""
    return (part.id for message in request.messages for part in message.content if isinstance(part, ToolCall))


def _wants_reasoning(thinking: Thinking | None) -> bool | None:
    """Return `False` if a request disables reasoning, and `None` if it is unknown whether the model reasons.

    Servers ignore a request for reasoning that their model's prompt has no variable for. Text that is taken for
    reasoning is missing in the answer; reasoning that is taken for text is only superfluous.
    """
    unwanted = thinking is not None and (thinking.mode == "disabled" or thinking.effort == "none")
    return False if unwanted else None


def _repair() -> Callable[..., str | None]:
    from xenoglot.text.json.repair import repaired  # noqa: PLC0415  only this policy needs its library

    return repaired


def _identify() -> str:
    return f"call_{secrets.token_hex(12)}"
