"""Decodes a stream: chunks to events.

Theory of operation. The stream begins with the first chunk that has a choice. Texts go to the choice they name: with
several prompts many grow at once. Why a choice ended is kept until `[DONE]` or the end of the stream, since usage comes
after it. `[DONE]` ends a choice that has words without a reason too, as some servers send none. A choice that never
ends makes the whole stream a failure, however politely it stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.reader import Reader, take_placeholders
from xenoglot.dialects.completions.extras import NAME
from xenoglot.dialects.completions.stream.choice_decoder import ChoiceDecoder
from xenoglot.dialects.openai.errors import decode_error
from xenoglot.dialects.openai.usage import decode_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.events import Event, Failed, OpaqueDelta, Ping, Started, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Usage

DONE = b"[DONE]"

_MOST_CHOICES = 1 << 14
"""OpenAI makes up to 128 choices of each prompt; an index beyond this is a mistake or an attack."""

_SILENT = frozenset({"usage", "obfuscation", "choices"})
_MISSING = object()


class StreamDecoder:
    """A stage from server-sent events to canonical events. Invalid data gives one `Failed`, and nothing after it."""

    __slots__ = ("_choices", "_ended", "_head", "_rest", "_started", "_usage", "terminated")

    def __init__(self) -> None:
        self._head: JSONObject = {}
        self._rest: JSONObject = {}
        self._started = False
        self._ended = False
        self._usage: Usage | None = None
        self._choices: dict[int, ChoiceDecoder] = {}
        self.terminated = False
        """Whether `[DONE]` was read after what may be a whole answer."""

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one event of the wire; return its canonical events."""
        if self._ended:
            return ()
        try:
            if event.data.startswith(DONE):
                return self._terminate()
            if not event.data.strip():
                return (Ping(),)
            return self._chunk(decode_answer(event.data), event.event)
        except WireError as error:
            return self._fail(
                Failure(kind="upstream", message=f"server error: the upstream's stream cannot be read: {error}")
            )

    def close(self) -> Sequence[Event]:
        """End the stream: finish it if every choice has an end, otherwise fail it."""
        return () if self._ended else self._end()

    def _chunk(self, chunk: JSON, name: str | None) -> Sequence[Event]:
        reader = Reader(chunk)
        take_placeholders(reader, "error")
        if name == "error" or "error" in reader or reader.peek("object") == "error":
            return self._fail(decode_error(200, chunk))
        self._take_head(reader)
        choices = reader.take("choices", list) or []
        usage = decode_usage(reader.peek("usage"), "$.usage", NAME)
        events = self._start(reader.rest(), begin=bool(choices) or usage is not None)
        for place, item in enumerate(choices):
            choice = Reader(item, f"$.choices[{place}]")
            events += self._choice(choice, place).feed(choice)
        if usage is not None:
            self._usage = merge_usage(self._usage, usage)
            events.append(UsageReported(usage=self._usage))
        return events

    def _take_head(self, reader: Reader) -> None:
        reader.take_any("object")
        said = {
            "id": reader.take_if("id", str),
            "model": reader.take_if("model", str),
            "created": reader.count("created"),
            "service_tier": reader.take_if("service_tier", str),
        }
        if not self._started:
            self._head |= {key: value for key, value in said.items() if value}

    def _start(self, rest: JSONObject, *, begin: bool) -> list[Event]:
        """Begin the stream, or carry the unknown fields of a later chunk, if new."""
        news = {
            key: value for key, value in rest.items() if key not in _SILENT and self._rest.get(key, _MISSING) != value
        }
        self._rest |= news
        if self._started:
            news = {key: value for key, value in news.items() if value is not None}
            return [OpaqueDelta(dialect=NAME, data=news)] if news else []
        if not begin:
            return []
        self._started = True
        return [Started(**self._head, extra=Extra(dialect=NAME, fields=dict(self._rest)))]

    def _choice(self, reader: Reader, place: int) -> ChoiceDecoder:
        index = reader.take("index", int)
        index = place if index is None or index < 0 else index
        if index >= _MOST_CHOICES:
            raise WireError(reader.at("index"), f"must be less than {_MOST_CHOICES}")
        if index not in self._choices:
            self._choices[index] = ChoiceDecoder(index)
        return self._choices[index]

    def _terminate(self) -> Sequence[Event]:
        for choice in self._choices.values():
            choice.assume_end()
        events = self._end()
        self.terminated = not isinstance(events[-1], Failed)
        return events

    def _end(self) -> Sequence[Event]:
        if not self._choices or not all(choice.is_finished for choice in self._choices.values()):
            return self._fail(
                Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")
            )
        self._ended = True
        return [event for choice in self._choices.values() for event in choice.close()]

    def _fail(self, failure: Failure) -> Sequence[Event]:
        self._ended = True
        return (Failed(failure=failure),)
