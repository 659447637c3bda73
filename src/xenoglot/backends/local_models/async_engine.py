"""Backend for engines with their own tokenizer and `generate_async(prompt, ...)`, such as AstrAI (A4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.callable import Callable
from xenoglot.backends.local_models.chat_template import TemplatedTokenizer, TokenizerTemplate
from xenoglot.backends.local_models.sampling import parameters_of, settings_for
from xenoglot.backends.local_models.token_counts import Tokenizer, count, counted
from xenoglot.backends.timings import timed
from xenoglot.backends.wrappers.fanout import fan_out, shares_of
from xenoglot.errors import ConfigurationError
from xenoglot.model.catalog import ModelInfo

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import AsyncIterator, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Request


class ChatTokenizer(TemplatedTokenizer, Tokenizer, Protocol):
    """What writes prompts, and counts them."""


class Engine(Protocol):
    """An engine that continues a prompt as text; it may take settings in addition to the prompt."""

    @property
    def tokenizer(self) -> ChatTokenizer:
        """What its prompts are made with."""
        ...

    @property
    def generate_async(self) -> collections.abc.Callable[..., AsyncIterator[str]]:
        """Take a prompt and settings, and yield the words of the answer."""
        ...


class Templated:
    """Wraps an engine; it gets the settings that `generate_async` has parameters for."""

    def __init__(self, engine: Engine, name: str | None = None) -> None:
        self.name: str = name or type(engine).__name__
        self._engine = engine
        self._template = TokenizerTemplate(engine.tokenizer)
        self._parameters = parameters_of(engine.generate_async, given=1)
        if not self._template.works:
            raise ConfigurationError(f"the tokenizer of `{self.name}` has no chat template")

    @property
    def takes_tools(self) -> bool:
        """Whether the model's own template has tools."""
        return self._template.knows_tools

    async def answer(self, call: Call) -> Answer:
        """Ask the engine, once for each answer that is wanted.

        Raises:
            WireError: the request needs something that the engine has no parameter for.
        """
        return await timed(call, self._answers)

    async def _answers(self, call: Call) -> Answer:
        shares = shares_of(call, texts=True, candidates=True)
        return await (fan_out(shares, self._answer) if len(shares) > 1 else self._answer(shares[0].call))

    async def _answer(self, call: Call) -> EventAnswer:
        settings = settings_for(call.request.sampling, self._parameters, call.losses)
        prompt, tokens = await asyncio.to_thread(self._prompt, call.request, call.losses)
        call.losses.settle()
        speaking = Callable(lambda _request: self._engine.generate_async(prompt, **settings), self.name)
        answer = await speaking.answer(call)
        if not isinstance(answer, EventAnswer):
            raise TypeError("a function answers in events")
        limit = call.request.sampling.max_tokens if self._parameters.named("max_tokens") else None
        return counted(answer, self._engine.tokenizer, tokens, limit)

    async def count(self, call: Call) -> int | None:
        """Return the tokens of the prompt, by the engine's own tokenizer."""
        _, tokens = await asyncio.to_thread(self._prompt, call.request, call.losses)
        return tokens

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model it is."""
        return (ModelInfo(id=self.name, owned_by="xenoglot"),)

    async def aclose(self) -> None:
        """Nothing is held: the engine is its owner's."""

    def _prompt(self, request: Request, losses: Losses) -> tuple[str, int]:
        text = self._template.prompt(request, losses).text
        return text, count(self._engine.tokenizer, text, special=True)
