"""Encodes and decodes non-streaming responses.

Source: `ConverseResponse` in the published model of the API. An answer has no id and no model's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.converse.errors import read_error
from xenoglot.dialects.converse.extras import NAME, with_rest
from xenoglot.dialects.converse.finish import FIELDS, decode_finish, encode_fields, encode_finish
from xenoglot.dialects.converse.parts.decoder import decode_blocks
from xenoglot.dialects.converse.parts.encoder import PartEncoder
from xenoglot.dialects.converse.usage import decode_metadata, encode_metadata
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Extra
from xenoglot.model.response import Candidate, Response

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

_CANDIDATE: Final = "$.candidates[0]"


def decode_response(value: JSON) -> Response:
    """Return the answer in `value`.

    Raises:
        WireError: it is not an answer of this dialect.
        FailureError: it is an error (some servers send one with status 200).
    """
    reader = Reader(value)
    output = reader.object("output")
    if output is None:
        if isinstance(value, dict) and "__type" in value:
            raise FailureError(read_error(value))
        raise WireError("$.output", "required, expected object")
    form: JSONObject = {key: "absent" for key in ("usage", "metrics", "stopReason") if key not in value}
    message = Reader(output.need("message", dict), "$.output.message")
    message.take_word("role", ("assistant",))
    content = decode_blocks(message.take("content", list) or [], "$.output.message.content")
    keep_rest(output, "message", message, form)
    keep_rest(reader, "output", output, form)
    raw = reader.take("stopReason", str)
    usage = decode_metadata(reader)
    late = {FIELDS: reader.rest().pop(FIELDS)} if FIELDS in reader.rest() else {}
    finish = None if raw is None else decode_finish(raw, content, late)
    candidate = Candidate(content=content, finish=finish, extra=late_fields(late))
    return Response(candidates=(candidate,), usage=usage, extra=reader.extra(NAME, **form))


def late_fields(fields: JSONObject) -> Extra | None:
    """Return the fields that belong to the end of an answer."""
    return Extra(dialect=NAME, fields=fields) if fields else None


def note_head(answer_id: str | None, model: str | None, tier: str | None, losses: Losses) -> None:
    """Record what an answer of the dialect has no field for."""
    for name, value in (("id", answer_id), ("model", model), ("service_tier", tier)):
        if value is not None:
            losses.dropped("$", name, "an answer of the dialect has no such field")


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:  # noqa: ARG001  the record's form
    """Return `response` as an answer; of several candidates the first."""
    note_head(response.id, response.model, response.service_tier, losses)
    for index in range(1, len(response.candidates)):
        losses.dropped(f"$.candidates[{index}]", "candidate", "an answer of the dialect is one")
    candidate = response.candidates[0] if response.candidates else Candidate()
    content = PartEncoder(losses, home=False).blocks(candidate.content, f"{_CANDIDATE}.content", "assistant")
    form = form_of(response.extra, NAME)
    body: JSONObject = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": encode_finish(candidate.finish, candidate.content, losses),
    }
    if "usage" not in form:
        body |= encode_metadata(response.usage, losses)
    body |= encode_fields(candidate.finish, losses.carry(candidate.extra, _CANDIDATE, NAME))
    body = with_rest(body, response.extra, "$", losses)
    return {key: value for key, value in body.items() if form.get(key) != "absent"}
