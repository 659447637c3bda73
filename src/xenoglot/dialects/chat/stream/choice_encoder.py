"""Encodes one choice of a stream: the chunk for each event of a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import around
from xenoglot.codec.hosted_text import AS_IMAGES, generated_images
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.reader import left
from xenoglot.dialects.chat.assistant_decoder import IMAGES, encode_annotation, encode_image, encode_logprobs
from xenoglot.dialects.chat.assistant_encoder import NO_PLACE, note_explanation, note_order
from xenoglot.dialects.chat.extras import NAME, own_fields
from xenoglot.dialects.chat.finish import encode_finish, matched_stop
from xenoglot.dialects.chat.reasoning import list_of
from xenoglot.dialects.chat.signatures import carry_unsigned, message_signature
from xenoglot.dialects.chat.stream.block_encoder import (
    AudioBlock,
    Block,
    CallBlock,
    ForeignBlock,
    ReasoningBlock,
    TextBlock,
)
from xenoglot.model.content import Audio, HostedResult, Image, Opaque, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, Finished, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Logprob, Part
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Finish

_BEFORE, _AFTER = around()


class ChoiceEncoder:
    """Encodes the chunks of one candidate as bytes: `head` and `tail` surround the choices of each chunk."""

    def __init__(self, index: int, head: bytes, tail: bytes, losses: Losses, *, legacy: bool) -> None:
        self._index = index
        self._head = head
        self._tail = tail
        self._losses = losses
        self._legacy = legacy
        self._where = f"$.candidates[{index}]"
        self._block = Block()
        self._begun: list[Part] = []
        self._calls = 0
        self._thoughts = 0
        self._images = 0
        self._length = 0  # characters of `content` so far
        self._annotations: list[JSONObject] = []
        self._annotated = 0
        self._signed: list[tuple[str, Part]] = []  # what only its maker knows of words, by their paths
        self._before: bytes | None = None
        self._after = self._framed_before = self._framed_after = b""
        self.is_touched = False
        self.is_finished = False

    def role(self) -> bytes:
        """Return the first chunk of the candidate (pitfall-109)."""
        return self._chunk({"role": "assistant", "content": None})

    def speak_legacy(self) -> None:
        """Write calls in the deprecated form from now on."""
        self._legacy = True

    def text(self, text: str) -> bytes | None:
        """Return the chunk of the commonest delta, a piece of text for the open block; `None` if it takes none."""
        if self._before is None:
            return None
        self._block.note(text)
        return self._before + encode_json(text) + self._after

    def frame(self, text: str) -> bytes | None:
        """Return the same in its frame."""
        if self._before is None:
            return None
        self._block.note(text)
        return self._framed_before + encode_json(text) + self._framed_after

    def feed(self, event: Event) -> list[bytes]:
        """Return the chunks of one event of this candidate."""
        self.is_touched = True
        match event:
            case TextDelta(logprobs=()) | ArgumentsDelta() | ReasoningDelta(summary=None):
                chunk = self.text(event.text)
                chunks = [chunk] if chunk is not None else self._deltas(self._block.grow(event))
            case TextDelta(text=text, logprobs=logprobs):
                chunks = self._probable(text, logprobs)
            case BlockStarted(part=part):
                chunks = self._start_block(part)
            case BlockEnded(part=part):
                chunks = self._end_block(part)
            case Finished():
                chunks = self._finish(event)
            case _:
                chunks = self._deltas(self._block.grow(event))
        return chunks

    def _chunk(self, delta: JSONObject, **choice: JSON) -> bytes:
        said = {"index": self._index, "delta": delta, "finish_reason": None, **choice}
        return self._head + encode_json([said]) + self._tail

    def _deltas(self, deltas: Sequence[JSONObject]) -> list[bytes]:
        return [self._chunk(delta) for delta in deltas]

    def _start_block(self, part: Part) -> list[bytes]:
        where = f"{self._where}.content[{len(self._begun)}]"
        self._begun.append(part)
        self._block = self._open(part, where)
        before = [] if isinstance(part, Text) else self._annotate()
        if self._block.wraps is not None:
            opening, closing = self._block.wraps
            self._before = self._head + b'[{"index":%d,"delta":' % self._index + opening
            self._after = closing + b',"finish_reason":null}]' + self._tail
            self._framed_before, self._framed_after = _BEFORE + self._before, self._after + _AFTER
        if isinstance(part, Text | Refusal) and part.logprobs:
            text, self._block = part.text, self._open(type(part)(text=""), where)
            return [*before, *self._probable(text, part.logprobs)]
        return [*before, *self._deltas(self._block.begin())]

    def _open(self, part: Part, where: str) -> Block:
        block = Block()
        match part:
            case Text() | Refusal():
                carry_unsigned(part, where, self._losses)
                block = TextBlock(part)
            case Reasoning():
                block = ReasoningBlock(part, where, self._thoughts, self._losses)
            case ToolCall():
                block = self._call(part, where)
            case Audio():
                block = AudioBlock(part, where, self._losses)
            case Image():
                block = self._image(part, where)
            case HostedResult() if generated_images(part):
                block = self._generated(part, where)
            case Opaque():
                block = self._opaque(part, where)
            case _:
                self._losses.dropped(where, name_of(part), NO_PLACE)
        return block

    def _image(self, part: Image, where: str) -> Block:
        encoded = encode_image(part, self._images, where, self._losses)
        if encoded is None:
            return Block()
        self._images += 1
        return Block([{IMAGES: [encoded]}])

    def _generated(self, part: HostedResult, where: str) -> Block:
        self._losses.approximated(where, name_of(part), AS_IMAGES)
        return Block([delta for image in generated_images(part) for delta in self._image(image, where).begin()])

    def _call(self, part: ToolCall, where: str) -> Block:
        if self._legacy and self._calls:
            self._losses.dropped(where, "tool call", "`function_call` holds one")
            return Block()
        self._calls += 1
        return CallBlock(part, where, self._calls - 1, self._losses, legacy=self._legacy)

    def _opaque(self, part: Opaque, where: str) -> Block:
        key = list_of(part)
        if key == "tool_calls":
            self._calls += 1
            return Block([{key: [{"index": self._calls - 1, **part.data[key][0]}]}])
        if key is not None:
            self._thoughts += 1
            return Block([{key: [{**part.data[key][0], "index": self._thoughts - 1}]}])
        if part.dialect == NAME:
            return Block([{"content": [part.data]}])
        return ForeignBlock(part, where, self._losses)

    def _end_block(self, whole: Part | None) -> list[bytes]:
        chunks = self._deltas(self._block.end(whole))
        said = self._begun[-1] if whole is None and self._begun else whole
        if isinstance(said, Text) and said.extra is not None:
            where = f"{self._where}.content[{len(self._begun) - 1}]"
            carry_unsigned(said, where, self._losses)
            self._signed.append((where, Text(text="", extra=said.extra)))
        self._thoughts += self._block.entries
        if isinstance(self._block, TextBlock) and self._block.key == "content":
            start, self._length = self._length, self._length + self._block.length
            for index, citation in enumerate(self._block.citations):
                where = f"{self._where}.content[{len(self._begun) - 1}].citations[{index}]"
                encoded = encode_annotation(citation, start, self._length, where, self._losses)
                self._annotations += [] if encoded is None else [encoded]
        self._block = Block()
        self._before = None
        return chunks

    def _probable(self, text: str, logprobs: tuple[Logprob, ...]) -> list[bytes]:
        if not isinstance(self._block, TextBlock):
            return []
        self._block.note(text)
        where = f"{self._where}.content[{len(self._begun) - 1}].logprobs"
        found = encode_logprobs(logprobs, where, self._losses)
        said = {"content": None, "refusal": None, self._block.key: found}
        return [self._chunk({self._block.key: text}, logprobs=said)]

    def _annotate(self) -> list[bytes]:
        """Return the citations of the words so far, all at once: the SDK adds to a list only what has an `index`."""
        if not self._annotations:
            return []
        placed = self._annotations
        if self._annotated:
            placed = [{**one, "index": self._annotated + place} for place, one in enumerate(placed)]
        self._annotated += len(placed)
        self._annotations = []
        return [self._chunk({"annotations": placed})]

    def _finish(self, event: Finished) -> list[bytes]:
        self.is_finished = True
        if event.finish.dialect != NAME:
            note_order(self._begun, self._where, self._losses)
        form, own = form_of(event.extra, NAME), own_fields(event.extra, self._where, self._losses)
        last = self._last(event.finish, form)
        chunks = [*self._annotate(), *self._deltas([last] if last else [])]
        finish = encode_finish(event.finish, self._where, self._losses, legacy=self._legacy)
        delta = left(own, form, "message")
        return [*chunks, self._chunk(delta, **{**finish, **matched_stop(event.finish, form), **own})]

    def _last(self, finish: Finish, form: JSONObject) -> JSONObject:
        """Return what is only known at the end: the signature, why the model refused, an empty content."""
        delta = message_signature(self._signed, self._losses)
        if not self._length and not self._calls and "content" not in form:
            delta["content"] = ""
        if finish.explanation is not None:
            note_explanation(self._where, self._losses)
            delta["refusal"] = finish.explanation
        return delta
