"""Decodes a stream: chunks to events.

Theory of operation. The stream begins with the first chunk that has a choice (Azure sends others before it). Deltas go
to the choice they name. Why a choice ended is kept until `[DONE]` or the end of the stream: usage, and the last words
on audio, come after it. `[DONE]` ends a choice without a reason too, as some servers
send none, unless it is empty or half of a call. A choice that never ends makes the whole stream a failure, however
politely it stopped.

Nearly all chunks of a stream hold one piece of text and nothing else that is new: these are decoded in fewer steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.codec.reader import Reader, take_placeholders
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.stream.choice_decoder import ChoiceDecoder
from xenoglot.dialects.chat.usage import decode_usage
from xenoglot.dialects.openai.errors import decode_error
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.events import Event, Failed, OpaqueDelta, Ping, Started, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.framing.event_template import TemplateHint
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.dialects.chat.stream.choice_decoder import Piece
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Usage

DONE = b"[DONE]"

_MOST_CHOICES = 128
"""The most choices that OpenAI makes (`n`); an index beyond it is a mistake or an attack."""

_CHUNK = frozenset({"id", "object", "created", "model", "choices", "service_tier", "usage", "obfuscation"})
_CHOICE = frozenset({"index", "delta", "finish_reason", "logprobs"})
_SILENT = frozenset({"usage", "obfuscation", "choices"})
_WORDS = frozenset({"id", "model", "service_tier"})
_UNFINISHED = (None, "")
_MISSING = object()


class StreamDecoder:
    """A stage from server-sent events to canonical events. Invalid data gives one `Failed`, and nothing after it."""

    __slots__ = ("_choices", "_ended", "_head", "_last", "_rest", "_started", "_usage", "state", "terminated")

    def __init__(self) -> None:
        self._head: JSONObject = {}
        self._rest: JSONObject = {}
        self._started = False
        self._ended = False
        self._usage: Usage | None = None
        self._choices: dict[int, ChoiceDecoder] = {}
        self._last: tuple[JSON, tuple[ChoiceDecoder, Piece] | None] = None, None
        self.terminated = False
        """Whether `[DONE]` was read after what may be a whole answer."""
        self.state = 0
        """Counts the events that may have changed what those after them mean."""

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one event of the wire; return its canonical events."""
        if self._ended:
            return ()
        try:
            if event.data.startswith(b"[DONE]"):
                return self._terminate()
            if not event.data.strip():
                return (Ping(),)
            return self._take(decode_answer(event.data), event.event)
        except WireError as error:
            return self._fail(
                Failure(kind="upstream", message=f"server error: the upstream's stream cannot be read: {error}")
            )

    def close(self) -> Sequence[Event]:
        """End the stream: finish it if every choice has an end, otherwise fail it."""
        try:
            return () if self._ended else self._end()
        except WireError as error:
            return self._fail(
                Failure(kind="upstream", message=f"server error: the upstream's stream cannot be read: {error}")
            )

    def lesson(self, event: ServerSentEvent, /) -> TemplateHint | None:  # noqa: ARG002  what it said is known
        """Return how to read a chunk that differs from the last one in a piece of text alone."""
        chunk, common = self._last
        if common is None:
            return None
        growing, piece = common
        restamped = chunk.get("created") != self._head.get(
            "created"
        )  # the time of an answer is that of its first chunk
        return growing.lesson(piece, ("created", "obfuscation") if restamped else ("obfuscation",))

    def _take(self, chunk: JSON, name: str | None) -> Sequence[Event]:
        common = self._common(chunk) if name is None else None
        self._last = chunk, common
        if common is None:
            said = (self._usage_alone(chunk) if name is None else None) or self._chunk(chunk, name)
        else:
            said = common[0].take(common[1])
        if common is None or len(said) != 1:
            self.state += 1
        return said

    @shortcut("chunks")
    def _common(self, chunk: JSON) -> tuple[ChoiceDecoder, Piece] | None:
        """Return the piece of a chunk in which one piece of text and nothing else is new; `None` for any other."""
        if type(chunk) is not dict or not self._started or chunk.get("usage") is not None:
            return None
        choices = chunk.get("choices")
        if type(choices) is not list or len(choices) != 1 or not self._is_quiet(chunk):
            return None
        choice = choices[0]
        if type(choice) is not dict or not _CHOICE.issuperset(choice) or choice.get("finish_reason") not in _UNFINISHED:
            return None
        if type(choice.get("index")) is not int or choice.get("logprobs") is not None:
            return None
        growing = self._choices.get(choice["index"])
        piece = None if growing is None else growing.piece_of(choice)
        return None if growing is None or piece is None else (growing, piece)

    @shortcut("usage")
    def _usage_alone(self, chunk: JSON) -> Sequence[Event] | None:
        """Return the event of a chunk that has usage and nothing else that is new; `None` for any other."""
        if type(chunk) is not dict or not self._started or chunk.get("choices") != [] or not self._is_quiet(chunk):
            return None
        usage = decode_usage(chunk.get("usage"), "$.usage")
        if usage is None:
            return None
        self._usage = merge_usage(self._usage, usage)
        return (UsageReported(usage=self._usage),)

    def _is_quiet(self, chunk: JSONObject) -> bool:
        """Whether only the choices of the chunk are new: it is no error, and its head is of the usual types."""
        created = chunk.get("created", 0)
        if type(created) is not int or created < 0 or chunk.get("object") == "error":
            return False
        others = [key for key in chunk if key not in _CHUNK or (key in _WORDS and type(chunk[key]) is not str)]
        return not others or all(self._rest.get(key, _MISSING) == chunk[key] for key in others)

    def _chunk(self, chunk: JSON, name: str | None) -> Sequence[Event]:
        reader = Reader(chunk)
        take_placeholders(reader, "error")
        if name == "error" or "error" in reader or reader.peek("object") == "error":
            return self._fail(decode_error(200, chunk))
        self._take_head(reader)
        choices = reader.take("choices", list) or []
        usage = decode_usage(reader.peek("usage"), "$.usage")
        events = self._start(reader.rest(), begin=bool(choices) or usage is not None)
        for place, item in enumerate(choices):
            choice = Reader(item, f"$.choices[{place}]")
            usage = usage or self._take_usage(choice)
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
        if news:
            self._rest |= news
        if self._started:
            news = {key: value for key, value in news.items() if value is not None}
            return [OpaqueDelta(dialect=NAME, data=news)] if news else []
        if not begin:
            return []
        self._started = True
        return [Started(**self._head, extra=Extra(dialect=NAME, fields=dict(self._rest)) if self._rest else None)]

    def _take_usage(self, choice: Reader) -> Usage | None:
        """Take the usage that Moonshot hangs on a choice."""
        usage = decode_usage(choice.peek("usage"), choice.at("usage"))
        if usage is not None:
            choice.take("usage", dict)
        return usage

    def _choice(self, reader: Reader, place: int) -> ChoiceDecoder:
        index = reader.take("index", int)
        index = place if index is None or index < 0 else index
        if index >= _MOST_CHOICES:
            raise WireError(reader.at("index"), f"must be less than {_MOST_CHOICES}")
        if index not in self._choices:
            self._choices[index] = ChoiceDecoder(index, self._head.get("id"))
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
        events = [event for choice in self._choices.values() for event in choice.close()]
        self._ended = True
        self.state += 1
        return events

    def _fail(self, failure: Failure) -> Sequence[Event]:
        self._ended = True
        self.state += 1
        return (Failed(failure=failure),)
