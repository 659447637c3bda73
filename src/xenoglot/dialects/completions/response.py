"""Encodes and decodes non-streaming responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, take_blanks
from xenoglot.codec.requests.prompt_echo import head_of, is_echoed, is_marked
from xenoglot.dialects.completions.extras import NAME, extra_of, own_fields
from xenoglot.dialects.completions.finish import encode_finish, take_finish
from xenoglot.dialects.completions.logprobs import encode_logprobs, left_logprobs, take_logprobs
from xenoglot.dialects.completions.response_text import echo_of, take_text, words_of
from xenoglot.dialects.openai.usage import decode_usage, encode_usage
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Refusal, Text
from xenoglot.model.response import Candidate, Response

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

OBJECT = "text_completion"
_ALWAYS = ("id", "object", "created", "model")


def decode_response(body: JSON) -> Response:
    """Return the answer in `body`.

    Raises:
        WireError: it is none; under `$.error` if it is an error that came with the status of an answer.
    """
    reader = Reader(body)
    if "error" in reader and "choices" not in reader:
        raise WireError("$.error", "the answer is an error")
    form: JSONObject = {"absent": [key for key in _ALWAYS if key not in reader.rest()]}
    answer_id = reader.take_if("id", str) or None
    reader.take_word("object", (OBJECT,))
    choices = [Reader(item, f"$.choices[{index}]") for index, item in enumerate(reader.need("choices", list))]
    if not choices:
        raise WireError("$.choices", "empty, expected at least one choice")
    usage = decode_usage(reader.peek("usage"), "$.usage", NAME)
    if usage is not None:
        reader.take("usage", dict)
    return Response(
        id=answer_id,
        model=reader.take_if("model", str),
        created=reader.count("created") or None,
        candidates=tuple(_decode_choice(choice, place) for place, choice in enumerate(_ordered(choices))),
        usage=usage,
        service_tier=reader.take_if("service_tier", str),
        extra=extra_of(reader, form) or Extra(dialect=NAME),
    )


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:
    """Return the answer for the client that sent `request`; it begins with the prompt if the client requested that.

    Id and time come from outside; the wire requires them, so where they did not they are empty and 0.
    """
    form, own = form_of(response.extra, NAME), own_fields(response.extra, "$", losses)
    always = {
        "id": response.id or "",
        "object": OBJECT,
        "created": response.created or 0,
        "model": request.model if response.model is None else response.model,
    }
    body: JSONObject = {key: value for key, value in always.items() if key not in form.get("absent", ())}
    home = is_echoed(response.extra, NAME)
    body["choices"] = [
        _encode_choice(candidate, index, "" if home else _echo(candidate, index, request, losses), losses)
        for index, candidate in enumerate(response.candidates)
    ]
    if response.usage is not None:
        body["usage"] = encode_usage(response.usage, losses, NAME)
    if response.service_tier is not None:
        body["service_tier"] = response.service_tier
    return body | own


def _ordered(choices: list[Reader]) -> list[Reader]:
    """Return the choices by index, where the indexes make sense."""
    indexes = [choice.peek("index") for choice in choices]
    if all(type(index) is int for index in indexes) and sorted(indexes) == list(range(len(indexes))):
        return sorted(choices, key=lambda choice: int(choice.peek("index")))
    return choices


def _decode_choice(reader: Reader, place: int) -> Candidate:
    form: JSONObject = {}
    if reader.peek("index") == place and type(reader.peek("index")) is int:
        reader.take("index", int)
    else:
        form["index"] = "other"
    text = take_text(reader)
    form["text"] = None if text is not None else "none"
    logprobs = take_logprobs(reader, form)
    form["finish"] = take_blanks(reader, "finish_reason") or None
    finish = take_finish(reader, form)
    return Candidate(
        content=(Text(text=text or "", logprobs=logprobs),) if text or logprobs else (),
        finish=finish,
        extra=extra_of(reader, form),
    )


def _echo(candidate: Candidate, index: int, request: Request, losses: Losses) -> str:
    first = candidate.content[0] if candidate.content else None
    return "" if is_marked(first) else echo_of(request, index, losses)


def _encode_choice(candidate: Candidate, index: int, echo: str, losses: Losses) -> JSONObject:
    where = f"$.candidates[{index}]"
    form, own = form_of(candidate.extra, NAME), own_fields(candidate.extra, where, losses)
    choice: JSONObject = {"index": index} if form.get("index") != "other" else {}
    said = [words_of(part, f"{where}.content[{number}]", losses) for number, part in enumerate(candidate.content)]
    if any(said) or "text" not in form:
        choice["text"] = echo + "".join(words or "" for words in said)
    choice |= _logprobs(candidate, len(echo), where, own, losses)
    if candidate.finish is None:
        return {**choice, "finish_reason": None, **form.get("finish", {}), **own}
    refused = any(isinstance(part, Refusal) for part in candidate.content)
    finish = encode_finish(candidate.finish, form, where, losses, refused=refused)
    return {**choice, **finish, **own, **finish}


def _logprobs(candidate: Candidate, start: int, where: str, own: JSONObject, losses: Losses) -> JSONObject:
    form = form_of(candidate.extra, NAME)
    placed = [
        (f"{where}.content[{number}].logprobs", logprob)
        for number, part in enumerate(candidate.content)
        if isinstance(part, Text | Refusal)
        for logprob in part.logprobs
    ]
    head = head_of(candidate.content[0]) if candidate.content else None
    if placed or head is not None:
        return {"logprobs": encode_logprobs(placed, start, losses, form, head) | left_logprobs(own, form)}
    if "silent" in form:
        return {"logprobs": form["silent"]}
    return {} if "unweighed" in form or "logprobs" in own else {"logprobs": None}
