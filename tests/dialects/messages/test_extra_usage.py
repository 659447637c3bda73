"""Counts that are billed apart from the tokens of an answer, found in the usage that only the dialect knows."""

import json

import pytest

from xenoglot.codec.features.extra_usage import ExtraUsage
from xenoglot.dialects.messages.fast.usage_scan import glimpse
from xenoglot.dialects.messages.usage import decode_usage, extra_usage
from xenoglot.model.json import JSONObject

MESSAGE: JSONObject = {
    "type": "message",
    "input_tokens": 10,
    "output_tokens": 2,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}
COMPACTION = MESSAGE | {"type": "compaction", "input_tokens": 1000, "cache_read_input_tokens": 500, "output_tokens": 40}
ADVISOR = MESSAGE | {"type": "advisor_message", "model": "another"}
SEARCHED: JSONObject = {"server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 1}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, ExtraUsage(), id="none"),
        pytest.param(SEARCHED, ExtraUsage(), id="searches"),
        pytest.param({"iterations": [MESSAGE]}, ExtraUsage(), id="an-iteration-that-the-counts-include"),
        pytest.param(
            {"iterations": [COMPACTION, MESSAGE]}, ExtraUsage(extra_input=1500, extra_output=40), id="compaction"
        ),
        pytest.param(
            {"iterations": [COMPACTION, ADVISOR, MESSAGE], **SEARCHED},
            ExtraUsage(extra_input=1510, extra_output=42),
            id="several",
        ),
        pytest.param({"iterations": "many", "server_tool_use": 7}, ExtraUsage(), id="garbage"),
    ],
)
def test_counts_billed_apart(fields: JSONObject, expected: ExtraUsage) -> None:
    usage, _ = decode_usage({"input_tokens": 10, "output_tokens": 2} | fields)
    found = ExtraUsage() if usage.extra is None else extra_usage(usage.extra.fields)
    assert found == expected


def test_searches_and_the_cache_of_an_hour_are_counts_of_their_own() -> None:
    cached: JSONObject = {"ephemeral_1h_input_tokens": 3, "ephemeral_5m_input_tokens": 4}
    wire = {"input_tokens": 10, "output_tokens": 2, "cache_creation_input_tokens": 7, "cache_creation": cached}
    usage, _ = decode_usage(wire | SEARCHED)
    assert (usage.web_searches, usage.page_fetches, usage.cache_write_1h, usage.extra) == (3, 1, 3, None)


@pytest.mark.usefixtures("with_shortcuts")
@pytest.mark.parametrize("more", [{"iterations": [COMPACTION, MESSAGE]}], ids=["compaction"])
def test_an_answer_with_such_counts_is_read_in_the_general_way(more: JSONObject) -> None:
    answer: JSONObject = {"type": "message", "content": [], "stop_reason": "end_turn"}
    plain = answer | {"usage": {"input_tokens": 10, "output_tokens": 2, "iterations": [MESSAGE]}}
    assert glimpse(json.dumps(plain).encode()) is not None
    assert glimpse(json.dumps(answer | {"usage": plain["usage"] | more}).encode()) is None
