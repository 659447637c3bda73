"""Encodes and decodes non-streaming responses of both endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, leave, need_object, take_blanks
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.codec.target import Target
from xenoglot.dialects.ollama.logprobs import encode_logprobs, take_logprobs
from xenoglot.dialects.ollama.request.message_decoder import take_parts
from xenoglot.dialects.ollama.request.message_encoder import encode_parts, is_readable
from xenoglot.dialects.ollama.response_envelope import around, encode_end, encode_head, is_own, take_end, take_head
from xenoglot.errors import WireError
from xenoglot.model.content import Refusal, Text, ToolCall
from xenoglot.model.events import Started
from xenoglot.model.response import Candidate, Response

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.dialects.ollama.extras import OllamaEndpoint
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

_ALWAYS = ("model", "created_at", "done")


def decode_response(body: JSON, endpoint: OllamaEndpoint) -> Response:
    """Return the answer in `body`.

    Raises:
        WireError: it is none; under `$.error` if it is an error that came with the status of an answer.
    """
    reader = Reader(body)
    if "error" in reader:
        raise WireError("$.error", "the answer is an error")
    if endpoint.words not in body and not endpoint.nested:
        raise WireError(reader.at(endpoint.words), "required, expected str")
    form: JSONObject = {"absent": [key for key in _ALWAYS if key not in reader.rest()]}
    form["blanks"] = take_blanks(reader, "done_reason", "logprobs")
    scope = reader.peek("created_at")
    head = take_head(reader, endpoint)
    parts, said = _take_words(reader, endpoint, str(scope))
    form |= said | {"blanks": form["blanks"] | said["blanks"]}
    parts = _with_logprobs(parts, reader)
    done = reader.take("done", bool) is not False
    form["undone"] = not done
    usage, end = take_end(reader, endpoint, form, calls=any(isinstance(part, ToolCall) for part in parts))
    candidate = Candidate(content=tuple(parts), finish=end.finish if done else None, extra=end.extra)
    return Response(model=head.model, created=head.created, extra=head.extra, usage=usage, candidates=(candidate,))


def encode_response(response: Response, request: Request, losses: Losses, endpoint: OllamaEndpoint) -> JSONObject:
    """Return the answer for the client that sent `request`."""
    for index in range(1, len(response.candidates)):
        losses.dropped(f"$.candidates[{index}]", "candidate", "the wire holds one answer")
    candidate = response.candidates[0] if response.candidates else Candidate()
    form = form_of(candidate.extra, endpoint.name)
    head = Started(
        id=response.id,
        model=response.model,
        created=response.created,
        service_tier=response.service_tier,
        extra=response.extra,
    )
    refused = any(isinstance(part, Refusal) for part in candidate.content)
    end = encode_end(candidate, response.usage, endpoint, losses, refused=refused)
    if "undone" in form:
        end["done"] = False
    where = "$.candidates[0]"
    parts = [(f"{where}.content[{index}]", part) for index, part in enumerate(candidate.content)]
    if not is_own(response.extra):
        parts = [(at, part) for at, part in parts if is_readable(part, at, losses)]
    words = encode_parts(parts, "", where, EncodeContext(losses, Target(), home=True))
    spelled = _spelled(words, end, form, endpoint)
    logprobs = [one for part in candidate.content if isinstance(part, Text | Refusal) for one in part.logprobs]
    if logprobs:
        end["logprobs"] = encode_logprobs(logprobs, where, losses)
    body = {**encode_head(head, request, endpoint, losses), **around(spelled, endpoint, end, form), **end}
    blanks = {key: value for key, value in form.get("blanks", {}).items() if not endpoint.nested or key in _OUTSIDE}
    return {**blanks, **{key: value for key, value in body.items() if key not in form.get("absent", ())}}


_OUTSIDE = ("done_reason", "logprobs")
"""The fields that may be empty next to a `message`, not in it."""


def _take_words(reader: Reader, endpoint: OllamaEndpoint, scope: str) -> tuple[list[Part], JSONObject]:
    if not endpoint.nested:
        return take_parts(reader, endpoint.words, scope)
    message = need_object(reader, "message")
    role = message.take_word("role", ("assistant",))
    parts, form = take_parts(message, endpoint.words, scope)
    nulls = leave(reader, "message", message)
    return parts, form | {"role": None if role else "other", "message": None if nulls is True else nulls}


def _with_logprobs(parts: list[Part], reader: Reader) -> list[Part]:
    """Hang the probabilities on the words, if there are any: they are of all that was generated, in one list."""
    place = next((place for place, part in enumerate(parts) if isinstance(part, Text)), None)
    if place is None:
        return parts
    logprobs = take_logprobs(reader)
    return [replace(part, logprobs=logprobs) if index == place else part for index, part in enumerate(parts)]


def _spelled(words: JSONObject, end: JSONObject, form: JSONObject, endpoint: OllamaEndpoint) -> JSONObject:
    """Return the words under the name that the endpoint has for them, spelled as they came."""
    text = words.pop("content")
    inner = end.get("message", {}) if endpoint.nested else end
    nothing = form.get("words") == "absent" or endpoint.words in {**form.get("message", {}), **inner}
    said = {} if nothing and not text else {endpoint.words: text}
    blanks = form.get("blanks", {}) if endpoint.nested else {}
    return {**{key: value for key, value in blanks.items() if key not in _OUTSIDE}, **said, **words}
