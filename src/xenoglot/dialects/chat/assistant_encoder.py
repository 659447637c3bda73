"""Encodes assistant messages: each part goes to its field, in an answer or in the history."""

from __future__ import annotations

import re
import struct
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.hosted_text import AS_IMAGES, generated_images
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.codec.target import Target
from xenoglot.dialects.chat.assistant_decoder import IMAGES, encode_annotation, encode_audio, encode_image
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.parts import encode_opaque, encode_part
from xenoglot.dialects.chat.reasoning import answer_fields, list_of
from xenoglot.dialects.chat.signatures import carry_unsigned, message_signature, with_signature
from xenoglot.dialects.chat.tool_calls import NO_ARGUMENTS, encode_call, encode_function_call
from xenoglot.model.content import Audio, HostedResult, Image, Inline, Opaque, Reasoning, Refusal, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Candidate


NO_PLACE = "an answer holds text, images, sound and tool calls only"

_RAW = ("l16", "pcm")
_RATE = re.compile(r"rate=(\d{1,6})")
_USUAL_RATE = 24_000
"""Samples a second where a server does not name how many; OpenAI's `pcm16` has as many."""

_WORDS = 1
_RANKS = {Reasoning: 0, Image: 2, Refusal: 3, Audio: 4, ToolCall: 5}
"""The order in which the parts of an assistant's turn are read from its fields."""


class AssistantFields:
    """The parts of an assistant message, grouped by field, each with its path."""

    __slots__ = ("_answer", "audio", "calls", "generated", "images", "refusals", "thoughts", "words")

    def __init__(self, parts: Iterable[Part], where: str, *, answer: bool = False) -> None:
        self._answer = answer
        """Whether images and sound of other dialects are the model's own too."""
        self.thoughts: list[tuple[str, Reasoning | Opaque]] = []
        self.words: list[tuple[str, Part]] = []
        self.refusals: list[tuple[str, Refusal]] = []
        self.images: list[tuple[str, Image]] = []
        self.generated: list[tuple[str, HostedResult]] = []
        self.audio: list[tuple[str, Audio]] = []
        self.calls: list[tuple[str, ToolCall | Opaque]] = []
        for index, part in enumerate(parts):
            self._add(f"{where}.content[{index}]", part)

    def _add(self, where: str, part: Part) -> None:
        match part:
            case Reasoning() if "part" not in form_of(part.extra, NAME):
                self.thoughts.append((where, part))
            case Opaque() if list_of(part) == "tool_calls":
                self.calls.append((where, part))
            case Opaque() if list_of(part) is not None:
                self.thoughts.append((where, part))
            case ToolCall():
                self.calls.append((where, part))
            case Refusal() if "part" not in form_of(part.extra, NAME):
                self.refusals.append((where, part))
            case Audio(source=source) if self._answer or part.id is not None or source is None:
                self.audio.append((where, part))
            case Image() if self._answer or IMAGES in form_of(part.extra, NAME):
                self.images.append((where, part))
            case HostedResult() if self._answer and generated_images(part):
                self.generated.append((where, part))
                self.images += [(where, image) for image in generated_images(part)]
            case _:
                self.words.append((where, part))


def encode_message(candidate: Candidate, where: str, losses: Losses, *, legacy: bool) -> JSONObject:
    """Return the message of an answer without its role; its calls in the deprecated form where `legacy`."""
    form = form_of(candidate.extra, NAME)
    parts = AssistantFields(candidate.content, where, answer=form.get("content") != "parts")
    finish = candidate.finish
    if finish is None or finish.dialect != NAME:
        note_order(candidate.content, where, losses)
    message = answer_fields(parts.thoughts, losses)
    message |= _content(parts, form, losses)
    message |= message_signature(parts.words, losses)
    refusal = refusal_field(parts)
    message |= refusal or _explained(candidate, where, losses)
    if refusal and finish is not None and finish.explanation is not None:
        losses.dropped(f"{where}.finish", "explanation", "the model's own words are the `refusal`")
    message |= _annotations(parts, losses)
    message |= images_field(parts, losses)
    for at, audio in parts.audio:
        message["audio"] = encode_audio(audio, at, losses)
        if finish is None or finish.dialect != NAME:  # the schema requires them
            message["audio"] = {"id": "", "expires_at": 0, "transcript": "", **message["audio"]}
    message |= _legacy_call(parts, losses) if legacy else _calls(parts, losses)
    return {key: value for key, value in form.get("blanks", {}).items() if key not in message} | message


def as_wav(parts: Sequence[Part], where: str, losses: Losses) -> tuple[Part, ...]:
    """Return the parts of an answer for a client that wants `wav`: raw samples get the header of such a file.

    Gemini sends samples of 16 bits, one channel, as `audio/L16;codec=pcm;rate=24000`
    (https://ai.google.dev/gemini-api/docs/speech-generation).
    """
    found: list[Part] = []
    for index, part in enumerate(parts):
        samples = _samples(part)
        if isinstance(part, Audio) and samples is not None:
            losses.emulated(f"{where}.content[{index}]", "format", "raw samples get the header of a WAV file")
            data = b64encode(_wav_header(len(samples), _rate(part.format or "")) + samples).decode()
            found.append(replace(part, source=Inline(data), format=None))
        else:
            found.append(part)
    return tuple(found)


def _samples(part: Part) -> bytes | None:
    """Return the raw samples of a part; `None` for one without any."""
    if not isinstance(part, Audio) or not isinstance(part.source, Inline):
        return None
    if not (part.format or "").lower().startswith(_RAW):
        return None
    try:
        return b64decode(part.source.data, validate=True)
    except ValueError:  # whatever it is, the client gets it as it came
        return None


def _rate(form: str) -> int:
    match = _RATE.search(form)
    return _USUAL_RATE if match is None else int(match[1])


def _wav_header(size: int, rate: int) -> bytes:
    """Return the header of a WAV file of `size` bytes of samples."""
    fields = (b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16, b"data", size)
    return struct.pack("<4sI4s4sIHHIIHH4sI", *fields)


def _explained(candidate: Candidate, where: str, losses: Losses) -> JSONObject:
    """Return a provider's explanation as the `refusal`, which the model's own words left free."""
    explanation = candidate.finish.explanation if candidate.finish is not None else None
    if explanation is None:
        return {}
    note_explanation(where, losses)
    return {"refusal": explanation}


def note_explanation(where: str, losses: Losses) -> None:
    """Note where an explanation has gone."""
    losses.emulated(f"{where}.finish", "explanation", "written as the `refusal` of the message")


def note_order(parts: Iterable[Part], where: str, losses: Losses) -> None:
    """Note where parts stood in another order than that of their fields (pitfall-12)."""
    ranks = [_RANKS.get(type(part), _WORDS) for part in parts]
    if ranks != sorted(ranks):
        losses.approximated(where, "order", "reasoning comes first, calls last")


def images_field(parts: AssistantFields, losses: Losses) -> JSONObject:
    """Return the `images` of a message."""
    for at, result in parts.generated:
        losses.approximated(at, name_of(result), AS_IMAGES)
    encoded = [encode_image(part, place, at, losses) for place, (at, part) in enumerate(parts.images)]
    images = [item for item in encoded if item is not None]
    return {IMAGES: images} if images else {}


def refusal_field(parts: AssistantFields) -> JSONObject:
    """Return the `refusal` of a message."""
    text = "".join(part.text for _, part in parts.refusals)
    return {"refusal": text} if text else {}


def call_item(part: ToolCall | Opaque, call_id: str, name: str, where: str, losses: Losses) -> JSONObject:
    """Return one entry of `tool_calls`; one that we did not understand as it came."""
    if isinstance(part, Opaque):
        item: JSONObject = part.data["tool_calls"][0]
        return item
    return encode_call(part, call_id, name, where, losses)


def complete(call: ToolCall) -> ToolCall:
    """Return the call with arguments that a client can parse."""
    return call if call.arguments or call.kind == "custom" else replace(call, arguments=NO_ARGUMENTS)


def _calls(parts: AssistantFields, losses: Losses) -> JSONObject:
    calls = [
        call_item(part, "", "", at, losses)
        if isinstance(part, Opaque)
        else call_item(complete(with_signature(part, at, losses)), part.id, part.name, at, losses)
        for at, part in parts.calls
    ]
    return {"tool_calls": calls} if calls else {}


def _legacy_call(parts: AssistantFields, losses: Losses) -> JSONObject:
    calls = [(at, complete(part)) for at, part in parts.calls if isinstance(part, ToolCall)]
    for at, _ in calls[1:]:
        losses.dropped(at, "tool call", "`function_call` holds one")
    if not calls:
        return {}
    at, call = calls[0]
    return {"function_call": encode_function_call(call, call.name, at, losses)}


def _content(parts: AssistantFields, form: JSONObject, losses: Losses) -> JSONObject:
    spelled = form.get("content")
    crossing = EncodeContext(losses, Target(), home=True)
    if spelled == "parts":
        encoded = [encode_part(_plain(part), at, crossing) for at, part in parts.words]
        return {"content": [item for item in encoded if item is not None]}
    texts = [text for at, part in parts.words if (text := _text(part, at, crossing)) is not None]
    if any(texts):
        return {"content": "".join(texts)}
    if spelled is None:
        spelled = "null" if parts.calls else "empty"
    return {} if spelled == "absent" else {"content": None if spelled == "null" else ""}


def _plain(part: Part) -> Part:
    """Return a text as it stands in a list of parts: its citations and probabilities stand elsewhere."""
    return replace(part, citations=(), logprobs=()) if isinstance(part, Text) else part


def _text(part: Part, where: str, crossing: EncodeContext) -> str | None:
    """Return the text of a part of an answer; what has none is a loss."""
    if isinstance(part, Text):
        carry_unsigned(part, where, crossing.losses)
        return part.text
    if isinstance(part, Opaque) and part.dialect != NAME:
        encoded = encode_opaque(part, where, crossing)
        return None if encoded is None else part.text
    crossing.losses.dropped(where, name_of(part), NO_PLACE)
    return None


def _annotations(parts: AssistantFields, losses: Losses) -> JSONObject:
    annotations: list[JSON] = []
    start = 0
    for at, part in parts.words:
        words = part.text if isinstance(part, Text | Opaque) else None
        end = start + len(words or "")
        if isinstance(part, Text):
            for index, citation in enumerate(part.citations):
                encoded = encode_annotation(citation, start, end, f"{at}.citations[{index}]", losses)
                annotations += [] if encoded is None else [encoded]
        start = end
    return {"annotations": annotations} if annotations else {}
