"""Plans one generation: prompt, grammar, and the stages that parse the generated text."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.invalid_request import refused
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import as_turns
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.engine.decoding.text_output import ParsedTextStage, PlainTextStage
from xenoglot.engine.decoding.tool_calls import ToolCallStage
from xenoglot.engine.extras import demanded_format
from xenoglot.engine.prompting.constrain import Constraint, constrain
from xenoglot.engine.prompting.prompt import Prompt
from xenoglot.engine.prompting.template_messages import functions, messages
from xenoglot.engine.prompting.text_turns import turns
from xenoglot.engine.sampling import DEFAULT_MAX_TOKENS, wants_logprobs
from xenoglot.engine.server.model_traits import UNTAUGHT, ModelTraits, thinks, traits_of
from xenoglot.engine.text_completion import PromptEchoStage, text_tokens
from xenoglot.engine.unsupported import check_size
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from xenoglot.engine.decoding.text_output import CandidateStage
    from xenoglot.engine.server.runtime import Runtime, RuntimeProperties
    from xenoglot.model.content import Text
    from xenoglot.model.json import JSONObject

HELD: Final = "the answer is held to the form of a tool call"


class PromptPlan(Struct, frozen=True, kw_only=True):
    """A prepared request: its prompt in tokens, its constraint, and the traits of the model for it."""

    request: Request
    losses: Losses
    prompt: list[int]
    constraint: Constraint
    manner: ModelTraits

    @property
    def calls(self) -> bool:
        """Whether there may be calls in the answer."""
        return self.constraint.calls

    def speech(self, candidate: int, echoed: Text | None = None) -> CandidateStage:
        """Return the stage that reads the text of one candidate; `echoed` is what it begins with."""
        if echoed is not None:
            return PromptEchoStage(echoed, self.speech(candidate), candidate)
        if self.constraint.branches:
            return ToolCallStage(candidate, self.constraint.branches, _identify)
        if self.constraint.told or self.manner.thoughts is not None:
            manner, told = self.manner, self.constraint.told
            request, held = replace(self.request, tools=told), bool(self.constraint.grammar)
            return ParsedTextStage(candidate, manner, request, _identify, self.losses, held=held)
        return PlainTextStage(candidate)


class PromptPlanner:
    """Prepares requests for the weights `model`; `syntax` is the policy for parsing their text."""

    def __init__(self, runtime: Runtime, model: str, syntax: str) -> None:
        self._runtime = runtime
        self._model = model
        self._syntax = syntax
        self._known: tuple[RuntimeProperties, ModelTraits] | None = None

    async def asked(self, request: Request, losses: Losses) -> PromptPlan:
        """Return `request`, ready to be answered.

        Raises:
            FailureError: it asks for something impossible, or the model cannot be used now.
        """
        facts = await self._runtime.facts()
        if request.prompt is not None and not request.messages:
            constraint = await _constraint(request, losses, UNTAUGHT)
            prompt = await text_tokens(request.prompt, self._runtime, facts)
            return PromptPlan(request=request, losses=losses, prompt=prompt, constraint=constraint, manner=UNTAUGHT)
        wanted = wants_thoughts(request)
        manner = self._manner(facts, request, wanted=wanted)
        constraint = await _constraint(request, losses, _unthinking(manner) if wanted is False else manner)
        if constraint.branches and wants_logprobs(request.sampling):
            losses.dropped("$.sampling", "logprobs", HELD)
        _note_thinking(request, manner, constraint, losses)
        silent = wanted is False or (bool(constraint.branches) and manner.thoughts is not None)
        if request.context_management is not None:
            request, losses = open_history(request, losses)
        try:
            said, tools = _said(as_turns(request, losses), constraint, losses), functions(constraint.told)
            check_size([*said, *tools], facts.context)
            making = Prompt(said, tools, self._runtime)
            over = manner.thoughts if silent else None
            prompt = await making.tokens(losses, wanted=False if silent else wanted, ended=over)
        except RecursionError:
            raise refused(
                "$.tools" if request.tools else "$.messages", "something in it is nested too deeply"
            ) from None
        return PromptPlan(request=request, losses=losses, prompt=prompt, constraint=constraint, manner=manner)

    def _manner(self, facts: RuntimeProperties, request: Request, *, wanted: bool | None) -> ModelTraits:
        """Return how the weights speak in the answer to `request`."""
        if self._known is None or self._known[0] is not facts:
            self._known = facts, traits_of(facts.template, self._model, self._syntax)
        manner = self._known[1]
        tags = thinks(manner, facts.template, wanted=wanted)
        goes_on = bool(request.messages) and request.messages[-1].role == "assistant"
        if tags is not None and (wanted is False or goes_on):
            tags = replace(tags, implied=False)
        return replace(manner, thoughts=tags)


def wants_thoughts(request: Request) -> bool | None:
    """Return whether reasoning is turned on or off; `None` if it is not set."""
    thinking = request.thinking
    if thinking is None or (thinking.mode is None and thinking.effort is None and thinking.budget_tokens is None):
        return None
    return thinking.mode != "disabled" and thinking.effort != "none"


def _note_thinking(request: Request, manner: ModelTraits, constraint: Constraint, losses: Losses) -> None:
    thinking = request.thinking
    if thinking is None or not wants_thoughts(request):
        return
    if manner.thoughts is None:
        losses.dropped("$", "thinking", "the embedded model does not reason")
    elif constraint.branches:
        losses.dropped("$", "thinking", HELD)
    elif thinking.budget_tokens is not None or thinking.effort is not None:
        losses.approximated("$", "thinking", "the embedded model thinks, or does not; it has no measure for it")


def _unthinking(manner: ModelTraits) -> ModelTraits:
    return replace(manner, thoughts=None)


def _said(request: Request, constraint: Constraint, losses: Losses) -> list[JSONObject]:
    """Return the messages for the template: with calls if it gets tools, otherwise all as text."""
    if constraint.told:
        return messages(request, constraint.instructions, losses)
    said = turns(request, constraint.instructions, losses)
    return [{"role": turn.role, "content": turn.text} for turn in said]


async def _constraint(request: Request, losses: Losses, manner: ModelTraits) -> Constraint:
    """Compile the grammar, in a thread: the event loop has others to serve."""
    if not request.tools and not request.tool_choice and not request.output and demanded_format(request) is None:
        return Constraint()
    longest = request.sampling.max_tokens or DEFAULT_MAX_TOKENS
    return await asyncio.to_thread(constrain, request, losses, manner, longest) or Constraint()


def _identify() -> str:
    return f"call_{secrets.token_hex(12)}"
