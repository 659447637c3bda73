"""Reading a stream: chunks to events.

Theory of operation. The stream begins with the first chunk that has a choice (Azure sends others before it). Deltas go
to the choice they name. Why a choice ended is kept until `[DONE]` or the end of the stream: usage, and the last words
on a sound, come after it. A choice that nobody ended makes the whole stream a failure, however politely it stopped.

Nearly all chunks of a stream differ in one piece of text only. So the bytes around such a piece are learned, and a
chunk between the same bytes is known to say the same but for that text: only the text is decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import DecodeError
from msgspec.json import Decoder

from xenoglot.codec.reader import Reader
from xenoglot.codec.wire import decode_answer, encode_json
from xenoglot.dialects.chat.growing_choice import GrowingChoice, only_piece
from xenoglot.dialects.chat.leftovers import NAME
from xenoglot.dialects.chat.usage import decode_usage
from xenoglot.dialects.openai.error import decode_error
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.events import Event, Failed, OpaqueDelta, Ping, Started, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Usage

DONE = b"[DONE]"

_decode_text = Decoder(str).decode

_MOST_CHOICES = 128
"""The most choices that OpenAI makes (`n`); an index beyond it is a mistake or an attack."""

_CHUNK = frozenset({"id", "object", "created", "model", "choices", "service_tier", "usage", "obfuscation"})
_CHOICE = frozenset({"index", "delta", "finish_reason", "logprobs"})
_SILENT = frozenset({"usage", "obfuscation", "choices"})
_MISSING = object()
_LESSONS = 8
"""How often a stream may turn out to differ in more than a text before it is no longer learned from."""


class Likely:
    """The bytes around a piece of text that a stream is likely to say again, and whose it is."""

    __slots__ = ("_after", "_before", "_choice", "_field", "_least")

    def __init__(self, before: bytes, after: bytes, choice: GrowingChoice, field: str) -> None:
        self._before = before
        self._after = after
        self._choice = choice
        self._field = field
        self._least = len(before) + len(after) + len(b'""')

    def read(self, event: ServerSentEvent) -> Sequence[Event] | None:
        """Return what a chunk says that differs in the text alone; `None` for any other."""
        data = event.data
        if len(data) <= self._least or event.event is not None:
            return None
        if not (data.startswith(self._before) and data.endswith(self._after)):
            return None
        try:
            text = _decode_text(data[len(self._before) : -len(self._after)])
        except (DecodeError, UnicodeDecodeError):
            return None
        return self._choice.take(self._field, text)


def learn(data: bytes, choice: GrowingChoice, field: str, text: str) -> Likely | None:
    """Return what is around `text` in a chunk; `None` where the text might stand elsewhere in it too."""
    before, found, after = data.partition(encode_json(text))
    return Likely(before, after, choice, field) if found and after and found not in after else None


class StreamDecoder:
    """Server-sent events to events. Bad data gives one `Failed`, and nothing after it."""

    __slots__ = ("_choices", "_ended", "_head", "_lessons", "_likely", "_rest", "_started", "_usage")

    def __init__(self) -> None:
        self._head: JSONObject = {}
        self._rest: JSONObject = {}
        self._started = False
        self._ended = False
        self._usage: Usage | None = None
        self._choices: dict[int, GrowingChoice] = {}
        self._likely: Likely | None = None
        self._lessons = _LESSONS

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one event of the wire; return what it says."""
        if self._ended:
            return ()
        if self._likely is not None and (said := self._likely.read(event)) is not None:
            return said
        try:
            if event.data.startswith(b"[DONE]"):
                return self._end()
            if not event.data.strip():
                return (Ping(),)
            chunk = decode_answer(event.data)
            said = self._common(chunk, event.data) if self._started and event.event is None else None
            return self._chunk(chunk, event.event) if said is None else said
        except WireError as error:
            return self._fail(Failure(kind="upstream", message=f"the upstream's stream cannot be read: {error}"))

    def close(self) -> Sequence[Event]:
        """The stream is over: an end, if every choice has one, else a failure."""
        try:
            return () if self._ended else self._end()
        except WireError as error:
            return self._fail(Failure(kind="upstream", message=f"the upstream's stream cannot be read: {error}"))

    def _common(self, chunk: JSON, data: bytes) -> Sequence[Event] | None:
        """Return what a chunk says that holds one piece of text or thought, and nothing else; `None` for any other."""
        if type(chunk) is not dict or chunk.get("usage") is not None:
            return None
        choices = chunk.get("choices")
        if type(choices) is not list or len(choices) != 1 or not self._is_quiet(chunk):
            return None
        choice = choices[0]
        if type(choice) is not dict or not _CHOICE.issuperset(choice) or choice.get("finish_reason"):
            return None
        if type(choice.get("index")) is not int or choice.get("logprobs") is not None:
            return None
        growing, piece = self._choices.get(choice["index"]), only_piece(choice.get("delta"))
        if growing is None or piece is None:
            return None
        if self._lessons:
            self._lessons -= 1
            self._likely = learn(data, growing, *piece)
        return growing.take(*piece)

    def _is_quiet(self, chunk: JSONObject) -> bool:
        """Whether the chunk says nothing new beside its choices."""
        others = chunk.keys() - _CHUNK
        return not others or all(self._rest.get(key, _MISSING) == chunk[key] for key in others)

    def _chunk(self, chunk: JSON, name: str | None) -> Sequence[Event]:
        reader = Reader(chunk)
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
        """Begin the stream, or carry what nobody took of a later chunk where it is new."""
        news = {
            key: value for key, value in rest.items() if key not in _SILENT and self._rest.get(key, _MISSING) != value
        }
        if news:
            self._rest |= news
            self._likely = None  # what it learned to pass over may be news again
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

    def _choice(self, reader: Reader, place: int) -> GrowingChoice:
        index = reader.take("index", int)
        index = place if index is None or index < 0 else index
        if index >= _MOST_CHOICES:
            raise WireError(reader.at("index"), f"must be less than {_MOST_CHOICES}")
        if index not in self._choices:
            self._choices[index] = GrowingChoice(index, self._head.get("id"))
        return self._choices[index]

    def _end(self) -> Sequence[Event]:
        if not self._choices or not all(choice.is_finished for choice in self._choices.values()):
            return self._fail(Failure(kind="upstream", message="the upstream's stream ended early"))
        events = [event for choice in self._choices.values() for event in choice.close()]
        self._ended = True
        return events

    def _fail(self, failure: Failure) -> Sequence[Event]:
        self._ended = True
        return (Failed(failure=failure),)
