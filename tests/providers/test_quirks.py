"""Every quirk of a server changes what is written for it, and says what that costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.providers.catalog import target_of

VECTORS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in Path(__file__).parent.glob("quirks/*.json")
}

ELSEWHERE = {
    "provider",
    "reasoning_field",
    "default_max_tokens",
    "max_tokens_limit",
    "inline_system",
    "text_parts",
    "extended_sampling",
    "cache_marks",
    "compaction",
    "sealed_results",
    "cache_minimum",
    "hosted_tools",
    "strict_tools",
    "prefill",
    "stop_limit",
    "stops",
    "tool_name_limit",
    "fan_out",
    "operation_paths",
    "body_fields",
}
"""Facts that the tests of a dialect, or of the backend, look at."""


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_what_is_written(name: str) -> None:
    vector = VECTORS[name]
    losses, target = Losses(), target_of(vector["target"])
    request = get(vector["from"]).decode_request(vector["request"])
    dialect = get(vector["to"])
    body = dialect.encode_request(fitted(request, dialect.name, target, losses), losses, target)
    assert {"body": body, "losses": [str(loss) for loss in losses]} == {
        "body": vector["body"],
        "losses": vector["losses"],
    }


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_what_is_written_needs_no_more(name: str) -> None:
    """Fitting is done once: what fits stays as it is."""
    vector = VECTORS[name]
    target, dialect = target_of(vector["target"]), get(vector["to"])
    once = fitted(get(vector["from"]).decode_request(vector["request"]), dialect.name, target, Losses())
    again = Losses()
    assert (fitted(once, dialect.name, target, again), list(again)) == (once, [])


def test_every_fact_has_its_vector() -> None:
    shown: set[str] = {name for vector in VECTORS.values() for name in vector["target"]}
    assert sorted(shown | ELSEWHERE) == sorted(Target.__struct_fields__)
