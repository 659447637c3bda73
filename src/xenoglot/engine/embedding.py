"""Backend for embeddings: tokenizes texts and computes their vectors in a separate process.

The runtime pools the tokens of a text only if it reads them all in one batch. A generating model has small batches, so
that concurrent requests get a turn. Embeddings therefore run in another process, which starts at the first embedding
request and does not slow down generation.
"""

from __future__ import annotations

import asyncio
import base64
import math
import time
from array import array
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from xenoglot.backends.operation import EmbeddingAnswer
from xenoglot.codec.invalid_request import refused
from xenoglot.engine.admission import Admission
from xenoglot.engine.errors import EngineError, unavailable
from xenoglot.engine.metrics import MILLISECONDS, Meter, Timings
from xenoglot.engine.server.lifecycle import EngineProcess
from xenoglot.engine.server.runtime import Runtime
from xenoglot.engine.server.server_process import Settings, usable_cores
from xenoglot.engine.unsupported import LONGEST_TOKEN
from xenoglot.errors import FailureError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Opaque
from xenoglot.model.embedding import Embeddings
from xenoglot.model.failure import Failure
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.backends.backend import Call
    from xenoglot.backends.http.client import Transport
    from xenoglot.backends.operation import EmbeddingCall
    from xenoglot.engine.metrics import EngineMetrics
    from xenoglot.engine.server.runtime import Process
    from xenoglot.engine.server.weights import Weights
    from xenoglot.model.embedding import EmbeddingRequest, Input, Vector

MOST_INPUTS: Final = 2048
"""As many texts as one request may have, as OpenAI's servers take."""

AT_ONCE: Final = 32
TOKENS_AT_ONCE: Final = 2048
"""Texts that the runtime is given at a time, and their tokens together: about a second's work, which it completes
even for a client that has disconnected. After it others get their turn."""

LONGEST_TEXT: Final = 1024
"""Tokens of a text at most, whatever the weights allow: memory for all of them is allocated at the start."""

SHORTENED: Final = ("embeddinggemma", "mxbai-embed-large-v1", "nomic-embed-text-v1.5", "qwen3-embedding")
"""Parts of the names of models that were trained so that the beginning of a vector is a vector (Matryoshka, 2022:
https://arxiv.org/abs/2205.13147). Of any other the beginning means nothing."""


class EmbeddingEngine:
    """Backend that runs a model file for embeddings. Nothing starts before the first request.

    `find` returns the weights, and downloads them if needed; it may block, and raise `EngineError`. With `pooling`
    "mean" a vector is the mean over a text's tokens, as suits a model that was trained to generate; with "model" the
    model file decides. It belongs to one event loop; `transport` is closed by its creator.
    """

    def __init__(
        self,
        name: str,
        find: Callable[[], Weights],
        settings: Settings | None = None,
        *,
        transport: Transport,
    ) -> None:
        self.name = name
        self._find = find
        self._settings = settings or Settings(pooling="model")
        self._transport = transport
        self._admission = Admission(1, self._settings.queue, self._settings.queue_seconds)
        self._meter = Meter()
        self._finding: asyncio.Task[Runtime] | None = None
        self._process: Process | None = None

    async def embed(self, call: EmbeddingCall) -> EmbeddingAnswer:
        """Return a vector of length 1 for each text.

        Raises:
            FailureError: the request asks for something impossible, or the model cannot be used now.
        """
        request = call.request
        _check(request)
        call.losses.carry(request.extra, "$", self.name)
        call.losses.settle()
        runtime = await self._runtime()
        limit = (await runtime.facts()).context
        texts = [await _tokens(request, index, runtime, limit) for index in range(len(request.inputs))]
        vectors: list[Vector] = []
        for piece in pieces(texts):
            vectors += await self._vectors(runtime, piece, again=bool(vectors))
        made = tuple(self._sized(vector, request.dimensions) for vector in vectors)
        usage = Usage(input_tokens=sum(map(len, texts)))
        return EmbeddingAnswer(embeddings=Embeddings(vectors=made, model=self.name, usage=usage))

    async def answer(self, call: Call) -> NoReturn:  # noqa: ARG002  what a backend is asked
        """Refuse: it does not write.

        Raises:
            FailureError: always.
        """
        message = f"`{self.name}` makes embeddings, and writes nothing: ask another model"
        raise FailureError(Failure(kind="unsupported", message=message, param="$.model"))

    async def count(self, call: Call) -> None:
        """Return `None`: it has no prompts to count."""

    def is_available(self) -> bool:
        """Return whether its process runs, or would be started now."""
        return not isinstance(self._process, EngineProcess) or self._process.is_available()

    def measures(self) -> EngineMetrics:
        """Return what it has done so far; requests are counted in pieces, as they are sent to the runtime."""
        queue, finding = self._admission.queue, self._finding
        found = finding is not None and finding.done() and not finding.cancelled() and finding.exception() is None
        starts = finding.result().starts if found and finding is not None else 0
        said = self._meter.measures(self.name, 1, starts)
        return msgspec.structs.replace(said, running=queue.running, waiting=queue.waiting, refused=queue.refused)

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model it is."""
        return (
            ModelInfo(id=self.name, owned_by="xenoglot", input_modalities=("text",), output_modalities=("embeddings",)),
        )

    async def aclose(self) -> None:
        """End the process."""
        if self._finding is not None:
            self._finding.cancel()
            await asyncio.wait({self._finding})
        if self._process is not None:
            await self._process.stop()

    async def _runtime(self) -> Runtime:
        """Return the runtime, its weights found at the first request; all who wait share one search.

        Raises:
            FailureError: there are no weights, and none can be had.
        """
        if self._finding is None:
            self._finding = asyncio.create_task(self._launch())
        finding = self._finding
        try:
            return await asyncio.shield(finding)
        except EngineError as error:
            if self._finding is finding:
                self._finding = None  # the next request may be luckier
            raise unavailable(error) from None

    async def _launch(self) -> Runtime:
        weights = await asyncio.to_thread(self._find)
        self._process = EngineProcess(weights, shape(weights, self._settings))
        return Runtime(self._process, self._transport)

    async def _vectors(self, runtime: Runtime, texts: Sequence[Sequence[int]], *, again: bool) -> list[Vector]:
        """Return the vectors of a few texts, when it is their turn; `again` for others of a request that has begun."""
        ticket = await self._admission.enter(1, 0, 0, again=again)
        try:
            started = time.monotonic()
            packed = await runtime.vectors(texts)
            spent = (time.monotonic() - started) * MILLISECONDS
            self._meter.add([Timings(prompt_n=sum(map(len, texts)), prompt_ms=spent)], finished=True)
        finally:
            ticket.release()
        return [*map(_unpacked, packed)]

    def _sized(self, vector: Vector, dimensions: int | None) -> Vector:
        """Return the vector at the requested length.

        Raises:
            FailureError: it is not made to be shortened, or is not that long.
        """
        if dimensions is None or dimensions == len(vector):
            return vector
        if not any(known in self.name.lower() for known in SHORTENED):
            problem = f"found {dimensions}; the vectors of `{self.name}` have {len(vector)}, and cannot be shortened"
            raise refused("$.dimensions", problem)
        if dimensions > len(vector):
            raise refused("$.dimensions", f"found {dimensions}, expected at most {len(vector)}")
        return normal(vector[:dimensions])


def pieces(texts: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
    """Yield the texts, a few at a time: in their order, and at least one."""
    start = tokens = 0
    for index, text in enumerate(texts):
        if index > start and (index - start >= AT_ONCE or tokens + len(text) > TOKENS_AT_ONCE):
            yield texts[start:index]
            start, tokens = index, 0
        tokens += len(text)
    if texts:
        yield texts[start:]


def shape(weights: Weights, settings: Settings) -> Settings:
    """Return the shape of a process that reads each text of these weights in one batch."""
    longest = min(settings.context or weights.context or LONGEST_TEXT, LONGEST_TEXT)
    return msgspec.structs.replace(settings, slots=1, context=longest, batch=longest, threads=usable_cores())


def normal(vector: Vector) -> Vector:
    """Return the vector of length 1 in the same direction."""
    length = math.hypot(*vector)
    return tuple(number / length for number in vector) if length else vector


def _check(request: EmbeddingRequest) -> None:
    """Refuse requests that no runtime accepts."""
    if len(request.inputs) > MOST_INPUTS:
        raise refused("$.input", f"found {len(request.inputs)} texts, expected at most {MOST_INPUTS}")
    for index, one in enumerate(request.inputs):
        if isinstance(one, Opaque):
            raise refused(f"$.input[{index}]", "expected a text: this model embeds nothing else")
        if not one:
            raise refused(f"$.input[{index}]", "is empty")


async def _tokens(request: EmbeddingRequest, index: int, runtime: Runtime, limit: int) -> list[int]:
    """Return the tokens of one input, cut where that is wanted.

    Raises:
        FailureError: they are too many, or none of the model's.
    """
    given, where = request.inputs[index], f"$.input[{index}]"
    cut = request.truncate is True
    tokens = await _read(given, where, runtime, limit, cut=cut)
    if len(tokens) <= limit:
        return tokens
    if not cut:
        raise _too_long(where, len(tokens), limit)
    ending = await runtime.tokens_around_content("")
    tail = tokens[-1:] if tokens[-1:] == ending[-1:] else []
    return tokens[: limit - len(tail)] + tail


async def _read(given: Input, where: str, runtime: Runtime, limit: int, *, cut: bool) -> list[int]:
    if isinstance(given, str):
        longest = limit * LONGEST_TOKEN
        if len(given) > longest and not cut:
            raise _too_long(where, len(given) // LONGEST_TOKEN, limit)
        return await runtime.tokens_around_content(given[:longest])
    vocabulary = (await runtime.facts()).vocabulary
    tokens = [] if isinstance(given, Opaque) else list(given)
    for token in tokens:
        if not 0 <= token < vocabulary:
            raise refused(where, f"found {token}, expected the number of a token, 0 to {vocabulary - 1}")
    return tokens


def _too_long(where: str, tokens: int, limit: int) -> FailureError:
    message = f"{where.removeprefix('$.')}: is {tokens} tokens, and the embedded model reads {limit}"
    failure = Failure(kind="context_overflow", message=message, param=where, tokens=tokens, limit=limit)
    return FailureError(failure)


def _unpacked(text: str) -> Vector:
    return tuple(array("f", base64.b64decode(text)))
