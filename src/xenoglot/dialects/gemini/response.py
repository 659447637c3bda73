"""Encodes and decodes non-streaming responses.

Source: `GenerateContentResponse` (https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.gemini.candidate import decode_candidate, encode_candidate
from xenoglot.dialects.gemini.errors import error_object, read_error
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.gemini.usage import decode_usage, encode_usage
from xenoglot.dialects.google.shared import with_said
from xenoglot.errors import FailureError, WireError
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

FEEDBACK = "promptFeedback"
USAGE = "usageMetadata"


def decode_response(value: JSON) -> Response:
    """Return the answer in `value`. A prompt that was blocked is answered by one candidate, which refuses.

    Raises:
        WireError: it is not an answer of this dialect.
        FailureError: it is an error (some servers send one with status 200).
    """
    if isinstance(value, list) and len(value) == 1:  # an array is how a stream comes to who asked for no events
        try:
            return _decoded(value[0])
        except WireError as error:
            raise WireError(f"$[0]{error.path[1:]}", error.problem) from None
    return _decoded(value)


def _decoded(value: JSON) -> Response:
    reader = Reader(value)
    if "candidates" not in value and is_error(value):
        raise FailureError(read_error(value))
    answer_id, model = take_head(reader)
    form: JSONObject = {} if "modelVersion" in value else {"model": "absent"}
    blocked = None
    if not reader.peek("candidates"):
        blocked = take_block(reader)
        if blocked is None:
            raise WireError("$.candidates", "required, expected list")
        if reader.take("candidates", list) is not None:
            form["candidates"] = "empty"
    usage = decode_usage(reader.peek(USAGE), "$.usageMetadata")
    if usage is not None:
        reader.take(USAGE, dict)
    candidates = [decode_candidate(item, place, answer_id) for place, item in enumerate(reader.objects("candidates"))]
    return Response(
        id=answer_id,
        model=model,
        candidates=(Candidate(finish=blocked),) if blocked is not None else tuple(candidates),
        usage=usage,
        extra=reader.extra(NAME, **form),
    )


def is_error(value: JSONObject) -> bool:
    """Whether a body that came as an answer is an error."""
    error = error_object(value) if isinstance(value.get("error"), dict) else {}
    return isinstance(error.get("message"), str) and (type(error.get("code")) is int or "status" in error)


def take_head(reader: Reader) -> tuple[str | None, str | None]:
    """Take the id and the model of an answer."""
    return reader.take_if("responseId", str), reader.take_if("modelVersion", str)


def take_block(reader: Reader) -> Finish | None:
    """Take why a prompt was blocked, if it was; other feedback stays where it is."""
    feedback = reader.peek(FEEDBACK)
    if not isinstance(feedback, dict) or not isinstance(feedback.get("blockReason"), str):
        return None
    inner = Reader(reader.take(FEEDBACK, dict), reader.at(FEEDBACK))
    return Finish(
        reason="refusal",
        raw=inner.take("blockReason", str),
        dialect=NAME,
        explanation=inner.take_if("blockReasonMessage", str),
        extra=inner.extra(NAME, prompt=True),
    )


def encode_block(finish: Finish | None, losses: Losses) -> JSONObject:
    """Return the field for why a prompt was blocked, if `finish` holds that."""
    if finish is None or not form_of(finish.extra, NAME).get("prompt"):
        return {}
    own = with_said({"blockReason": finish.raw}, blockReasonMessage=finish.explanation)
    return {FEEDBACK: with_rest(own, finish.extra, "$.candidates[0]", losses)}


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:
    """Return `response` as the answer to `request`."""
    form = form_of(response.extra, NAME)
    block = encode_block(response.candidates[0].finish if response.candidates else None, losses)
    body: JSONObject = {}
    if not block:
        body["candidates"] = [
            encode_candidate(candidate, place, losses) for place, candidate in enumerate(response.candidates)
        ]
    elif "candidates" in form:
        body["candidates"] = []
    body |= block
    if response.usage is not None:
        body[USAGE] = encode_usage(response.usage, losses)
    if "model" not in form or response.model is not None:
        body["modelVersion"] = request.model if response.model is None else response.model
    note_tier(response.service_tier, losses)
    with_said(body, responseId=response.id)
    return with_rest(body, response.extra, "$", losses)


def note_tier(tier: str | None, losses: Losses) -> None:
    """Note the tier that an answer came from."""
    if tier is not None:
        losses.dropped("$", "service_tier", "answers of the dialect have no field for it")
