"""Backend for a transformers model and its tokenizer: chat templates, exact counts, streaming."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.callable import Callable, Output
from xenoglot.backends.local_models.chat_template import template_of
from xenoglot.backends.local_models.completion_stop import turn_ending, turn_ends
from xenoglot.backends.local_models.generation import Detokenizer, Generation
from xenoglot.backends.local_models.prompt_function import prompt_of
from xenoglot.backends.local_models.sampling import SEEDS, generate_settings
from xenoglot.backends.local_models.unsupported import report_tools, report_unsupported, wants_thinking
from xenoglot.backends.timings import timed
from xenoglot.backends.wrappers.fanout import fan_out, shares_of
from xenoglot.errors import FailureError, WireError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.failure import Failure
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer, Call, EventAnswer
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Prompt, Request

DEFAULT_MAX_TOKENS: Final = 1024
"""Default length of an answer if neither the request nor the generation config sets one; the library's own is 20."""


class GenerationJob(Struct, frozen=True, kw_only=True):
    """A prompt in tokens, and how to continue it.

    `bounded` is whether the context holds less than requested; `stop` ends the model's turn of a transcript;
    `before` are the tokens that the first word may depend on.
    """

    tokens: list[int]
    settings: dict[str, Any]
    longest: int
    bounded: bool
    seed: int | None = None
    stop: str | None = None
    before: tuple[int, ...] = ()


class Transformers:
    """Wraps a causal language model and its tokenizer; answers are made one after the other, in a thread of its own.

    Without a chat template, like a base model, it continues the conversation as a transcript. `special_tokens` keeps
    the special tokens that it writes in its text, for parsers of calls and reasoning.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401  the library's types are not ours to need
        tokenizer: Any,  # noqa: ANN401  the same
        name: str | None = None,
        *,
        special_tokens: bool = False,
    ) -> None:
        self.name: str = name or _name_of(model)
        self._model = model
        self._tokenizer = tokenizer
        self._special_tokens = special_tokens
        self._template = template_of(tokenizer)
        self._context = _context_of(model)
        self._vocabulary: int = getattr(model.config.get_text_config(), "vocab_size", len(tokenizer))
        self._ends = _ends_of(model, tokenizer)
        self._tokenizing = threading.Lock()  # some calls change a fast tokenizer, which refuses all others meanwhile
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="transformers")

    @property
    def takes_tools(self) -> bool:
        """Whether the model's own template has tools."""
        return self._template is not None and self._template.knows_tools

    async def answer(self, call: Call) -> Answer:
        """Generate, once for each answer that is wanted.

        Raises:
            FailureError: the prompt is too long.
            WireError: the request asks for something impossible.
        """
        return await timed(call, self._answers)

    async def _answers(self, call: Call) -> Answer:
        shares = shares_of(call, texts=True, candidates=True)
        return await (fan_out(shares, self._answer) if len(shares) > 1 else self._answer(shares[0].call))

    async def _answer(self, call: Call) -> EventAnswer:
        job = await asyncio.to_thread(self._job, call.request, call.losses)
        call.losses.settle()
        speaking = Callable(lambda _request: self._generate_text(job), self.name)
        request = turn_ending(call.request, job.stop)
        return turn_ends(await speaking.answer(replace(call, request=request)), call.request, job.stop)

    async def count(self, call: Call) -> int | None:
        """Return the tokens of the prompt as the model would read it."""
        tokens, _ = await asyncio.to_thread(self._prompt, call.request, call.losses)
        return len(tokens)

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model it is."""
        return (ModelInfo(id=self.name, owned_by="xenoglot", max_input_tokens=self._context),)

    async def aclose(self) -> None:
        """Have what waits never run; what runs ends with its client."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _prompt(self, request: Request, losses: Losses) -> tuple[list[int], str | None]:
        """Return the prompt in tokens, and the string that ends the model's turn, if there is one."""
        with self._tokenizing:
            return self._read(request, losses)

    def _read(self, request: Request, losses: Losses) -> tuple[list[int], str | None]:
        if self._template is not None and (request.prompt is None or request.messages):
            rendering = self._template.prompt(request, losses)
            tokens = self._template.tokens(rendering)
            if tokens is None:
                return self._encode(rendering.text, special=False), None
            return tokens + self._encode(rendering.prefix, special=False), None
        report_unsupported(request, losses)
        report_tools(request, losses)
        if wants_thinking(request.thinking):
            losses.dropped("$", "thinking", "the model has no such setting")
        if request.prompt is not None and (given := self._prompt_tokens(request.prompt)) and not request.messages:
            return given, None
        transcript = prompt_of(request, losses)
        return self._encode(transcript.text, special=True), transcript.stop

    def _prompt_tokens(self, prompt: Prompt) -> list[int]:
        """Return the tokens of a prompt that is given in tokens; none where it is words."""
        text = prompt.texts[0] if prompt.texts else ""
        if isinstance(text, str):
            return []
        if prompt.suffix:
            raise WireError("$.suffix", "the model continues a text, and cannot fill in text before a suffix")
        if not text or not all(0 <= token < self._vocabulary for token in text):
            raise WireError("$.prompt", f"expected the numbers of tokens of this model, 0 to {self._vocabulary - 1}")
        return list(text)

    def _encode(self, text: str, *, special: bool) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=special)] if text else []

    def _tokens_of(self, text: str) -> list[int]:
        """Return the tokens of a text that stands alone."""
        with self._tokenizing:
            return self._encode(text, special=False)

    def _job(self, request: Request, losses: Losses) -> GenerationJob:
        sampling = request.sampling
        settings = generate_settings(sampling, self._vocabulary, losses, self._tokens_of)
        tokens, stop = self._prompt(request, losses)
        if not tokens:
            raise WireError("$.prompt", "it is empty, so there is nothing to continue")
        longest = sampling.max_tokens or self._default_max_tokens()
        room = longest if self._context is None else self._context - len(tokens)
        if room <= 0:
            raise _overflow(len(tokens), self._context or 0)
        if room < (sampling.max_tokens or 0):
            losses.approximated("$.sampling", "max_tokens", f"the context has space for {room}")
        return GenerationJob(
            tokens=tokens,
            settings=settings,
            longest=min(longest, room),
            bounded=room < longest,
            seed=None if sampling.seed is None else sampling.seed % SEEDS,
            stop=stop,
            before=tuple(tokens) if request.prompt is not None else (),
        )

    def _default_max_tokens(self) -> int:
        return getattr(self._model.generation_config, "max_new_tokens", None) or DEFAULT_MAX_TOKENS

    async def _generate_text(self, job: GenerationJob) -> AsyncGenerator[Output, None]:
        """Yield the words as they come, each time after the count, for they may hold a stop string."""
        detokenizer = await asyncio.to_thread(Detokenizer, self._decode, job.before)
        generation = Generation(detokenizer, self._ends)
        yield Usage(input_tokens=len(job.tokens))
        pieces = generation.listen(self._pool, lambda streamer: self._generate(job, streamer))
        try:
            async for heard in pieces:
                if heard.text:
                    yield Usage(output_tokens=heard.tokens)
                    yield heard.text
        finally:
            await pieces.aclose()
        yield Usage(output_tokens=generation.tokens)
        yield _finish(generation, job)

    def _decode(self, tokens: list[int]) -> str:
        skip = not self._special_tokens
        with self._tokenizing:
            return str(self._tokenizer.decode(tokens, skip_special_tokens=skip, clean_up_tokenization_spaces=False))

    def _generate(self, job: GenerationJob, generation: Generation) -> None:
        """Generate, in the model's thread; the seed of one answer is no other's."""
        import torch  # noqa: PLC0415  whoever has a model of the library has it

        with torch.random.fork_rng(enabled=job.seed is not None):
            if job.seed is not None:
                torch.manual_seed(job.seed)
            prompt = torch.tensor([job.tokens], device=self._model.device)
            self._model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=job.longest,
                streamer=generation,
                stopping_criteria=[generation.stops],
                **job.settings,
            )


def _finish(generation: Generation, job: GenerationJob) -> Finish:
    if generation.ended or generation.tokens < job.longest:
        return Finish(reason="stop")
    return Finish(reason="context" if job.bounded else "length")


def _name_of(model: Any) -> str:  # noqa: ANN401  see `Transformers`
    """Return the last part of where the model came from, or what it is."""
    origin = str(getattr(model.config, "name_or_path", "") or "").rstrip("/")
    return origin.rpartition("/")[2] or type(model).__name__


def _context_of(model: Any) -> int | None:  # noqa: ANN401  see `Transformers`
    config = model.config.get_text_config()
    for name in ("max_position_embeddings", "n_positions"):
        if isinstance(size := getattr(config, name, None), int):
            return size
    return None


def _ends_of(model: Any, tokenizer: Any) -> frozenset[int]:  # noqa: ANN401  see `Transformers`
    ends = getattr(model.generation_config, "eos_token_id", None)
    if ends is None:
        ends = getattr(tokenizer, "eos_token_id", None)
    if ends is None:
        return frozenset()
    return frozenset([ends] if isinstance(ends, int) else [int(end) for end in ends])


def _overflow(tokens: int, limit: int) -> FailureError:
    message = f"the prompt is {tokens} tokens, and the model holds {limit}, its answer included"
    return FailureError(Failure(kind="context_overflow", message=message, tokens=tokens, limit=limit))
