"""Hosted tools that the gateway runs, as the official SDKs see them: a chat model, a search service, a gateway."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.tool_execution.test_web_search import TWO, json_answer
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from tests.tools.mcp.test_tools import Http
from xenoglot.gateway.config.ledger import BudgetSettings
from xenoglot.policy.limits.money_budget import BudgetUse
from xenoglot.store.ledger import budgets, queries
from xenoglot.store.ledger.queries import RequestFilter
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Hang, RequestMatcher, Respond, ScriptRule, Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.ledger.rows import RequestRow
    from xenoglot.testing import Step
    from xenoglot.testing.raw_http import Received

URLS = ["https://a.example/1", "https://b.example/2"]
QUESTION = "Which river?"
SAID = "It is the first one [1]."
KEY = "key-of-the-search"


def model_steps(request: Received) -> Sequence[Step]:
    """Answer as a chat model would: call the first function, then use what came back."""
    body = request.json
    if body["messages"][-1]["role"] == "tool" or not body.get("tools") or body.get("tool_choice") == "none":
        answer = answers("chat", text=SAID)
    else:
        function = body["tools"][0]["function"]
        (name,) = list(function["parameters"]["properties"])[:1]
        answer = answers("chat", text=(), tool=(function["name"], json.dumps({name: "rivers"})))
    return answer.streamed() if body.get("stream") else answer.complete()


@pytest.fixture(scope="module")
def search() -> Iterator[Upstream]:
    """Give a search service in the form of SearXNG."""
    with Upstream(ScriptRule(steps=(json_answer(TWO),), when=RequestMatcher(path="/search*"))) as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[Upstream]:
    """Give the server of a model that has functions alone."""
    with Upstream(ScriptRule(steps=model_steps)) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(model: Upstream, search: Upstream) -> Iterator[DialectGateway]:
    """Give a gateway that searches for the model."""
    tools = {"web_search": {"executor": "searxng", "url": f"{search.url}/search", "key_env": "SEARCH_KEY"}}
    with DialectGateway(model, environ={"SEARCH_KEY": KEY}, tools=tools) as running:
        yield running


def last_of(model: Upstream) -> JSONObject:
    """Return the body of the last request to the model."""
    body: JSONObject = model.requests[-1].json
    return body


# -- Messages

MESSAGES_SEARCH: Any = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
ASKED: Any = [{"role": "user", "content": QUESTION}]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_messages_search(gateway: DialectGateway, model: Upstream, stream: bool) -> None:  # noqa: FBT001  a case
    with anthropic.Anthropic(base_url=gateway.url, api_key="none", timeout=TIMEOUT) as client:
        asked: Any = {"model": "m", "max_tokens": 100, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
        call, result, text = message.content
        assert call.type == "server_tool_use"
        assert (call.name, call.input) == ("web_search", {"query": "rivers"})
        assert result.type == "web_search_tool_result"
        assert isinstance(result.content, list)
        assert [one.url for one in result.content] == URLS
        assert text.type == "text"
        assert text.text == SAID
        assert [getattr(citation, "url", None) for citation in text.citations or ()] == URLS[:1]
        assert (message.stop_reason, message.usage.input_tokens) == ("end_turn", 14)
        turns = [*ASKED, {"role": "assistant", "content": message.content}, {"role": "user", "content": "Sure?"}]
        client.messages.create(**{**asked, "messages": turns})
    sent = model.requests[-2].json["messages"]
    assert [turn["role"] for turn in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["content"].startswith("[1] One\nhttps://a.example/1\n")
    assert "First text" in sent[2]["content"]


# -- Responses


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_responses_search(gateway: DialectGateway, model: Upstream, stream: bool) -> None:  # noqa: FBT001  a case
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", timeout=TIMEOUT) as client:
        asked: Any = {"model": "m", "input": QUESTION, "tools": [{"type": "web_search"}]}
        kinds: list[str] = []
        if stream:
            with client.responses.stream(**asked) as events:
                kinds = [event.type for event in events]
                response = events.get_final_response()
        else:
            response = client.responses.create(**asked)
        call, message = response.output
        assert call.type == "web_search_call"
        assert (call.status, call.action.type) == ("completed", "search")
        assert message.type == "message"
        assert response.output_text == SAID
        annotations = message.content[0].annotations  # type: ignore[union-attr]
        assert [getattr(one, "url", None) for one in annotations] == URLS[:1]
        assert response.usage is not None
        assert response.usage.input_tokens == 14
        again = client.responses.create(**{**asked, "input": "Sure?", "previous_response_id": response.id})
        assert again.status == "completed"
    if stream:
        wanted = ["in_progress", "searching", "completed"]
        searched = [kind.rpartition(".")[2] for kind in kinds if ".web_search_call." in kind]
        assert searched == wanted
    assert last_of(model)["messages"][0]["content"] == QUESTION


@pytest.mark.parametrize("choice", [{"type": "web_search"}, "required"], ids=["this-tool", "any-tool"])
def test_responses_forced_search(gateway: DialectGateway, model: Upstream, choice: JSON) -> None:
    model.forget()
    own = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
    asked = {"model": "m", "input": QUESTION, "tools": [{"type": "web_search"}, own], "tool_choice": choice}
    answer = httpx2.post(f"{gateway.url}/v1/responses", json=asked, timeout=TIMEOUT)
    assert [item["type"] for item in answer.json()["output"]] == ["web_search_call", "message"]
    forced = {"type": "function", "function": {"name": "web_search"}}
    sent = [request.json.get("tool_choice") for request in model.requests]
    assert sent == ["required" if choice == "required" else forced, None]


# -- Gemini


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_gemini_search(gateway: DialectGateway, stream: bool) -> None:  # noqa: FBT001  a case
    options = types.HttpOptions(base_url=gateway.url, timeout=int(TIMEOUT * 1000))
    config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    with genai.Client(api_key="none", http_options=options) as client:
        if stream:
            chunks = list(client.models.generate_content_stream(model="m", contents=QUESTION, config=config))
        else:
            chunks = [client.models.generate_content(model="m", contents=QUESTION, config=config)]
    assert "".join(chunk.text or "" for chunk in chunks) == SAID
    found = [chunk.candidates[0].grounding_metadata for chunk in chunks if chunk.candidates]
    metadata = [one for one in found if one is not None][-1]
    assert [chunk.web.uri for chunk in metadata.grounding_chunks or () if chunk.web][:1] == URLS[:1]


# -- Chat


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_chat_search(gateway: DialectGateway, stream: bool) -> None:  # noqa: FBT001  a case
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", timeout=TIMEOUT) as client:
        asked: Any = {"model": "m", "messages": ASKED, "web_search_options": {}}
        if stream:
            chunks = list(client.chat.completions.create(**asked, stream=True))
            deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
            text = "".join(delta.content or "" for delta in deltas)
            annotations = [one for delta in deltas for one in getattr(delta, "annotations", None) or ()]
        else:
            message = client.chat.completions.create(**asked).choices[0].message
            text, annotations = message.content, [one.to_dict() for one in message.annotations or ()]
    assert text == SAID
    assert [one["url_citation"]["url"] for one in annotations] == URLS[:1]


# -- MCP


@pytest.fixture(scope="module")
def mcp_gateway(model: Upstream, mcp_server: Http) -> Iterator[DialectGateway]:
    """Give a gateway that connects to one MCP server."""
    tools = {"mcp": {"servers": {"docs": {"url": mcp_server.url}}}}
    with DialectGateway(model, tools=tools) as running:
        yield running


@pytest.fixture(scope="module")
def mcp_server() -> Iterator[Http]:
    """Give an MCP server."""
    running = Http()
    yield running
    running.stop()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_responses_mcp(mcp_gateway: DialectGateway, mcp_server: Http, stream: bool) -> None:  # noqa: FBT001  a case
    tool = {
        "type": "mcp",
        "server_label": "loud",
        "server_url": mcp_server.url,
        "allowed_tools": ["shout"],
        "require_approval": "never",
    }
    with openai.OpenAI(base_url=f"{mcp_gateway.url}/v1", api_key="none", timeout=TIMEOUT) as client:
        asked: Any = {"model": "m", "input": QUESTION, "tools": [tool]}
        if stream:
            with client.responses.stream(**asked) as events:
                response = events.get_final_response()
        else:
            response = client.responses.create(**asked)
    (call,) = [item for item in response.output if item.type == "mcp_call"]
    assert (call.server_label, call.name, call.arguments) == ("loud", "shout", '{"text": "rivers"}')
    assert (call.output, call.error) == ("RIVERS", None)
    assert response.output_text == SAID


def test_messages_mcp(mcp_gateway: DialectGateway, mcp_server: Http) -> None:
    with anthropic.Anthropic(base_url=mcp_gateway.url, api_key="none", timeout=TIMEOUT) as client:
        asked: Any = {
            "model": "m",
            "max_tokens": 100,
            "messages": ASKED,
            "mcp_servers": [{"type": "url", "name": "loud", "url": mcp_server.url}],
            "tools": [
                {
                    "type": "mcp_toolset",
                    "mcp_server_name": "loud",
                    "default_config": {"enabled": False},
                    "configs": {"shout": {"enabled": True}},
                }
            ],
            "betas": ["mcp-client-2025-11-20"],
        }
        message = client.beta.messages.create(**asked)
    call, result, text = message.content
    assert call.type == "mcp_tool_use"
    assert (call.server_name, call.name, call.input) == ("loud", "shout", {"text": "rivers"})
    assert result.type == "mcp_tool_result"
    assert (result.is_error, [block.text for block in result.content if not isinstance(block, str)]) == (
        False,
        ["RIVERS"],
    )
    assert text.type == "text"
    assert text.text == SAID


def test_a_server_that_is_not_allowed_is_refused(mcp_gateway: DialectGateway) -> None:
    tool = {"type": "mcp", "server_label": "x", "server_url": "http://127.0.0.1:1/mcp", "require_approval": "never"}
    asked = {"model": "m", "input": QUESTION, "tools": [tool]}
    answer = httpx2.post(f"{mcp_gateway.url}/v1/responses", json=asked, timeout=TIMEOUT)
    assert answer.status_code == 400
    assert "[tools.mcp.servers]" in answer.json()["error"]["message"]


# -- what it costs, and what is counted


def test_a_key_of_the_search_is_sent_to_it_alone(gateway: DialectGateway, model: Upstream, search: Upstream) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    answer = httpx2.post(f"{gateway.url}/v1/messages", json=asked, timeout=TIMEOUT)
    assert dict(search.requests[-1].headers)["authorization"] == f"Bearer {KEY}"
    assert KEY not in answer.text
    assert all(KEY.encode() not in request.body for request in model.requests)


def test_calls_are_counted(gateway: DialectGateway) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    httpx2.post(f"{gateway.url}/v1/messages", json=asked, timeout=TIMEOUT)
    metrics = httpx2.get(f"{gateway.url}/metrics", timeout=TIMEOUT).text
    (row,) = [row for row in metrics.splitlines() if row.startswith("xenoglot_tool_executions_total")]
    assert row.startswith('xenoglot_tool_executions_total{tool="web_search",outcome="ok"}')


def test_without_an_executor_the_refusal_names_the_setting(model: Upstream) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    with DialectGateway(model) as running:
        answer = httpx2.post(f"{running.url}/v1/messages", json=asked, timeout=TIMEOUT)
    assert answer.status_code == 400
    assert "[tools.web_search]" in answer.json()["error"]["message"]


# -- other upstreams, faults and accounting


def searching(search: Upstream) -> JSONObject:
    """Return the settings of a search."""
    return {"web_search": {"executor": "searxng", "url": f"{search.url}/search"}}


def test_a_server_that_searches_itself_gets_the_bytes(search: Upstream) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    before = len(search.requests)
    with Upstream(*answers("messages", text=SAID).rules()) as server:
        with DialectGateway(server, "messages", tools=searching(search)) as running:
            answer = httpx2.post(f"{running.url}/v1/messages", json=asked, timeout=TIMEOUT)
        (received,) = server.requests
    assert (answer.status_code, json.loads(received.body)) == (200, asked)
    assert len(search.requests) == before


def test_a_server_of_the_dialect_may_have_no_search(search: Upstream) -> None:
    call = answers("messages", text=(), tool=("web_search", '{"query":"rivers"}')).complete()
    said = answers("messages", text=SAID).complete()
    rules = [ScriptRule(steps=said, when=RequestMatcher(contains=b"tool_result")), ScriptRule(steps=call)]
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    with Upstream(*rules) as server:
        facts: JSONObject = {"target": {"hosted_tools": []}}
        with DialectGateway(server, "messages", tools=searching(search), upstream=facts) as running:
            answer = httpx2.post(f"{running.url}/v1/messages", json=asked, timeout=TIMEOUT)
        sent = server.requests[-1].json
    assert [block["type"] for block in answer.json()["content"]] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    assert [tool["name"] for tool in sent["tools"]] == ["web_search"]
    assert "input_schema" in sent["tools"][0]


def test_a_search_that_fails_is_an_error_in_the_answer(model: Upstream) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    with (
        Upstream((Respond(500, (), b"secret trace"),)) as broken,
        DialectGateway(model, tools=searching(broken)) as running,
    ):
        answer = httpx2.post(f"{running.url}/v1/messages", json=asked, timeout=TIMEOUT)
        assert str(broken.port) not in answer.text
    _, result, text = answer.json()["content"]
    assert result["content"] == {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    assert (text["text"], "secret" in answer.text) == (SAID, False)
    assert last_of(model)["messages"][-1]["content"] == "[tool error] unavailable: the search answered with status 500"


def test_all_rounds_are_one_request_in_the_ledger(model: Upstream, search: Upstream, tmp_path: Path) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    path = tmp_path / "state.db"
    more: JSONObject = {"store": {"url": f"sqlite://{path}"}, "ledger": {}}
    with DialectGateway(model, tools=searching(search), **more) as running:
        assert httpx2.post(f"{running.url}/v1/messages", json=asked, timeout=TIMEOUT).status_code == 200

    async def stored() -> list[RequestRow]:
        async with aclosing(SQLite(path)) as store:
            return await store.read(queries.requests(RequestFilter(limit=10)))

    (row,) = asyncio.run(stored())
    assert (row.input, row.output, row.tries) == (14, 6, 2)


def test_each_round_has_the_price_of_its_target(model: Upstream, search: Upstream, tmp_path: Path) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH]}

    def calls_once(request: Received) -> Sequence[Step]:
        return model_steps(request) if request.json["messages"][-1]["role"] != "tool" else (Respond(503, (), b"{}"),)

    with Upstream(ScriptRule(steps=calls_once)) as dear:
        named = {"dear": dear.url, "cheap": model.url}
        more: JSONObject = {
            "store": {"url": f"sqlite://{tmp_path}/state.db"},
            "ledger": {},
            "upstreams": {name: {"dialect": "chat", "base_url": url} for name, url in named.items()},
            "models": [
                {"name": "m", "strategy": "ordered", "targets": [{"upstream": name, "model": name} for name in named]}
            ],
            "prices": [{"model": name, "input": price, "output": 0} for name, price in (("dear", 1000), ("cheap", 10))],
        }
        with DialectGateway(model, tools=searching(search), **more) as running:
            assert httpx2.post(f"{running.url}/v1/messages", json=asked, timeout=TIMEOUT).status_code == 200

    async def stored() -> list[RequestRow]:
        async with aclosing(SQLite(tmp_path / "state.db")) as store:
            return await store.read(queries.requests(RequestFilter(limit=10)))

    (row,) = asyncio.run(stored())
    assert (row.upstream, row.input, row.cost) == ("cheap", 14, 7 * 1000 + 7 * 10)


@pytest.mark.parametrize(("amount", "rounds"), [("0.15", 2), ("0.101", 1)], ids=["enough", "too-little"])
def test_each_round_is_reserved(model: Upstream, search: Upstream, tmp_path: Path, amount: str, rounds: int) -> None:
    """A round has to fit into the budget together with what those before cost; else the turn is paused."""
    asked = {"model": "m", "max_tokens": 100, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    budget: JSONObject = {"scope": "all", "amount": amount, "period": "total"}
    more: JSONObject = {
        "store": {"url": f"sqlite://{tmp_path}/state.db"},
        "ledger": {},
        "prices": [{"model": "m", "input": "0", "output": "1000"}],
        "budgets": [budget],
    }
    before = len(model.requests)
    with DialectGateway(model, tools=searching(search), **more) as running:
        answer = httpx2.post(f"{running.url}/v1/messages", json=asked, timeout=TIMEOUT).json()
    assert len(model.requests) - before == rounds
    assert answer["stop_reason"] == ("end_turn" if rounds > 1 else "pause_turn")
    assert [block["type"] for block in answer["content"]][:2] == ["server_tool_use", "web_search_tool_result"]

    async def stored() -> BudgetUse:
        one = BudgetSettings(**budget).budget()
        async with aclosing(SQLite(tmp_path / "state.db")) as store:
            return (await store.read(budgets.uses([one], 2e9)))[one.id]

    assert asyncio.run(stored()) == BudgetUse(spent=rounds * 3000)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_limits_that_refuse_a_round_pause_the_turn(
    model: Upstream,
    search: Upstream,
    stream: bool,  # noqa: FBT001  a case
) -> None:
    asked: Any = {"model": "m", "max_tokens": 100, "messages": ASKED, "tools": [MESSAGES_SEARCH]}
    limits: JSONObject = {"limits": {"requests": ["1/1h"]}}
    before = len(model.requests)
    with (
        DialectGateway(model, tools=searching(search), keys=limits) as running,
        anthropic.Anthropic(base_url=running.url, api_key="none", timeout=TIMEOUT, max_retries=0) as client,
    ):
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
        with pytest.raises(anthropic.RateLimitError):
            client.messages.create(**asked)
    assert len(model.requests) - before == 1
    assert message.stop_reason == "pause_turn"
    assert [block.type for block in message.content] == ["server_tool_use", "web_search_tool_result"]


def test_a_client_that_disconnects_ends_the_search(model: Upstream) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED, "tools": [MESSAGES_SEARCH], "stream": True}
    fast: JSONObject = {"port": 0, "drain_seconds": 0.0, "ping_interval": 0.05}
    with Upstream((Hang(),)) as silent, DialectGateway(model, tools=searching(silent), server=fast) as running:
        with httpx2.stream("POST", f"{running.url}/v1/messages", json=asked, timeout=TIMEOUT) as answer:
            lines = answer.iter_lines()
            searched = next(line for line in lines if "server_tool_use" in line)
            assert next(line for line in lines if line == "event: ping")
            silent.wait(lambda: len(silent.requests) == 1)
            assert silent.connections[0].closed is None
        silent.wait(lambda: silent.connections[0].closed is not None)
        assert httpx2.get(f"{running.url}/health", timeout=TIMEOUT).status_code == 200
    assert '"name":"web_search"' in searched
