"""Counts of searches and of caches in the usage are the same in every dialect that has them: issue 18, concept 2."""

from __future__ import annotations

import pytest

from tests.laws.test_crossing import ASKED, CROSSED
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.model.content import Text
from xenoglot.model.response import Candidate, Finish, Response, Usage

USAGE = Usage(input_tokens=900, output_tokens=7, cache_write=800, cache_write_1h=300, web_searches=2, page_fetches=1)
COUNTS = {
    "messages": {"cache_write_1h": 300, "web_searches": 2, "page_fetches": 1},
    "responses": {"web_searches": 2},
    "chat": {"web_searches": 2},
    "interactions": {"web_searches": 2},
    "converse": {"cache_write_1h": 300},
    "gemini": {},
}


@pytest.mark.parametrize("how", CROSSED)
@pytest.mark.parametrize("name", COUNTS)
def test_counts_cross(name: str, how: str) -> None:
    candidate = Candidate(content=(Text(text="Hi"),), finish=Finish(reason="stop"))
    losses = Losses()
    answer = Response(id="i", model="m", candidates=(candidate,), usage=USAGE)
    usage = CROSSED[how](answer, ASKED, name, losses).usage
    assert usage is not None
    for field in ("cache_write_1h", "web_searches", "page_fetches"):
        wanted = COUNTS[name].get(field)
        assert getattr(usage, field) == wanted
        assert any(loss.what == field for loss in losses) == (wanted is None)


def test_a_client_of_messages_reads_the_searches_of_responses() -> None:
    losses = Losses()
    tools = {"web_search": {"num_requests": 3}, "image_gen": {"input_tokens": 0}}
    usage = {"input_tokens": 4, "output_tokens": 2, "total_tokens": 6}
    answer = {"id": "r", "object": "response", "status": "completed", "output": [], "usage": usage, "tool_usage": tools}
    response = get("responses").decode_response(answer)
    assert response.usage is not None
    assert response.usage.web_searches == 3
    body = get("messages").encode_response(response, ASKED, losses)
    assert body["usage"]["server_tool_use"] == {"web_search_requests": 3, "web_fetch_requests": 0}
    assert get("responses").encode_response(response, ASKED, Losses())["tool_usage"] == tools


def test_what_images_used_stays_with_its_dialect() -> None:
    tools = {"web_search": {"num_requests": 0}, "image_gen": {"input_tokens": 5}}
    usage = {"input_tokens": 4, "output_tokens": 2, "total_tokens": 6}
    answer = {"id": "r", "object": "response", "status": "completed", "output": [], "usage": usage, "tool_usage": tools}
    response = get("responses").decode_response(answer)
    assert get("responses").encode_response(response, ASKED, Losses())["tool_usage"] == tools
    losses = Losses()
    get("chat").encode_response(response, ASKED, losses)
    assert "tool_usage" in {loss.what for loss in losses}
