"""The fields around the content in every chunk of an answer: model, creation time, `done`.

Timestamps of the wire: RFC 3339, with up to nine digits of a second (`time.Time` of Go).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from xenoglot.codec.reader import left
from xenoglot.dialects.ollama.extras import NAMES, OllamaEndpoint, extra_of, own_fields
from xenoglot.dialects.ollama.finish import decode_finish, decode_usage, encode_finish, encode_usage
from xenoglot.model.content import Extra
from xenoglot.model.events import Finished, Started

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Candidate, Usage


_LAST = 253_402_300_799
"""The last second of the year 9999, beyond which there is no such text."""


def decode_moment(text: str | None) -> int | None:
    """Return the Unix seconds of a time; `None` for an unknown one, which is written as the epoch."""
    try:
        read = datetime.fromisoformat(text or "")
        seconds = int((read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def encode_moment(seconds: int | None) -> str:
    """Return Unix seconds as text; the epoch stands for an unknown time: clients in Go require one."""
    known = seconds if seconds is not None and 0 < seconds <= _LAST else 0
    return datetime.fromtimestamp(known, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_REMOTE = ("remote_model", "remote_host")
"""The real host of the model: every piece of an answer has it (`ChatResponse` in `api/types.go`)."""


def take_head(reader: Reader, endpoint: OllamaEndpoint) -> Started:
    """Take the fields that every piece of an answer repeats."""
    said = reader.take_if("created_at", str)
    remote = {key: value for key in _REMOTE if (value := reader.take_any(key)) is not None}
    form = {} if said is None else {"created_at": said}
    extra = Extra(dialect=endpoint.name, fields=remote, form=form) if remote or form else None
    return Started(model=reader.take_if("model", str), created=decode_moment(said), extra=extra)


def encode_head(started: Started, request: Request, endpoint: OllamaEndpoint, losses: Losses) -> JSONObject:
    """Return the fields of every piece of an answer; the time as it came, where it came so."""
    for name in ("id", "service_tier"):
        if getattr(started, name) is not None:
            losses.dropped("$", name, "an answer has no such field")
    own = own_fields(started.extra, "$", losses, endpoint.name)
    created_at = encode_moment(started.created)
    if started.extra is not None and is_own(started.extra):
        said = started.extra.form.get("created_at")
        created_at = said if isinstance(said, str) and decode_moment(said) == started.created else created_at
    return {"model": request.model if started.model is None else started.model, "created_at": created_at, **own}


def is_own(extra: Extra | None) -> bool:
    """Whether an answer came from one of the two endpoints, whose clients get what they would have got."""
    return extra is not None and extra.dialect in NAMES


def take_end(
    reader: Reader, endpoint: OllamaEndpoint, form: JSONObject, *, calls: bool
) -> tuple[Usage | None, Finished]:
    """Take the fields of the last piece, and carry the unknown fields of it."""
    usage = decode_usage(reader)
    finish = decode_finish(reader.take_if("done_reason", str), calls=calls)
    return usage, Finished(finish=finish, extra=extra_of(reader, endpoint.name, form))


def encode_end(
    candidate: Candidate, usage: Usage | None, endpoint: OllamaEndpoint, losses: Losses, *, refused: bool
) -> JSONObject:
    """Return the fields of the last piece, without its words; `refused`: in these the model declines."""
    where = "$.candidates[0]"
    fields = own_fields(candidate.extra, where, losses, endpoint.name)
    fields["done"] = True
    if candidate.finish is not None:
        fields |= encode_finish(candidate.finish, where, losses)
    if refused:
        losses.approximated(where, "finish", "only the text shows that the model refused")
    return fields if usage is None else fields | encode_usage(usage, losses)


def around(words: JSONObject, endpoint: OllamaEndpoint, own: JSONObject, form: JSONObject) -> JSONObject:
    """Return the fields that hold `words`; the unknown fields of a `message` are taken out of `own` and put back."""
    if not endpoint.nested:
        return words
    role = {} if form.get("role") == "other" else {"role": "assistant"}
    return {"message": {**role, **left(own, form, "message"), **words}}
