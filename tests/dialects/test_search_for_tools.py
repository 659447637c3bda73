"""The search for tools that a provider runs, and the tools that it finds: issue 18, concept 4."""

from __future__ import annotations

from pathlib import Path

import pytest

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.names import qualified
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get
from xenoglot.model.content import FoundTool, HostedCall, HostedResult
from xenoglot.model.fold import fold, unfold
from xenoglot.model.json import JSONObject
from xenoglot.model.response import Response
from xenoglot.translate import translate_request

SCHEMA: JSONObject = {"type": "object", "properties": {"city": {"type": "string"}}}
BM25: JSONObject = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
REGEX: JSONObject = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
SEARCH: JSONObject = {"type": "tool_search"}
LATE: JSONObject = {"defer_loading": True}

ASKED: dict[str, JSONObject] = {
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [BM25, {"name": "f", "input_schema": SCHEMA, **LATE}],
    },
    "responses": {
        "model": "m",
        "input": "Hi",
        "tools": [SEARCH, {"type": "function", "name": "f", "parameters": SCHEMA, "strict": False, **LATE}],
    },
    "interactions": {
        "model": "m",
        "input": "Hi",
        "tools": [SEARCH, {"type": "function", "name": "f", "parameters": SCHEMA, **LATE}],
    },
}


def about_search(losses: Losses) -> list[str]:
    return [str(loss) for loss in losses if loss.what in ("tool_search", "defer_loading")]


@pytest.mark.parametrize("upstream", ASKED)
@pytest.mark.parametrize("client", ASKED)
def test_the_search_crosses_with_the_tools_that_it_finds(client: str, upstream: str) -> None:
    losses = Losses()
    search, tool = translate_request(ASKED[client], client, upstream, losses)["tools"]
    expected_search, expected = ASKED[upstream]["tools"]
    assert search == expected_search
    assert tool == expected | ({"strict": False} if "strict" in tool else {})
    assert about_search(losses) == []


@pytest.mark.parametrize("upstream", ["chat", "gemini", "converse", "ollama"])
@pytest.mark.parametrize("client", ASKED)
def test_without_a_search_all_tools_are_described_at_once(client: str, upstream: str) -> None:
    losses = Losses()
    body = translate_request(ASKED[client], client, upstream, losses)
    assert len((body.get("tools") or body["toolConfig"]["tools"])[:2]) == 1
    assert about_search(losses) == [
        "$.tools[0] tool_search emulated (all tools are described at once)",
        "$.tools[1] defer_loading emulated (the server has no search for tools: this one is described at once)",
    ]


@pytest.mark.parametrize("tool", [BM25, REGEX, {"type": "tool_search_tool_regex", "name": "tool_search_tool_regex"}])
def test_each_search_of_messages_comes_home_as_it_was(tool: JSONObject) -> None:
    asked = {**ASKED["messages"], "tools": [tool, *ASKED["messages"]["tools"][1:]]}
    assert translate_request(asked, "messages", "messages")["tools"] == asked["tools"]
    assert translate_request(asked, "messages", "responses")["tools"][0] == SEARCH


def test_a_tool_is_not_found_late_without_a_search() -> None:
    """A server refuses tools that nothing can find."""
    asked = {**ASKED["messages"], "tools": ASKED["messages"]["tools"][1:]}
    (tool,) = translate_request(asked, "messages", "responses", losses := Losses())["tools"]
    assert "defer_loading" not in tool
    assert ("defer_loading", "emulated") in [(loss.what, loss.how) for loss in losses]


def test_the_search_that_the_client_runs_is_still_a_function() -> None:
    asked = {**ASKED["responses"], "tools": [{**SEARCH, "execution": "client", "parameters": SCHEMA}]}
    (tool,) = translate_request(asked, "responses", "chat", Losses())["tools"]
    assert tool["function"]["name"] == "tool_search"


def vector(name: str) -> Response:
    folder = Path(__file__).parents[1] / "vectors" / name
    return get(name.partition("/")[0]).decode_response(decode_json((folder / "response.json").read_bytes()))


def told(response: Response) -> list[tuple[str, list[str]]]:
    """Return the kinds of the parts that a search makes, and the names that it found."""
    return [
        (
            type(part).__name__,
            [qualified(one.name, one.namespace) for one in getattr(part, "content", ()) if isinstance(one, FoundTool)],
        )
        for part in response.candidates[0].content
        if isinstance(part, HostedCall | HostedResult) and part.kind == "tool_search"
    ]


ANSWERED = ("messages/tool-search-answer", "responses/tool-search-answer", "interactions/tool-search")


@pytest.mark.parametrize("client", ASKED)
@pytest.mark.parametrize("name", ANSWERED)
def test_what_a_search_found_crosses_whole_and_streamed(name: str, client: str) -> None:
    """A search, and the tools that it found, are parts of their own in all three dialects."""
    response, request, dialect = vector(name), get(client).decode_request(ASKED[client]), get(client)
    whole = dialect.decode_response(dialect.encode_response(response, request, losses := Losses()))
    assert told(whole) == told(response)
    frames = through(unfold(response), dialect.stream_encoder(request, Losses()))
    streamed = fold(through(frames, dialect.stream_decoder()))
    assert isinstance(streamed, Response)
    assert told(streamed) == told(response)
    assert [str(loss) for loss in losses if loss.what in ("hosted_call", "hosted_result")] == []


@pytest.mark.parametrize("name", ANSWERED[:2])
def test_a_result_belongs_to_the_search_before_it(name: str) -> None:
    """The items of `responses` have no id in common: `call_id` is null for a search that the server runs."""
    parts = vector(name).candidates[0].content
    calls = [part.id for part in parts if isinstance(part, HostedCall)]
    assert [part.call_id for part in parts if isinstance(part, HostedResult)] == calls
    assert all(calls)


@pytest.mark.parametrize("upstream", ["messages", "responses", "chat", "gemini"])
@pytest.mark.parametrize("client", ["messages", "responses"])
def test_a_history_tells_another_server_what_was_found(client: str, upstream: str) -> None:
    folder = Path(__file__).parents[1] / "vectors" / client / "tool-search-history"
    body = decode_json((folder / "request.json").read_bytes())
    sent = encode_json(translate_request(body, client, upstream, Losses())).decode()
    assert ("The tool `weather` can be called." in sent) == (client != upstream)
