"""Backend that returns prepared answers, for tests, documentation and demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from xenoglot.backends.backend import EventAnswer
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.stage import Pipeline, through
from xenoglot.errors import ConfigurationError, FailureError, WireError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request

Turn: TypeAlias = "Response | Failure | Sequence[Event]"


STREAMS = (".sse", ".ndjson")


class Scripted:
    """Answers each call with the next of its turns, and again from the first after the last.

    A turn is a whole `Response`, a `Failure` (the call is refused), or events (one batch each, valid or not).
    `requests` are those that were received, in order.
    """

    def __init__(self, *turns: Turn, name: str = "scripted") -> None:
        if not turns:
            message = "a scripted backend needs at least one turn"
            raise ConfigurationError(message)
        self.name = name
        self.requests: list[Request] = []
        self._turns = turns

    @classmethod
    def from_file(cls, path: Path | str, dialect: Dialect, name: str = "scripted") -> Scripted:
        """Return a backend that answers with the contents of a file: a stream (`*.sse`, `*.ndjson`), or a response.

        Raises:
            ConfigurationError: the file cannot be read, or is not of the dialect.
        """
        try:
            data = Path(path).read_bytes()
            if Path(path).suffix in STREAMS:
                decoder = Pipeline(dialect.framing.decoder(), dialect.stream_decoder())
                return cls(list(through((data,), decoder)), name=name)
            return cls(dialect.decode_response(decode_json(data)), name=name)
        except (OSError, WireError) as error:
            message = f"`{path}` is no {dialect.name} answer: {error}"
            raise ConfigurationError(message) from None

    async def answer(self, call: Call) -> Answer:
        """Answer with the next turn."""
        turn = self._turns[len(self.requests) % len(self._turns)]
        self.requests.append(call.request)
        if isinstance(turn, Failure):
            raise FailureError(turn)
        batches = _batches(list(unfold(turn)) if isinstance(turn, Response) else turn)
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def count(self, _call: Call) -> int | None:
        """It has no tokenizer."""
        return None

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model it plays."""
        return (ModelInfo(id=self.name, owned_by="xenoglot"),)

    async def aclose(self) -> None:
        """Nothing is held."""


async def _batches(events: Sequence[Event]) -> AsyncGenerator[Sequence[Event], None]:
    for event in events:
        yield (event,)
