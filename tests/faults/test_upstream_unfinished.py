"""Answers that are whole and do not say why they end, or say nothing at all: U15 and U25."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_completed, assert_refused
from tests.faults.client_view import error_codes
from tests.faults.fault_cases import assert_next_request_completes
from tests.faults.upstream_steps import streamed_response, whole_response
from tests.faults.wire_responses import ALL_DIALECTS, DONE, HELLO, chat_chunk, completions_chunk, json_bytes

if TYPE_CHECKING:
    from tests.faults.harness import GatewayHarness
    from xenoglot.model.json import JSON

MISSING = "missing"
REASON = {
    "chat": ("choices", 0, "finish_reason"),
    "completions": ("choices", 0, "finish_reason"),
    "gemini": ("candidates", 0, "finishReason"),
    "llama_stack": ("completion_message", "stop_reason"),
    "messages": ("stop_reason",),
}


def without_reason(upstream: str, said: JSON) -> bytes:
    """Return the whole answer of an upstream with another reason, or none."""
    body = json.loads(HELLO[upstream].whole)
    *way, key = REASON[upstream]
    inner = body
    for step in way:
        inner = inner[step]
    if said == MISSING:
        del inner[key]
    else:
        inner[key] = said
    return json_bytes(body)


@pytest.mark.parametrize("said", [None, MISSING, ""], ids=["null", "missing", "empty"])
@pytest.mark.parametrize("upstream", REASON)
@pytest.mark.parametrize("client", ALL_DIALECTS)
def test_u15_a_whole_answer_without_a_reason_is_whole(
    harness: GatewayHarness, client: str, upstream: str, said: JSON
) -> None:
    """findings-C10-finish."""

    async def scenario() -> None:
        harness.upstream.script(whole_response(without_reason(upstream, said)))
        answer = await harness.request(client, f"{upstream}-small", streamed=False)
        assert_completed(client, answer, streamed=False)
        if client != upstream:
            assert any("finish" in str(loss) for loss in harness.access_log_line()["losses"])
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize("upstream", ["chat", "completions"])
@pytest.mark.parametrize("client", ALL_DIALECTS)
def test_u15_done_ends_a_stream_without_a_reason(harness: GatewayHarness, client: str, upstream: str) -> None:
    """findings-A4."""
    chunk = chat_chunk({"content": "lo"}) if upstream == "chat" else completions_chunk("lo")

    async def scenario() -> None:
        harness.upstream.script(streamed_response(upstream, *HELLO[upstream].first_frames, chunk, DONE))
        assert_completed(client, await harness.request(client, f"{upstream}-small", streamed=True), streamed=True)
        line = harness.access_log_line()
        assert (line["finish"], line["failure"]) == ("stop", None)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["chat", "completions"])
@pytest.mark.parametrize("client", ALL_DIALECTS)
def test_u25_an_answer_without_choices_is_no_answer(
    harness: GatewayHarness,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    """findings-11-choices."""

    async def scenario() -> None:
        harness.upstream.script(whole_response(json_bytes(json.loads(HELLO[upstream].whole) | {"choices": []})))
        answer = await harness.request(client, f"{upstream}-small", streamed=streamed)
        told = assert_refused(client, answer, error_codes(client, "upstream", streamed=False), 502)
        assert "$.choices" in told.message
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())
