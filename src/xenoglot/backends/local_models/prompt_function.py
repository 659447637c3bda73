"""Backend around a function from a prompt to text; it renders each conversation as one prompt."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from xenoglot.backends.callable import Callable, Output
from xenoglot.backends.local_models.completion_stop import turn_ending, turn_ends
from xenoglot.backends.local_models.sampling import parameters_of, settings_for
from xenoglot.backends.local_models.token_counts import Tokenizer, count, counted
from xenoglot.backends.local_models.unsupported import NAME, report_tools, report_unsupported, wants_thinking
from xenoglot.backends.timings import timed
from xenoglot.backends.wrappers.fanout import fan_out, shares_of
from xenoglot.codec.requests.transcript import Transcript, transcribe
from xenoglot.errors import WireError
from xenoglot.model.catalog import ModelInfo

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Sequence

    from xenoglot.backends.backend import Answer, Call, EventAnswer
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Prompt, Request

Writer: TypeAlias = "collections.abc.Callable[..., Any]"
"""A function of a prompt, and perhaps of settings, with the `Output` of `Callable`."""


class Prompted:
    """Wraps a function of a prompt.

    It gets the settings that it has parameters for. With a `tokenizer`, prompts and answers are counted.
    """

    def __init__(self, function: Writer, name: str | None = None, *, tokenizer: Tokenizer | None = None) -> None:
        self.name: str = name or str(getattr(function, "__name__", "prompted"))
        self._function = function
        self._tokenizer = tokenizer
        self._parameters = parameters_of(function, given=1)

    async def answer(self, call: Call) -> Answer:
        """Call the function, once for each answer that is wanted.

        Raises:
            WireError: the request needs something that a text cannot express.
        """
        return await (self._answers(call) if self._tokenizer is None else timed(call, self._answers))

    async def _answers(self, call: Call) -> Answer:
        shares = shares_of(call, texts=True, candidates=True)
        return await (fan_out(shares, self._answer) if len(shares) > 1 else self._answer(shares[0].call))

    async def _answer(self, call: Call) -> EventAnswer:
        request = call.request
        prompt = self._prompt(request, call.losses)
        settings = settings_for(request.sampling, self._parameters, call.losses)
        call.losses.settle()
        tokens = await self._count(prompt.text)
        asked = replace(call, request=turn_ending(request, prompt.stop))
        said = await Callable(self._function_for(prompt.text, settings), self.name).answer(asked)
        answer = turn_ends(said, request, prompt.stop)
        if self._tokenizer is None:
            return answer
        limit = request.sampling.max_tokens if self._parameters.named("max_tokens") else None
        return counted(answer, self._tokenizer, tokens, limit)

    def _function_for(self, prompt: str, settings: dict[str, Any]) -> collections.abc.Callable[[Request], Output]:
        return lambda _request: self._function(prompt, **settings)

    @staticmethod
    def _prompt(request: Request, losses: Losses) -> Transcript:
        report_unsupported(request, losses)
        report_tools(request, losses)
        if wants_thinking(request.thinking):
            losses.dropped("$", "thinking", "the model has no such setting")
        return prompt_of(request, losses)

    async def count(self, call: Call) -> int | None:
        """Return the tokens of the prompt, where there is a tokenizer to count them."""
        return await self._count(self._prompt(call.request, call.losses).text)

    async def _count(self, prompt: str) -> int | None:
        if self._tokenizer is None:
            return None
        return await asyncio.to_thread(count, self._tokenizer, prompt, special=True)

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model it is."""
        return (ModelInfo(id=self.name, owned_by="xenoglot"),)

    async def aclose(self) -> None:
        """Nothing is held."""


def prompt_of(request: Request, losses: Losses) -> Transcript:
    """Return the one text that a request comes to: the text it wants continued, or its turns (R-S1).

    Raises:
        WireError: it has parts that no text can express.
    """
    if request.prompt is None:
        return transcribe(request.messages, NAME, losses)
    return Transcript("", _heading(request, losses) + _text(request.prompt))


def _heading(request: Request, losses: Losses) -> str:
    said = transcribe(request.messages, NAME, losses).words if request.messages else ""
    return f"{said}\n\n" if said else ""


def _text(prompt: Prompt) -> str:
    if prompt.suffix:
        raise WireError("$.suffix", "the model continues a text, and cannot fill in text before a suffix")
    text = prompt.texts[0] if prompt.texts else ""
    if not isinstance(text, str):
        raise WireError("$.prompt", "token ids mean nothing to the model; send the text")
    return text


def takes_prompt(function: Writer) -> bool:
    """Return whether `function` is one of a prompt rather than of a request.

    It is where its first parameter is annotated as a `str`, or is called `prompt` and not annotated at all.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C, and does not tell
        return False
    if not parameters:
        return False
    first = parameters[0]
    if first.annotation is inspect.Parameter.empty:
        return first.name == "prompt"
    return first.annotation in (str, "str")
