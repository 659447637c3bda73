"""Encodes one candidate of a stream: text and reasoning as they arrive, other parts when complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.gemini.candidate import BLANK, LOGPROBS, goes_on, says_nothing
from xenoglot.dialects.gemini.citations import Grounding, bytes_of
from xenoglot.dialects.gemini.extras import NAME, SIGNATURE, with_rest
from xenoglot.dialects.gemini.finish import encode_finish
from xenoglot.dialects.gemini.logprobs import encode_logprobs
from xenoglot.dialects.gemini.parts.encoder import SUMMARY_BREAK, PartEncoder
from xenoglot.dialects.gemini.signatures import signature_of_words, split, take_answered
from xenoglot.dialects.google.shared import with_said
from xenoglot.model.content import HostedCall, HostedResult, Opaque, Reasoning, Refusal, Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.model.fold import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Logprob, Part
    from xenoglot.model.json import JSONObject

_HEAD = b'{"candidates":[{"content":{"parts":['
_FOOT = b'],"role":"model"},"index":%d}]'
_TEXT = _HEAD + b'{"text":'


class CandidateEncoder:
    """Encodes the chunks of candidate `index`; `tail` follows the candidates in each chunk."""

    __slots__ = (
        "_before",
        "_block",
        "_blocks",
        "_count",
        "_foot",
        "_grounding",
        "_held",
        "_index",
        "_last",
        "_losses",
        "_mode",
        "_part",
        "_said",
        "_summary",
        "_told",
        "finished",
    )

    def __init__(self, index: int, tail: bytes, losses: Losses) -> None:
        self._index = index
        self._losses = losses
        self._foot = _FOOT % index + tail
        self._grounding = Grounding(f"$.candidates[{index}]", losses)
        self._part: Part | None = None  # as it was when the block opened
        self._mode: type[Part] | None = None  # what of the open block is written as it comes
        self._block = Folder()  # the open block
        self._held = ""  # the last piece of a thought: the seal stands beside it
        self._summary: int | None = None
        self._last: JSONObject = {}  # part that was written
        self._count = 0  # parts, as a reader joins them
        self._before = 0  # bytes of the last of them that are not of the open block
        self._said: list[str] = []  # the words that are
        self._blocks = 0  # that were opened
        self._told: list[Part] = []  # parts that the reason of the end may depend on
        self.finished: Finished | None = None

    @property
    def _where(self) -> str:
        return f"$.candidates[{self._index}].content[{self._blocks - 1}]"

    def text(self, text: str) -> Sequence[ServerSentEvent] | None:
        """Return the chunk that adds words to an open text; `None` if none is open."""
        if self._mode is not Text:
            return None
        if self._last is not BLANK:
            return self._say(text, ()) if text else ()
        self._said.append(text)
        return (ServerSentEvent(_TEXT + encode_json(text) + b"}" + self._foot),) if text else ()

    def feed(self, event: Event) -> Sequence[ServerSentEvent]:
        """Take an event of this candidate; return what it makes."""
        match event:
            case BlockStarted(part=part):
                return self._begin(part, event)
            case BlockEnded():
                self._block.feed(event)
                return self._end()
            case Finished():
                self.finished = event
                return ()
            case _:
                self._block.feed(event)
                return self._grow(event)

    def _begin(self, part: Part, event: BlockStarted) -> Sequence[ServerSentEvent]:
        self._part, self._held, self._summary = part, "", None
        self._blocks += 1
        self._block = Folder()
        self._block.feed(event)
        self._mode = None if _is_own(part) else type(part)
        if isinstance(part, Refusal):
            self._mode = Text
            self._told.append(part)
        if self._mode is Reasoning and isinstance(part, Reasoning):
            return self._think(part.text or SUMMARY_BREAK.join(part.summary or ()))
        if self._mode is not Text or not isinstance(part, Text | Refusal):
            return ()
        self._encode(part)  # for what it loses
        more = self._last.keys() == BLANK.keys()
        self._before = self._before + bytes_of("".join(self._said)) if more else 0
        self._said = []
        return self._say(part.text, part.logprobs) if part.text or part.logprobs else ()

    def _grow(self, event: Event) -> Sequence[ServerSentEvent]:
        if self._mode is Text and isinstance(event, TextDelta):
            return self._say(event.text, event.logprobs) if event.text or event.logprobs else ()
        if self._mode is Reasoning and isinstance(event, ReasoningDelta):
            begun, self._summary = self._summary, event.summary
            joint = "" if event.summary is None or begun in (None, event.summary) else SUMMARY_BREAK
            return self._think(joint + event.text)
        return ()

    def _say(self, text: str, logprobs: Sequence[Logprob]) -> Sequence[ServerSentEvent]:
        self._place(BLANK)
        self._said.append(text)
        if not logprobs:
            return (ServerSentEvent(_TEXT + encode_json(text) + b"}" + self._foot),)
        result = {LOGPROBS: encode_logprobs(logprobs, self._where, self._losses)}
        head, _, tail = self._foot.partition(b"}]")
        beside = b"," + encode_json(result)[1:-1]
        return (ServerSentEvent(_TEXT + encode_json(text) + b"}" + head + beside + b"}]" + tail),)

    def _place(self, encoded: JSONObject) -> None:
        """Count a part, unless a reader takes it for more of the last."""
        if not goes_on(self._last, encoded):
            self._count += 1
            self._before, self._said = 0, []
        self._last = encoded

    def _think(self, text: str) -> Sequence[ServerSentEvent]:
        """Write the piece of reasoning that was held back, and hold this one."""
        if not text:
            return ()
        held, self._held = self._held, text
        return self._write({"text": held, "thought": True}) if held else ()

    def _end(self) -> Sequence[ServerSentEvent]:
        content = self._block.content(self._index)
        part = content[0] if content else self._part
        if part is None:
            return ()
        if isinstance(part, HostedCall | HostedResult) and self._grounding.ran(part, self._where):
            return ()
        mode, self._mode = self._mode, None
        if isinstance(part, Text | Refusal) and mode is Text:
            return self._end_words(part)
        if not isinstance(part, Reasoning) or mode is not Reasoning:
            return [chunk for encoded in self._encode(part) for chunk in self._write(encoded)]
        held = {"text": self._held} if self._held else {}
        return [chunk for encoded in self._encode(part) for chunk in self._write({**encoded, **held})]

    def _end_words(self, part: Text | Refusal) -> Sequence[ServerSentEvent]:
        """Close a text: write what no delta had, and note what it cites."""
        made = self._say(part.text, ()) if part.text and not self._said else ()
        text = "".join(self._said)
        for citation in part.citations if isinstance(part, Text) else ():
            self._grounding.cite(citation, text, max(self._count - 1, 0), self._before)
        seal = signature_of_words(part)
        return made if seal is None else [*made, *self._write(split({SIGNATURE: seal})[1])]

    def _write(self, encoded: JSONObject) -> Sequence[ServerSentEvent]:
        if says_nothing(encoded):
            return ()
        self._place(encoded)
        if encoded.keys() == BLANK.keys():
            self._said.append(encoded["text"])
        return (ServerSentEvent(_HEAD + encode_json(encoded) + self._foot),)

    def _encode(self, part: Part) -> Sequence[JSONObject]:
        return PartEncoder(self._losses, home=_is_own(part)).part(part, self._where, "model")

    def end(self) -> JSONObject:
        """Return the candidate as it stands in the last chunk."""
        where = f"$.candidates[{self._index}]"
        finished = self.finished
        extra, signature = take_answered(finished.extra if finished is not None else None, where, self._losses)
        parts = [with_said(dict(BLANK), thoughtSignature=signature)]
        own: JSONObject = {"content": {"parts": parts, "role": "model"}, "index": self._index}
        if finished is None:
            return own
        own |= encode_finish(finished.finish, self._told, where, self._losses)
        own |= self._grounding.metadata(self._count)
        return with_rest(own, extra, where, self._losses)


def _is_own(part: Part) -> bool:
    """Whether the part has fields that only this dialect holds."""
    return not isinstance(part, Opaque) and part.extra is not None and part.extra.dialect == NAME
