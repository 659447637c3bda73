"""Decodes assistant messages, which have the same shape in an answer and in the history of a request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, expected, is_placeholder, leave, left, take_blanks, take_placeholders
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.codec.target import Target
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.dialects.chat.parts import decode_part, encode_part
from xenoglot.dialects.chat.reasoning import take_reasoning
from xenoglot.dialects.chat.tool_calls import decode_call, decode_function_call
from xenoglot.errors import WireError
from xenoglot.model.content import Audio, Citation, Extra, Image, Inline, Logprob, Refusal, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

BLANKS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "tool_calls",
    "annotations",
    "refusal",
    "images",
)
"""The fields that servers write although they are empty."""

IMAGES = "images"
"""The field of a message with the images that the model made; the form of each has its fields that are not shared."""


def take_content(reader: Reader) -> tuple[list[Part], str]:
    """Take `content`: its parts, and how it was spelled: `string`, `empty`, `parts`, `null` or `absent`.

    Raises:
        WireError: it is neither text nor a list of parts.
    """
    value = reader.peek("content")
    if value is None:
        spelled = "null" if "content" in reader.rest() else "absent"
        reader.rest().pop("content", None)
        return [], spelled
    if isinstance(value, str):
        reader.take("content", str)
        return ([Text(text=value)], "string") if value else ([], "empty")
    if not isinstance(value, list):
        raise expected(reader.at("content"), "str or list", value)
    reader.take("content", list)
    return [decode_part(item, f"{reader.at('content')}[{index}]") for index, item in enumerate(value)], "parts"


def decode_assistant(
    reader: Reader, derive: Callable[[int], str] | None, function_id: Callable[[], str]
) -> tuple[list[Part], JSONObject]:
    """Take the parts of an assistant's message, in the order reasoning, words, images, refusal, sound, calls; its form.

    `derive` gives the id of a call that has none, by position; without it such a call is an error. `function_id` gives
    that of a deprecated `function_call`.

    Raises:
        WireError: a field is of a wrong type.
    """
    blanks = take_blanks(reader, *BLANKS) | take_placeholders(reader, "tool_calls", "function_call", "audio")
    parts = take_reasoning(reader)
    content, spelled = take_content(reader)
    parts += _cited(content, reader)
    parts += take_images(reader)
    refusal = reader.take("refusal", str)
    if refusal is not None:
        parts.append(Refusal(text=refusal))
    if (audio := reader.object("audio")) is not None:
        parts.append(decode_audio(audio))
    parts += _take_calls(reader, derive, function_id)
    return parts, {"blanks": blanks, "content": spelled}


def take_images(reader: Reader) -> list[Part]:
    """Take the images that the model made, OpenRouter's `images`; another value than a list of `image_url` remains.

    Source: https://openrouter.ai/docs/guides/overview/multimodal/image-generation.
    """
    items = reader.peek(IMAGES)
    if not isinstance(items, list) or not all(map(_is_image, items)):
        return []
    reader.take(IMAGES, list)
    return [_decode_image(item, f"{reader.at(IMAGES)}[{index}]") for index, item in enumerate(items)]


def _is_image(item: JSON) -> bool:
    if not isinstance(item, dict) or item.get("type") != "image_url":
        return False
    inner = item.get("image_url")
    return isinstance(inner, dict) and isinstance(inner.get("url"), str)


def _decode_image(item: JSONObject, path: str) -> Part:
    part = decode_part({key: value for key, value in item.items() if key != "index"}, path)
    extra = (part.extra if isinstance(part, Image) else None) or Extra(dialect=NAME)
    place = {"index": item["index"]} if "index" in item else {}
    return replace(part, extra=replace(extra, form={**extra.form, IMAGES: place}))


def encode_image(part: Image, place: int, where: str, losses: Losses) -> JSONObject | None:
    """Return an image that the model made, the one at `place`; `None` (and a loss) if its bytes are elsewhere."""
    encoded = encode_part(part, where, EncodeContext(losses, Target(), home=False))
    if encoded is None:
        return None
    beside: JSONObject = form_of(part.extra, NAME).get(IMAGES, {"index": place})
    return {**encoded, **beside}


def take_annotations(reader: Reader) -> tuple[Citation, ...]:
    """Take `annotations`; where they are no list of objects they stay in the rest."""
    items = reader.peek("annotations")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return ()
    reader.take("annotations", list)
    return tuple(_decode_annotation(Reader(item, reader.at("annotations"))) for item in items)


def decode_audio(reader: Reader) -> Audio:
    """Return sound that the model made."""
    data = reader.take("data", str)
    return Audio(
        id=reader.take("id", str),
        source=None if data is None else Inline(data=data),
        transcript=reader.take("transcript", str),
        expires_at=reader.take("expires_at", int),
        extra=extra_of(reader, {}),
    )


def encode_audio(audio: Audio, where: str, losses: Losses) -> JSONObject:
    """Return sound that the model made."""
    data = audio.source.data if isinstance(audio.source, Inline) else None
    fields = {"id": audio.id, "data": data, "transcript": audio.transcript, "expires_at": audio.expires_at}
    if audio.format is not None:
        losses.dropped(where, "format", "an answer of the dialect does not name it")
    own = own_fields(audio.extra, where, losses)
    return {key: value for key, value in fields.items() if value is not None} | own


def encode_annotation(citation: Citation, start: int, end: int, where: str, losses: Losses) -> JSONObject | None:
    """Return a citation as an annotation; one that is not of a URL cannot be written.

    `start` and `end` are those of the text that cites, where the citation has none of its own.
    """
    form, own = form_of(citation.extra, NAME), own_fields(citation.extra, where, losses)
    if "other" in form:
        return {"type": citation.kind, **form.get("place", {}), **own}
    if citation.url is None:
        losses.dropped(where, citation.kind, "only URLs can be cited")
        return None
    cited: JSONObject = {"url": citation.url}
    if citation.title is not None:
        cited["title"] = citation.title
    elif citation.extra is None or citation.extra.dialect != NAME:
        losses.approximated(where, "title", "the dialect requires one: it is empty")
        cited["title"] = ""
    if citation.extra is None or citation.extra.dialect != NAME:
        losses.approximated(where, citation.kind, "written as a URL citation")
    for key, said, known in (("start_index", citation.start, start), ("end_index", citation.end, end)):
        if key not in form.get("absent", ()):
            cited[key] = known if said is None else said
    inner = {**cited, **left(own, form, "url_citation")}
    return {"type": "url_citation", "url_citation": inner, **form.get("place", {}), **own}


def take_logprobs(choice: Reader, parts: list[Part], form: JSONObject) -> list[Part]:
    """Take the `logprobs` of a choice and hang them on the words they belong to."""
    value = choice.peek("logprobs")
    if not isinstance(value, dict):
        return parts
    inner = Reader(value, choice.at("logprobs"))
    for key, kind in (("content", Text), ("refusal", Refusal)):
        place = next((index for index, part in enumerate(parts) if type(part) is kind), None)
        if place is not None and inner.peek(key):
            logprobs = decode_logprobs(inner, key)
            parts = [*parts[:place], replace(parts[place], logprobs=logprobs), *parts[place + 1 :]]
    if inner.rest().keys() == value.keys():
        return parts
    choice.take("logprobs", dict)
    nulls = leave(choice, "logprobs", inner)
    if nulls != {"refusal": None}:
        form["logprobs"] = nulls
    return parts


def decode_logprobs(reader: Reader, key: str) -> tuple[Logprob, ...]:
    """Take the list of token probabilities under `key`."""
    return tuple(_decode_logprob(item) for item in reader.objects(key))


def encode_logprobs(logprobs: Sequence[Logprob], where: str, losses: Losses) -> list[JSONObject]:
    """Return a list of token probabilities."""
    return [_encode_logprob(logprob, where, losses) for logprob in logprobs]


def _take_calls(reader: Reader, derive: Callable[[int], str] | None, function_id: Callable[[], str]) -> list[Part]:
    items = reader.take("tool_calls", list) or ()
    calls: list[Part] = [
        decode_call(item, f"{reader.path}.tool_calls[{index}]", None if derive is None else partial(derive, index))
        for index, item in enumerate(items)
        if not is_placeholder(item)
    ]
    legacy = reader.object("function_call")
    return calls if legacy is None else [*calls, decode_function_call(legacy, function_id())]


def _cited(content: list[Part], reader: Reader) -> list[Part]:
    """Hang the annotations on the first words, or on none where there are no words."""
    citations = take_annotations(reader)
    if not citations:
        return content
    for place, part in enumerate(content):
        if isinstance(part, Text):
            return [*content[:place], replace(part, citations=citations), *content[place + 1 :]]
    return [*content, Text(text="", citations=citations)]


def _decode_annotation(reader: Reader) -> Citation:
    inner = reader.object("url_citation") if type(reader.peek("url_citation")) is dict else None
    kind = reader.take_if("type", str)
    place = {"index": reader.take_any("index")} if type(reader.peek("index")) is int else None  # among deltas
    if inner is None or kind != "url_citation":
        if inner is not None:
            reader.rest()["url_citation"] = inner.rest()
        return Citation(kind=kind or "annotation", extra=extra_of(reader, {"other": True, "place": place}))
    url, title = inner.take_if("url", str), inner.take_if("title", str)
    start, end = inner.count("start_index"), inner.count("end_index")
    absent = [key for key, value in (("start_index", start), ("end_index", end)) if value is None]
    nulls = leave(reader, "url_citation", inner)
    return Citation(
        kind=kind,
        url=url,
        title=title,
        start=start,
        end=end,
        extra=Extra(
            dialect=NAME,
            fields=reader.rest(),
            form={"absent": absent, "place": place or {}} | ({} if nulls is True else {"url_citation": nulls}),
        ),
    )


def _decode_logprob(reader: Reader) -> Logprob:
    token, logprob = reader.need("token", str), reader.need("logprob", float)
    codes = reader.take("bytes", list)
    bare = codes is None and "bytes" not in reader.rest()
    if codes is None:
        reader.rest().pop("bytes", None)
    elif not all(type(code) is int for code in codes):
        raise WireError(reader.at("bytes"), "expected list of int")
    listed = "top_logprobs" in reader
    top = decode_logprobs(reader, "top_logprobs") if listed else None
    return Logprob(
        token=token,
        logprob=logprob,
        bytes=None if codes is None else tuple(codes),
        top=top,
        extra=extra_of(reader, {"bare": bare}),
    )


def _encode_logprob(logprob: Logprob, where: str, losses: Losses) -> JSONObject:
    form, own = form_of(logprob.extra, NAME), own_fields(logprob.extra, where, losses)
    fields: JSONObject = {"token": logprob.token, "logprob": logprob.logprob}
    if "bare" not in form:
        fields["bytes"] = None if logprob.bytes is None else list(logprob.bytes)
    if logprob.top is not None:
        fields["top_logprobs"] = encode_logprobs(logprob.top, where, losses)
    return fields | own
