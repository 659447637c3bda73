"""Code that the server ran is a call and its result; a search is told in the metadata (wire-D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.genai.types import GenerateContentResponse

from xenoglot import translate_request, translate_response
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import CodeOutput, HostedCall, HostedResult, Part, SearchResult, Text
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

GEMINI = get("gemini")
ASKED = Request(model="m")
CODE: list[JSONObject] = [
    {"executableCode": {"language": "PYTHON", "code": "print(2)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n"}},
    {"executableCode": {"language": "NEW", "code": "1", "id": "c", "x": 1}, "thoughtSignature": "c2ln"},
    {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no", "id": "c"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_DEADLINE_EXCEEDED"}},
]


def answer(*parts: JSONObject) -> JSONObject:
    content = {"parts": [*parts], "role": "model"}
    candidate: JSONObject = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}


def streamed(response: Response) -> Response:
    frames = through(unfold(response), Pipeline(GEMINI.stream_encoder(ASKED, Losses()), GEMINI.framing.encoder()))
    folded = fold(through([b"".join(frames)], Pipeline(GEMINI.framing.decoder(), GEMINI.stream_decoder())))
    assert isinstance(folded, Response)
    return folded


def test_code_is_read_and_goes_home_as_it_came() -> None:
    response, losses = GEMINI.decode_response(answer(*CODE)), Losses()
    first, out, second, failed, late = response.candidates[0].content
    assert isinstance(first, HostedCall)
    assert isinstance(out, HostedResult)
    assert (first.kind, first.arguments) == ("code_execution", '{"code":"print(2)"}')
    assert (out.call_id, out.content, out.error) == (first.id, (CodeOutput(stdout="2\n", exit_code=0),), None)
    assert isinstance(second, HostedCall)
    assert isinstance(failed, HostedResult)
    assert (second.id, failed.call_id, failed.error) == ("c", "c", "failed")
    assert isinstance(late, HostedResult)
    assert late.error == "execution_time_exceeded"
    assert GEMINI.encode_response(response, ASKED, losses)["candidates"][0]["content"]["parts"] == CODE
    assert streamed(response).candidates[0].content == response.candidates[0].content
    body = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": CODE}]}
    assert GEMINI.encode_request(GEMINI.decode_request(body), losses, Target())["contents"] == body["contents"]
    assert [*losses] == []


def test_code_crosses() -> None:
    said: JSONObject = {"text": "It is 2."}
    losses = Losses()
    written = translate_response(answer(*CODE[:2], said), "gemini", "messages", losses)
    call, result, text = written["content"]
    assert (call["type"], call["name"], call["input"]) == ("server_tool_use", "code_execution", {"code": "print(2)"})
    assert (result["tool_use_id"], result["content"]["stdout"]) == (call["id"], "2\n")
    assert text == {"type": "text", "text": "It is 2."}
    (item, _) = translate_response(answer(*CODE[:2], said), "gemini", "responses", losses)["output"]
    assert (item["type"], item["code"], item["outputs"]) == (
        "code_interpreter_call",
        "print(2)",
        [{"type": "logs", "logs": "2\n"}],
    )


def test_a_search_of_another_dialect_is_told_in_the_metadata() -> None:
    parts: tuple[Part, ...] = (
        HostedCall(id="1", kind="web_search", arguments='{"query":"q"}'),
        HostedResult(call_id="1", kind="web_search", content=(SearchResult(url="u", title="T"),)),
        HostedCall(id="2", kind="web_fetch", arguments='{"url":"v"}'),
        HostedResult(call_id="2", kind="web_fetch", content=(SearchResult(url="v"),)),
        HostedCall(id="3", kind="code_execution", arguments='{"code":"1"}'),
        HostedResult(call_id="3", kind="code_execution", content=(CodeOutput(stdout="1"),)),
        Text(text="It is new."),
    )
    response = Response(id="r", model="m", candidates=(Candidate(content=parts, finish=Finish(reason="stop")),))
    losses = Losses()
    (candidate,) = GEMINI.encode_response(response, ASKED, losses)["candidates"]
    assert candidate["groundingMetadata"] == {
        "webSearchQueries": ["q"],
        "groundingChunks": [{"web": {"uri": "u", "title": "T"}}],
    }
    assert candidate["urlContextMetadata"]["urlMetadata"][0]["retrievedUrl"] == "v"
    assert [[*part] for part in candidate["content"]["parts"]] == [
        ["executableCode"],
        ["codeExecutionResult"],
        ["text"],
    ]
    assert [loss for loss in losses if loss.how == "dropped"] == []
    GenerateContentResponse.model_validate(GEMINI.encode_response(response, ASKED, Losses()))
    grown = GEMINI.encode_response(streamed(response), ASKED, Losses())["candidates"][0]
    assert {key: grown[key] for key in ("groundingMetadata", "urlContextMetadata")} == {
        key: candidate[key] for key in ("groundingMetadata", "urlContextMetadata")
    }


TOOLS: list[JSON] = [
    [{"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}}],
    [{"googleSearch": {"excludeDomains": ["a.example"], "timeRangeFilter": {"startTime": "t"}}, "urlContext": {}}],
    [{"functionDeclarations": [{"name": "f"}], "googleSearch": {}, "codeExecution": {}}],
    [{"googleSearch": {}, "googleMaps": {}}],
]


@pytest.mark.parametrize("tools", TOOLS)
def test_at_home_tools_are_as_they_came(tools: JSON) -> None:
    body = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": tools}
    losses = Losses()
    assert GEMINI.encode_request(GEMINI.decode_request(body), losses, Target()) == body
    assert [*losses] == []


def test_tools_cross() -> None:
    body: JSONObject = {
        "model": "m",
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [{"googleSearch": {"excludeDomains": ["a.example"]}, "urlContext": {}, "codeExecution": {}}],
    }
    tools = translate_request(body, "gemini", "messages")["tools"]
    assert [tool["type"] for tool in tools] == ["web_search_20250305", "web_fetch_20250910", "code_execution_20250825"]
    assert tools[0]["blocked_domains"] == ["a.example"]
    back = translate_request(
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "tools": tools},
        "messages",
        "gemini",
    )
    assert back["tools"] == [
        {"googleSearch": {"excludeDomains": ["a.example"]}},
        {"urlContext": {}},
        {"codeExecution": {}},
    ]


FILES: JSONObject = {"fileSearchStoreNames": ["fileSearchStores/s"], "topK": 3, "metadataFilter": "a = 1"}
URL = "https://mcp.example"
SERVER: JSONObject = {"name": "s", "streamableHttpTransport": {"url": URL, "headers": {"Authorization": "Bearer t"}}}


def test_servers_and_stores_cross_to_interactions_and_back() -> None:
    contents: JSON = [{"role": "user", "parts": [{"text": "Hi"}]}]
    tools: JSON = [{"mcpServers": [SERVER, SERVER]}, {"fileSearch": FILES}, {"googleMaps": {}}]
    losses = Losses()
    body = {"model": "m", "contents": contents, "tools": tools}
    crossed = translate_request(body, "gemini", "interactions", losses)
    server = {"type": "mcp_server", "name": "s", "url": URL, "headers": {"Authorization": "Bearer t"}}
    stores = {"file_search_store_names": ["fileSearchStores/s"], "top_k": 3, "metadata_filter": "a = 1"}
    assert crossed["tools"] == [server, server, {"type": "file_search", **stores}, {"type": "google_maps"}]
    back = translate_request(crossed, "interactions", "gemini", losses)
    assert back["tools"] == [{"mcpServers": [SERVER]}, {"mcpServers": [SERVER]}, *tools[1:]]
    assert [*losses] == []


def test_servers_of_messages_and_responses_are_those_of_gemini() -> None:
    tool: JSONObject = {"type": "mcp", "server_label": "s", "server_url": URL, "authorization": "t"}
    bare: JSONObject = {"type": "mcp", "server_label": "s", "connector_id": "c"}
    searched: JSONObject = {"type": "file_search", "vector_store_ids": ["vs_1"]}
    losses = Losses()
    body: JSONObject = {"model": "m", "input": "Hi", "tools": [{**tool, "allowed_tools": ["f"]}, bare, searched]}
    assert translate_request(body, "responses", "gemini", losses)["tools"] == [{"mcpServers": [SERVER]}]
    assert [(loss.where, loss.what) for loss in losses if loss.where.startswith("$.tools")] == [
        ("$.tools[0]", "allowed_tools"),
        ("$.tools[1]", "mcp"),
        ("$.tools[2]", "file_search"),
    ]
    back = {"model": "m", "contents": [{"parts": [{"text": "Hi"}]}], "tools": [{"mcpServers": [SERVER]}]}
    headers = {"Authorization": "Bearer t"}
    assert translate_request(back, "gemini", "responses")["tools"] == [
        {"type": "mcp", "server_label": "s", "server_url": URL, "headers": headers}
    ]


@pytest.mark.parametrize("dialect", ["chat", "converse", "messages", "responses"])
def test_maps_beside_a_function_are_left_out(dialect: str) -> None:
    body: JSONObject = {
        "model": "m",
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleMaps": {}}],
    }
    losses = Losses()
    translate_request(body, "gemini", dialect, losses)
    assert [(loss.where, loss.how) for loss in losses if loss.what == "google_maps"] == [("$.tools[1]", "dropped")]
