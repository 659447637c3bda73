"""Encodes and decodes whole answers: interactions.

Source: `Interaction` in `google/genai/_gaos/types/interactions/interaction.py` of the official SDK.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.google.request_fields import TIER_WORDS, TIERS
from xenoglot.dialects.interactions.errors import read_error
from xenoglot.dialects.interactions.extras import NAME, own_fields
from xenoglot.dialects.interactions.finish import BROKEN, WHERE, decode_finish, encode_finish
from xenoglot.dialects.interactions.step_decoder import decode_steps
from xenoglot.dialects.interactions.step_encoder import StepEncoder
from xenoglot.dialects.interactions.usage import decode_usage, encode_usage
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Extra
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.events import Started
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Usage

OBJECT: Final = "interaction"

ECHOED: Final = frozenset(
    {
        "background",
        "cached_content",
        "environment",
        "environment_id",
        "generation_config",
        "input",
        "labels",
        "object",
        "output_audio",
        "output_image",
        "output_text",
        "output_video",
        "previous_interaction_id",
        "response_format",
        "response_mime_type",
        "response_modalities",
        "role",
        "safety_settings",
        "store",
        "system_instruction",
        "tools",
        "updated",
        "webhook_config",
    }
)
"""Fields of an answer that repeat the request or the rest of the answer, or have the time of its last change."""

_LATEST: Final = 253402300799
"""The last second of the year 9999, which RFC 3339 can write."""


def decode_response(body: JSON) -> Response:
    """Return the answer in `body`.

    Raises:
        WireError: it is none; under `$.error` if it is an error that came with the status of an answer.
        FailureError: it is an interaction that failed.
    """
    reader = Reader(body)
    if "error" in reader and "steps" not in reader and "status" not in reader:
        raise WireError("$.error", "the answer is an error")
    status = reader.peek("status")
    if status in BROKEN:
        raise FailureError(read_error(body))
    head, form = take_head(reader)
    steps = reader.take_any("steps")
    if steps is None:
        form["steps"] = "absent"
    parts = decode_steps([] if steps is None else steps, "$.steps", head["id"] or "")
    usage = take_usage(reader)
    finish = decode_finish(status)
    if finish is None and status is None:
        if steps is None:
            raise WireError("$.steps", "required, expected list")
        finish = Finish(reason="stop", dialect=NAME)  # a whole answer is over, whoever does not say so
        form["status"] = "absent"
    elif finish is None:
        form["status"] = status
    reader.take_any("status")
    return Response(
        **head, usage=usage, extra=take_extra(reader, form), candidates=(Candidate(content=parts, finish=finish),)
    )


def take_head(reader: Reader) -> tuple[JSONObject, JSONObject]:
    """Take the fields of an answer's head; return them, and their spelling."""
    form: JSONObject = {}
    moment = reader.take_if("created", str)
    created = None if moment is None else _seconds(moment)
    if moment is not None and (created is None or time_of(created) != moment):
        form["created"] = moment
    tier = reader.take_word("service_tier", TIERS)
    head: JSONObject = {
        "id": reader.take_if("id", str),
        "model": reader.take_if("model", str),
        "created": created,
        "service_tier": None if tier is None else TIERS[tier],
    }
    return head, form


def take_usage(reader: Reader) -> Usage | None:
    """Take the token counts, where there are any."""
    usage = decode_usage(reader.peek("usage"))
    if usage is not None:
        reader.take("usage", dict)
    return usage


def take_extra(reader: Reader, form: JSONObject) -> Extra:
    """Take the fields that repeat the request, which are form, and all others."""
    rest = reader.rest()
    echo = {key: rest.pop(key) for key in ECHOED & rest.keys()}
    return Extra(dialect=NAME, fields=rest, form={"echo": echo, **form})


def _seconds(moment: str) -> int | None:
    """Return a time of RFC 3339 in Unix seconds; `None` for others: one without an offset is none of a known zone."""
    try:
        found = datetime.fromisoformat(moment) if "T" in moment else None
        return None if found is None or found.tzinfo is None else int(found.timestamp())
    except (ValueError, OverflowError):
        return None


def time_of(created: int) -> str | None:
    """Return Unix seconds as a time of RFC 3339."""
    return datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if 0 <= created <= _LATEST else None


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:
    """Return the interaction for the client that sent `request`."""
    for index in range(1, len(response.candidates)):
        losses.dropped(f"$.candidates[{index}]", "candidate", "an answer of the dialect is one")
    candidate = response.candidates[0] if response.candidates else Candidate()
    head, own = encode_head(response, request, losses)
    own |= own_fields(candidate.extra, WHERE, losses)
    form = form_of(response.extra, NAME)
    steps = StepEncoder(losses, home=_is_own(response.extra)).steps(candidate.content, f"{WHERE}.content")
    news = form_of(candidate.extra, NAME)
    body: JSONObject = {**head, **news.get("head", {}), **news.get("echo", {})}
    status = encode_finish(candidate.finish, candidate.content, losses)
    if form.get("status") != "absent":
        body["status"] = form.get("status", status) if candidate.finish is None else status
    if steps or form.get("steps") != "absent":
        body["steps"] = steps
    if response.usage is not None:
        body["usage"] = encode_usage(response.usage, losses)
    return body | own


def _is_own(extra: Extra | None) -> bool:
    return extra is not None and extra.dialect == NAME


def encode_head(head: Response | Started, request: Request, losses: Losses) -> tuple[JSONObject, JSONObject]:
    """Return the fields of an answer's head, and those that only this dialect knows."""
    form, own = form_of(head.extra, NAME), own_fields(head.extra, "$", losses)
    body: JSONObject = {}
    if head.id is not None:
        body["id"] = head.id
    if "echo" not in form:
        body["object"] = OBJECT
    if head.model is not None or "echo" not in form:
        body["model"] = head.model or request.model
    created = form.get("created") or (None if head.created is None else time_of(head.created))
    if created is not None:
        body["created"] = created
        if "echo" not in form:
            body["updated"] = created
    if head.service_tier is not None:
        if head.service_tier in TIER_WORDS:
            body["service_tier"] = TIER_WORDS[head.service_tier]
        else:
            losses.dropped("$", "service_tier", "the dialect has no such tier")
    return body | form.get("echo", {}), own
