"""Encodes and decodes non-streaming responses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.frequent_shapes import silent
from xenoglot.codec.loss import TOLERATED, form_of
from xenoglot.codec.reader import Reader, leave, left, need_object, take_blanks
from xenoglot.dialects.chat.assistant_decoder import decode_assistant, encode_logprobs, take_logprobs
from xenoglot.dialects.chat.assistant_encoder import as_wav, encode_message
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.dialects.chat.fast.frequent_answers import plain_message, plain_response
from xenoglot.dialects.chat.finish import decode_finish, encode_finish, matched_stop, take_stop
from xenoglot.dialects.chat.parts import ODD_TEXTS, as_written_by_models
from xenoglot.dialects.chat.tool_calls import derived_id
from xenoglot.dialects.chat.usage import decode_usage, encode_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Refusal, Text, ToolCall
from xenoglot.model.response import Candidate, Response
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

_ALWAYS = ("id", "object", "created", "model")


def decode_response(body: JSON) -> Response:
    """Return the answer in `body`.

    Raises:
        WireError: it is none; under `$.error` if it is an error that came with the status of an answer.
    """
    return plain_response(body) or _decode_response(body)


def _decode_response(body: JSON) -> Response:
    reader = Reader(body)
    if "error" in reader and "choices" not in reader:
        raise WireError("$.error", "the answer is an error")
    form: JSONObject = {"absent": [key for key in _ALWAYS if key not in reader.rest()]}
    answer_id = reader.take_if("id", str) or None
    reader.take_word("object", ("chat.completion",))
    choices = [Reader(item, f"$.choices[{index}]") for index, item in enumerate(reader.need("choices", list))]
    if not choices:
        raise WireError("$.choices", "empty, expected at least one choice")
    usage = decode_usage(reader.peek("usage"), "$.usage")
    if usage is not None:
        reader.take("usage", dict)
    return Response(
        id=answer_id,
        model=reader.take_if("model", str),
        created=reader.count("created") or None,
        candidates=tuple(_decode_choice(choice, place, answer_id) for place, choice in enumerate(_ordered(choices))),
        usage=usage,
        service_tier=reader.take_if("service_tier", str),
        extra=extra_of(reader, form),
    )


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:
    """Return the answer for the client that sent `request`; it gets deprecated calls if it asked in that way.

    Id and time come from outside; the wire requires them, so where they did not they are empty and 0.
    """
    form, own = form_of(response.extra, NAME), own_fields(response.extra, "$", losses)
    always = {
        "id": response.id or "",
        "object": "chat.completion",
        "created": response.created or 0,
        "model": request.model if response.model is None else response.model,
    }
    body: JSONObject = {key: value for key, value in always.items() if key not in form.get("absent", ())}
    candidates = response.candidates
    if request.media is not None and request.media.audio_format == "wav":
        candidates = tuple(_with_wav(candidate, index, losses) for index, candidate in enumerate(candidates))
    body["choices"] = [_encode_choice(candidate, index, request, losses) for index, candidate in enumerate(candidates)]
    if response.usage is not None:
        body["usage"] = encode_usage(response.usage, losses)
    if response.service_tier is not None:
        body["service_tier"] = response.service_tier
    return body | own


def _with_wav(candidate: Candidate, index: int, losses: Losses) -> Candidate:
    return replace(candidate, content=as_wav(candidate.content, f"$.candidates[{index}]", losses))


def is_legacy(request: Request, call: ToolCall | None = None) -> bool:
    """Whether the client wants deprecated function calls: it asked so, or the server spoke so to one without tools."""
    if "functions" in form_of(request.extra, NAME):
        return True
    return call is not None and not request.tools and "legacy" in form_of(call.extra, NAME)


def _ordered(choices: list[Reader]) -> list[Reader]:
    """Return the choices by index, where the indexes make sense."""
    if len(choices) == 1:
        return choices
    indexes = [choice.peek("index") for choice in choices]
    if all(type(index) is int for index in indexes) and sorted(indexes) == list(range(len(indexes))):
        return sorted(choices, key=lambda choice: int(choice.peek("index")))
    return choices


def _decode_choice(reader: Reader, place: int, answer_id: str | None) -> Candidate:
    form: JSONObject = {}
    if reader.peek("index") == place and type(reader.peek("index")) is int:
        reader.take("index", int)
    else:
        form["index"] = "other"
    message = need_object(reader, "message")
    if message.take_word("role", ("assistant",)) is None:
        form["role"] = "other"
    if isinstance(message.peek("content"), list):
        written = message.peek("content")
        read = message.rest()["content"] = [as_written_by_models(item) for item in written]
        if read != written:
            form[TOLERATED] = ODD_TEXTS
    derive = partial(derived_id, f"{answer_id or ''}:{place}")
    parts, said = decode_assistant(message, derive, partial(derive, 0))
    calls = any(isinstance(part, ToolCall) for part in parts)
    form |= _form(said, parts, calls=calls)
    parts = take_logprobs(reader, parts, form)
    stop = take_stop(reader, form)
    form["finish"] = take_blanks(reader, "finish_reason") or None
    raw = reader.take_if("finish_reason", str)
    nulls = leave(reader, "message", message)
    form["message"] = None if nulls is True else nulls
    refused = any(isinstance(part, Refusal) for part in parts)
    return Candidate(
        content=tuple(parts),
        finish=decode_finish(raw, stop, calls=calls, refused=refused) if raw else None,
        extra=extra_of(reader, form),
    )


def _form(said: JSONObject, parts: list[Part], *, calls: bool) -> JSONObject:
    usual = "string" if any(isinstance(part, Text) for part in parts) else "null" if calls else "empty"
    content = said["content"]
    return {"blanks": said["blanks"], "content": None if content == usual else content}


def _encode_choice(candidate: Candidate, index: int, request: Request, losses: Losses) -> JSONObject:
    return _plain_choice(candidate, index, request, losses) or _spelled_choice(candidate, index, request, losses)


def _spelled_choice(candidate: Candidate, index: int, request: Request, losses: Losses) -> JSONObject:
    where = f"$.candidates[{index}]"
    form, own = form_of(candidate.extra, NAME), own_fields(candidate.extra, where, losses)
    legacy = is_legacy(request, next((part for part in candidate.content if isinstance(part, ToolCall)), None))
    choice: JSONObject = {"index": index} if form.get("index") != "other" else {}
    role = {"role": "assistant"} if form.get("role") != "other" else {}
    message = encode_message(candidate, where, losses, legacy=legacy)
    choice["message"] = role | message | left(own, form, "message")
    choice |= _logprobs(candidate, where, own, losses)
    if candidate.finish is None or candidate.finish.dialect != NAME:  # the schema requires them; a server may not
        choice["message"].setdefault("refusal", None)
        choice.setdefault("logprobs", None)
    if candidate.finish is None:
        return {**choice, "finish_reason": None, **form.get("finish", {}), **own}
    finish = encode_finish(candidate.finish, where, losses, legacy=legacy)
    return {**choice, **finish, **matched_stop(candidate.finish, form), **own, **finish}


@shortcut("messages")
def _plain_choice(candidate: Candidate, index: int, request: Request, losses: Losses) -> JSONObject | None:
    finish = candidate.finish
    if finish is None or finish.explanation is not None or is_legacy(request) or not silent(candidate.extra, NAME):
        return None
    message = plain_message(candidate.content)
    if message is None:
        return None
    choice: JSONObject = {"index": index, "message": message}
    if finish.dialect != NAME:
        message["refusal"] = choice["logprobs"] = None
    return {
        **choice,
        **encode_finish(finish, f"$.candidates[{index}]", losses, legacy=False),
        **matched_stop(finish, {}),
    }


def _logprobs(candidate: Candidate, where: str, own: JSONObject, losses: Losses) -> JSONObject:
    form = form_of(candidate.extra, NAME)
    said: JSONObject = {}
    for key, kind in (("content", Text), ("refusal", Refusal)):
        found = [
            probable
            for index, part in enumerate(candidate.content)
            if isinstance(part, kind)
            for probable in encode_logprobs(part.logprobs, f"{where}.content[{index}].logprobs", losses)
        ]
        if found:
            said[key] = found
    if not said and "logprobs" not in form:
        return {}
    nulls = {} if "logprobs" in form else {"refusal": None}
    return {"logprobs": nulls | said | left(own, form, "logprobs")}
