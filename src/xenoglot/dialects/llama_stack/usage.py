"""Encodes and decodes usage: metrics by name (`MetricInResponse` in `llama_stack/apis/telemetry/telemetry.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.fields import Fields, count
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.llama_stack.extras import own_fields
from xenoglot.model.content import Extra
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

WHERE = "$.usage"

USAGE: Final = Fields(
    Usage,
    WHERE,
    (
        count("input_tokens", "prompt_tokens"),
        count("output_tokens", "completion_tokens"),
        count("total", "total_tokens"),
    ),
)
"""The metrics by their names."""

_UNIT = "tokens"


def take_usage(reader: Reader, name: str) -> Usage | None:
    """Take `metrics`, sent by the record `name`, where it is a list of objects; `None` if it is empty or none."""
    metrics = reader.peek("metrics")
    if not isinstance(metrics, list) or not all(isinstance(item, dict) for item in metrics) or not metrics:
        return None
    reader.take("metrics", list)
    return _decode(metrics, name)


def _decode(metrics: list[JSON], dialect: str) -> Usage:
    counts: dict[str, int | None] = {}
    others: list[JSON] = []
    for item in metrics:
        name = item.get("metric")
        found = USAGE.read(Reader({name: item.get("value")}), {}) if isinstance(name, str) else {}
        counts |= found
        if not found:
            others.append(item)
    total = counts.get("total")
    given, made = counts.get("input_tokens"), counts.get("output_tokens")
    if given is not None and made is not None and total == given + made:
        total = None
    return Usage(
        input_tokens=given,
        output_tokens=made,
        total=total,
        extra=Extra(dialect=dialect, fields={"metrics": others} if others else {}, form={"metrics": metrics}),
    )


def encode_usage(usage: Usage | None, losses: Losses, name: str) -> JSONObject:
    """Return the field `metrics`; as it came, if it still means the same."""
    if usage is None:
        return {}
    own = own_fields(usage.extra, WHERE, losses, name).get("metrics", [])
    came = form_of(usage.extra, name).get("metrics")
    if isinstance(came, list) and _decode(came, name) == usage:
        return {"metrics": came}
    USAGE.note_unsupported(usage, losses)
    said: JSONObject = {}
    USAGE.write_plain(replace(usage, total=_total(usage)), said)
    metrics = [{"metric": name, "value": value, "unit": _UNIT} for name, value in said.items()]
    return {"metrics": [*metrics, *own]} if metrics or own else {}


def _total(usage: Usage) -> int | None:
    if usage.total is not None or usage.input_tokens is None or usage.output_tokens is None:
        return usage.total
    return usage.input_tokens + usage.output_tokens
