"""Token counts by the model's tokenizer, for the rendered prompt and the generated text."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec.structs import replace

from xenoglot.model.events import Event, Finished, Started, TextDelta, UsageReported
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from xenoglot.backends.backend import EventAnswer

_SHORT: Final = 1024
"""Characters that are counted in no time worth a thread."""

_DONE: Final = Finish(reason="stop")
"""Finish of an answer without a finish reason."""


class Tokenizer(Protocol):
    """What reads a text as tokens: `encode` gives the ids, or something that holds them as its `ids`."""

    @property
    def encode(self) -> Callable[..., Any]:
        """Take a text, and return its tokens."""
        ...


def count(tokenizer: Tokenizer, text: str, *, special: bool) -> int:
    """Return the tokens of `text`; `special` has the tokenizer add those that begin or end a text of its own.

    A tokenizer without that parameter adds its special tokens.
    """
    encoded = _encode(tokenizer, text, special=special)
    return len(getattr(encoded, "ids", encoded))


def _encode(tokenizer: Tokenizer, text: str, *, special: bool) -> Any:  # noqa: ANN401  see `Tokenizer`
    encode = tokenizer.encode
    try:
        tells = "add_special_tokens" in inspect.signature(encode).parameters
    except (TypeError, ValueError):  # written in C, and does not tell what it takes
        tells = False
    return encode(text, add_special_tokens=special) if tells else encode(text)


def counted(answer: EventAnswer, tokenizer: Tokenizer, input_tokens: int | None, limit: int | None) -> EventAnswer:
    """Return `answer` with its counts: the prompt's when it starts, the text's when it is finished.

    Only returned text is counted, not text that was generated after a stop string. Until the end the count is an
    estimate, piece by piece, for callers that stop the answer early. If the model reports its own counts, they
    are used. An answer of as many tokens as its `limit` allows ended for its length (A-W6).
    """
    batches = _counted(answer, _Counting(tokenizer, input_tokens, limit))
    return replace(answer, batches=batches, aclose=batches.aclose)


async def _counted(answer: EventAnswer, counting: _Counting) -> AsyncGenerator[Sequence[Event], None]:
    try:
        async for batch in answer.batches:
            if any(map(_takes_long, batch)):
                yield await asyncio.to_thread(counting.feed, batch)
            else:
                yield counting.feed(batch)
    finally:
        await answer.aclose()


def _takes_long(event: Event) -> bool:
    return isinstance(event, Finished) or (isinstance(event, TextDelta) and len(event.text) > _SHORT)


class _Counting:
    """Adds the counts to the events of one candidate."""

    def __init__(self, tokenizer: Tokenizer, input_tokens: int | None, limit: int | None) -> None:
        self._tokenizer = tokenizer
        self._input_tokens = input_tokens
        self._limit = limit
        self._text: list[str] = []
        self._estimate = 0
        self._reported: int | None = None

    def feed(self, batch: Iterable[Event]) -> list[Event]:
        events: list[Event] = []
        for event in batch:
            events += self._feed(event)
        return events

    def _feed(self, event: Event) -> Sequence[Event]:
        match event:
            case Started():
                return event, UsageReported(usage=Usage(input_tokens=self._input_tokens))
            case TextDelta(text=text) if self._reported is None:
                self._text.append(text)
                self._estimate += count(self._tokenizer, text, special=False)
                return UsageReported(usage=Usage(output_tokens=self._estimate, estimated=True)), event
            case UsageReported(usage=usage) if usage.output_tokens is not None:
                self._reported = usage.output_tokens
            case Finished():
                return self._finished(event)
            case _:
                pass
        return (event,)

    def _finished(self, event: Finished) -> Sequence[Event]:
        tokens = self._reported
        if tokens is None:
            tokens = count(self._tokenizer, "".join(self._text), special=False)
        if event.finish == _DONE and self._limit is not None and tokens >= self._limit:
            event = Finished(finish=Finish(reason="length"), candidate=event.candidate)
        return UsageReported(usage=Usage(output_tokens=tokens)), event
