"""Decodes one choice of a stream: assigns each field of a delta to a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from xenoglot.codec.blocks import Blocks
from xenoglot.codec.framing.event_template import TemplateHint
from xenoglot.codec.loss import TOLERATED
from xenoglot.codec.reader import Reader, expected, leave, take_placeholders
from xenoglot.dialects.chat.assistant_decoder import decode_audio, decode_logprobs, take_annotations, take_images
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.finish import decode_finish, take_stop
from xenoglot.dialects.chat.parts import ODD_TEXTS, as_written_by_models, decode_part
from xenoglot.dialects.chat.reasoning import STRINGS
from xenoglot.dialects.chat.signatures import FIELD, is_signature
from xenoglot.dialects.chat.stream.call_decoder import CallDecoder
from xenoglot.dialects.chat.stream.reasoning_decoder import ReasoningDecoder
from xenoglot.model.content import Audio, Extra, Inline, Logprob, Opaque, Reasoning, Refusal, Text
from xenoglot.model.events import (
    AudioDelta,
    CitationDelta,
    Event,
    Finished,
    OpaqueDelta,
    ReasoningDelta,
    TextDelta,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.json import JSON, JSONObject

_PIECES = frozenset({"content", *STRINGS})
_CALL = frozenset({"index", "id", "type", "function"})
_FUNCTION = frozenset({"name", "arguments"})
_CALLING = frozenset({"role", "content", "tool_calls"})
_NAMELESS = (None, "")
_EMPTY: tuple[JSON, ...] = (None, "", [], {})
"""Values that carry no information after the first time; other false values do."""
_DELTA = ("choices", 0, "delta")
"""Where the delta of a chunk's only choice stands."""

_TEXT = Text(text="")
_REFUSAL = Refusal(text="")


class Piece(NamedTuple):
    """The content of a delta with one field: text in `field`, or more arguments of a `call`."""

    field: str
    text: str
    call: JSONObject | None = None


def _arguments(calls: JSON) -> Piece | None:
    """Return the arguments of a list with one fragment that has nothing else."""
    call = calls[0] if type(calls) is list and len(calls) == 1 else None
    if type(call) is not dict or not _CALL.issuperset(call) or call.get("type") not in (None, "function"):
        return None
    inner = call.get("function")
    if type(inner) is not dict or not _FUNCTION.issuperset(inner) or inner.get("name") not in _NAMELESS:
        return None
    text = inner.get("arguments")
    return Piece("arguments", text, call) if type(text) is str and text else None


class ChoiceDecoder:
    """Decodes the deltas of one choice to the events of a candidate."""

    __slots__ = (
        "_assumed",
        "_blocks",
        "_calls",
        "_fields",
        "_form",
        "_images",
        "_index",
        "_logprobs",
        "_nulls",
        "_raw",
        "_refused",
        "_said",
        "_signature",
        "_silent",
        "_stop",
        "_thoughts",
    )

    def __init__(self, index: int, answer_id: str | None) -> None:
        self._index = index
        self._blocks = Blocks(index)
        self._thoughts = ReasoningDecoder(self._blocks, index)
        self._calls = CallDecoder(self._blocks, index, f"{answer_id or ''}:{index}")
        self._fields: JSONObject = {}  # unknown fields of the choice
        self._nulls: JSONObject = {}  # of the message
        self._signature: JSONObject = {}  # of the message, in its field
        self._said: set[str] = {"role", "content"}
        self._silent: set[tuple[str, type]] = set()  # fields of deltas that were empty, and how
        self._form: JSONObject = {}
        self._raw: str | None = None
        self._stop: str | None = None
        self._refused = self._assumed = False
        self._images = 0
        self._logprobs: dict[str, tuple[Logprob, ...]] = {}  # of the chunk at hand

    @property
    def is_finished(self) -> bool:
        """Whether the server has sent a finish reason, or any end of the answer."""
        return self._raw is not None or self._assumed

    def assume_end(self) -> None:
        """Take what there is for the whole, unless that is nothing, or half of a call."""
        self._assumed = self._raw is None and (self._blocks.begun or bool(self._calls)) and self._calls.are_whole

    def piece_of(self, choice: JSONObject) -> Piece | None:
        """Return the event of a choice with a piece of text, reasoning or arguments and nothing new; else `None`.

        The other fields are empty as they were before, so they carry no information.
        """
        delta = choice.get("delta")
        if type(delta) is not dict or ("logprobs" in choice and "logprobs" not in self._fields):
            return None
        said: str | None = None
        for key, value in delta.items():
            if value and key != "role":
                if said is not None:
                    return None
                said = key
            elif key != "role" and (key, type(value)) not in self._silent:
                return None
        if said is None:
            return None
        if said == "tool_calls":
            return _arguments(delta[said]) if _CALLING.issuperset(delta) else None
        text = delta[said]
        return Piece(said, text) if said in _PIECES and type(text) is str else None

    def take(self, piece: Piece) -> Sequence[Event]:
        """Decode a delta that has one field."""
        if piece.field == "content":
            return self.text(piece.text)
        if piece.call is None:
            return self._thoughts.say(piece.text, [piece.field])
        return self._thoughts.settle(self._calls.feed(Reader(piece.call, "$.choices[0].delta.tool_calls[0]")))

    def lesson(self, piece: Piece, silent: Sequence[str]) -> TemplateHint:
        """Return the decoder of more text, after a piece that continued the open block."""
        if piece.field == "content":
            taker: Callable[[str], Event] = TextDelta if self._index == 0 else self._words
            return TemplateHint((*_DELTA, "content"), taker, silent)
        if piece.call is None:
            return TemplateHint((*_DELTA, piece.field), self._thoughts.more, silent)
        return TemplateHint((*_DELTA, "tool_calls", 0, "function", "arguments"), self._calls.taker(piece.call), silent)

    def _words(self, text: str) -> Event:
        return TextDelta(text, (), self._index)

    def text(self, text: str, logprobs: tuple[Logprob, ...] = ()) -> list[Event]:
        """Take text."""
        events = self._blocks.grow("text", TextDelta(text=text, logprobs=logprobs, candidate=self._index), _TEXT)
        return self._thoughts.settle(events) if self._thoughts.is_open else events

    def feed(self, choice: Reader) -> list[Event]:
        """Take one choice of a chunk.

        Raises:
            WireError: a field is of a wrong type.
        """
        delta = choice.object("delta")
        self._take_logprobs(choice)
        events: list[Event] = []
        if delta is not None:
            take_placeholders(delta, "audio", "function_call")
            empty = [(key, value) for key, value in delta.rest().items() if value in _EMPTY]
            events += self._thoughts.feed(delta)
            for take in (self._take_words, self._take_audio, self._take_calls):
                events += self._thoughts.settle(take(delta))
            events += self._keep(delta)
            self._silent |= {(key, type(value)) for key, value in empty}
        self._take_end(choice)
        return events

    def close(self) -> list[Event]:
        """Return the end of the candidate.

        Raises:
            WireError: a tool call is not whole.
        """
        events = self._thoughts.settle([*self._calls.close(), *self._blocks.close()])
        calls = bool(self._calls)
        finish = decode_finish(self._raw or "stop", self._stop, calls=calls, refused=self._refused)
        if self._assumed:
            finish = replace(finish, raw=None, assumed=True)
        nulls = {key: None for key in self._nulls if key not in self._said | self._thoughts.fields}
        form = self._form | ({"message": nulls} if nulls else {})
        fields = self._fields | ({"message": self._signature} if self._signature else {})
        extra = Extra(dialect=NAME, fields=fields, form=form) if fields or form else None
        return [*events, Finished(finish=finish, candidate=self._index, extra=extra)]

    def _take_logprobs(self, choice: Reader) -> None:
        self._logprobs = {}
        if type(choice.peek("logprobs")) is dict:
            inner = Reader(choice.take("logprobs", dict), choice.at("logprobs"))
            self._logprobs = {key: decode_logprobs(inner, key) for key in ("content", "refusal") if inner.peek(key)}
            leave(choice, "logprobs", inner)

    def _take_words(self, delta: Reader) -> list[Event]:
        logprobs = self._logprobs
        events: list[Event] = []
        content = delta.take_any("content")
        if isinstance(content, str):
            if content or "content" in logprobs:
                events += self.text(content, logprobs.get("content", ()))
        elif isinstance(content, list):
            for place, item in enumerate(content):
                events += self._part(item, f"{delta.at('content')}[{place}]")
        elif content is not None:
            raise expected(delta.at("content"), "str or list", content)
        refusal = delta.take("refusal", str)
        if refusal:
            self._refused = True
            self._said.add("refusal")
            refused = TextDelta(text=refusal, logprobs=logprobs.get("refusal", ()), candidate=self._index)
            events += self._blocks.grow("refusal", refused, _REFUSAL)
        for citation in take_annotations(delta):
            events += self._blocks.grow("text", CitationDelta(citation=citation, candidate=self._index), _TEXT)
        for image in take_images(delta) if "images" in delta else ():
            self._images += 1
            events += self._blocks.open(("image", self._images), image)
            self._said.add("images")
        return events

    def _part(self, item: JSON, path: str) -> list[Event]:
        """Take one part of a content list (Mistral streams them)."""
        read = as_written_by_models(item)
        if read is not item:
            self._form[TOLERATED] = ODD_TEXTS
        match decode_part(read, path):
            case Text(text=text):
                return self.text(text) if text else []
            case Reasoning(text=str(text)) as part:
                thought = ReasoningDelta(text=text, candidate=self._index)
                return self._blocks.grow("thinking", thought, replace(part, text="")) if text else []
            case part:
                return self._opaque({"content": [item]}) if isinstance(part, Opaque) else self._blocks.open(path, part)

    def _take_audio(self, delta: Reader) -> list[Event]:
        inner = delta.object("audio")
        if inner is None:
            return []
        self._said.add("audio")
        part = decode_audio(inner)
        data = part.source.data if isinstance(part.source, Inline) else ""
        events: list[Event] = []
        if data or part.transcript or part.id is not None:
            header = Audio(id=part.id, extra=part.extra)
            grown = AudioDelta(data=data, transcript=part.transcript or "", candidate=self._index)
            events += self._blocks.grow("audio", grown, header)
        if part.expires_at is not None:
            events += self._opaque({"audio": {"expires_at": part.expires_at}})
        return events

    def _take_calls(self, delta: Reader) -> list[Event]:
        events: list[Event] = []
        for item in delta.objects("tool_calls"):
            events += self._calls.feed(item)
        legacy = delta.object("function_call")
        if legacy is not None:
            self._said.add("function_call")
            events += self._calls.feed_legacy(legacy)
        return events

    def _keep(self, delta: Reader) -> list[Event]:
        """Carry the unknown fields; a `null` is form, and an empty value carries no information."""
        delta.take_any("role")
        if is_signature(delta.peek(FIELD)):
            self._signature = {FIELD: delta.take(FIELD, dict)}
        self._nulls |= {key: None for key, value in delta.rest().items() if value is None}
        rest = {key: value for key, value in delta.rest().items() if value not in _EMPTY}
        return self._opaque(rest) if rest else []

    def _opaque(self, delta: JSONObject) -> list[Event]:
        data = {"choices": [{"index": self._index, "delta": delta, "finish_reason": None}]}
        return [OpaqueDelta(dialect=NAME, data=data, candidate=self._index)]

    def _take_end(self, choice: Reader) -> None:
        raw = choice.take_if("finish_reason", str)
        if raw:
            self._raw = raw
            self._stop = take_stop(choice, self._form)
        for key, value in choice.rest().items():
            if value is not None:
                self._fields[key] = value
            elif key not in ("finish_reason", "delta"):
                self._fields.setdefault(key, None)
