"""Answers that are whole and do not say why they end, or say nothing at all: U15 and U25."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.faults.cases import after
from tests.faults.heard import words_of
from tests.faults.house import fine, refused, stream, whole
from tests.faults.wires import DIALECTS, DONE, HELLO, chat_chunk, completions_chunk, written

if TYPE_CHECKING:
    from tests.faults.house import House
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
    return written(body)


@pytest.mark.parametrize("said", [None, MISSING, ""], ids=["null", "missing", "empty"])
@pytest.mark.parametrize("upstream", REASON)
@pytest.mark.parametrize("client", DIALECTS)
def test_u15_a_whole_answer_without_a_reason_is_whole(house: House, client: str, upstream: str, said: JSON) -> None:
    """findings-C10-finish."""

    async def scene() -> None:
        house.upstream.script(whole(without_reason(upstream, said)))
        answer = await house.ask(client, f"{upstream}-small", streamed=False)
        fine(client, answer, streamed=False)
        if client != upstream:
            assert any("finish" in str(loss) for loss in house.line()["losses"])
        await after(house, client, upstream)

    house.play(scene())


@pytest.mark.parametrize("upstream", ["chat", "completions"])
@pytest.mark.parametrize("client", DIALECTS)
def test_u15_done_ends_a_stream_without_a_reason(house: House, client: str, upstream: str) -> None:
    """findings-A4."""
    chunk = chat_chunk({"content": "lo"}) if upstream == "chat" else completions_chunk("lo")

    async def scene() -> None:
        house.upstream.script(stream(upstream, *HELLO[upstream].begun, chunk, DONE))
        fine(client, await house.ask(client, f"{upstream}-small", streamed=True), streamed=True)
        line = house.line()
        assert (line["finish"], line["failure"]) == ("stop", None)
        await after(house, client, upstream)

    house.play(scene())


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["chat", "completions"])
@pytest.mark.parametrize("client", DIALECTS)
def test_u25_an_answer_without_choices_is_no_answer(
    house: House,
    client: str,
    upstream: str,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    """findings-11-choices."""

    async def scene() -> None:
        house.upstream.script(whole(written(json.loads(HELLO[upstream].whole) | {"choices": []})))
        answer = await house.ask(client, f"{upstream}-small", streamed=streamed)
        told = refused(client, answer, words_of(client, "upstream", streamed=False), 502)
        assert "$.choices" in told.message
        await after(house, client, upstream)

    house.play(scene())
