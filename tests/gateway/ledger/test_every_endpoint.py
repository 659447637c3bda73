"""Every endpoint that calls a model is accounted alike: in the ledger, metrics, spans, budgets, and limits of keys."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from tests.gateway.batches.batch_requests import CHAT, FINISHED, input_line, jsonl
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.telemetry.collector import Collector
from tests.gateway.tool_execution.test_web_search import TWO, json_answer
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot import dialect_registry
from xenoglot.gateway.config.ledger import BudgetSettings
from xenoglot.model.response import Usage
from xenoglot.policy.limits.money_budget import BudgetUse
from xenoglot.store.ledger import budgets, queries
from xenoglot.store.ledger.queries import RequestFilter
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import RequestMatcher, Respond, ScriptRule, Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.policy.limits.money_budget import Budget
    from xenoglot.store.ledger.rows import RequestRow
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

USAGE: Final = Usage(input_tokens=10, output_tokens=3)
TOKENS: Final[JSONObject] = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
CHAT_TOKENS: Final[JSONObject] = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
TURNS: Final[list[JSON]] = [{"role": "user", "content": "Hi"}]
PARTS: Final[list[JSON]] = [{"role": "user", "content": [{"text": "Hi"}]}]
JSON_TYPE: Final = (("content-type", "application/json"),)
SPENDING_LIMIT: Final = "1.00"


class Answered(NamedTuple):
    """What a case is told: the status of a request, or of what stands for it."""

    status: int
    text: str = ""


class Case(NamedTuple):
    """A request to an endpoint, made by `send` with the URL of the gateway and headers of the client's own."""

    name: str
    route: str
    send: Callable[[str, dict[str, str]], Answered]
    calls: int = 1
    """How often the upstream is called for it, each with `USAGE`; each call counts for the limits."""
    stream: bool | None = False
    output: int = 3
    """Output tokens of each call."""
    limited: bool = True
    """Whether a request beyond the limits is refused; a line of a batch waits."""

    @property
    def cost(self) -> int:
        """Micro-units of the request."""
        return (10 * 1 + self.output * 2) * self.calls


def post(path: str, body: JSONObject, url: str, headers: dict[str, str]) -> Answered:
    answer = httpx2.post(url + path, json=body, headers=headers, timeout=TIMEOUT)
    return Answered(answer.status_code, answer.text)


def post_form(path: str, field: str, url: str, headers: dict[str, str]) -> Answered:
    files = {field: ("a.bin", b"RIFF" + bytes(100), "application/octet-stream")}
    answer = httpx2.post(url + path, data={"model": "m", "prompt": "Hi"}, files=files, headers=headers, timeout=TIMEOUT)
    return Answered(answer.status_code, answer.text)


def send_batch(url: str, headers: dict[str, str]) -> Answered:
    """Send a batch of one line, wait for its end, and return what became of the line."""
    with httpx2.Client(base_url=url, headers=headers, timeout=TIMEOUT) as client:
        form = {"file": ("lines.jsonl", jsonl(input_line("line", {"model": "m", "messages": TURNS})))}
        file = client.post("/v1/files", data={"purpose": "batch"}, files=form).json()
        wanted = {"input_file_id": file["id"], "endpoint": CHAT, "completion_window": "24h"}
        made = client.post("/v1/batches", json=wanted).json()
        for _ in count():
            made = client.get(f"/v1/batches/{made['id']}").json()
            if made["status"] in FINISHED:
                break
            time.sleep(0.02)
        if made["request_counts"]["completed"]:
            return Answered(200)
        errors = client.get(f"/v1/files/{made['error_file_id']}/content").json()
        return Answered(errors["response"]["status_code"], repr(errors))


def send_background(url: str, headers: dict[str, str]) -> Answered:
    with httpx2.Client(base_url=url, headers=headers, timeout=TIMEOUT) as client:
        answer = client.post("/v1/responses", json={"model": "m", "input": "Hi", "background": True})
        made = answer.json()
        while answer.status_code == 200 and made["status"] in ("queued", "in_progress"):
            time.sleep(0.02)
            made = client.get(f"/v1/responses/{made['id']}").json()
        failed = made.get("error") or made.get("status") == "failed"
        return Answered(429 if failed else answer.status_code, repr(made))


def send_turn(url: str, headers: dict[str, str]) -> Answered:
    with connect(url.replace("http", "ws", 1) + "/v1/responses", additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "response.create", "model": "m", "input": "Hi", "store": False}))
        for message in socket:
            event = json.loads(message)
            if event["type"] == "error":
                return Answered(event["status"], repr(event))
            if event["type"] == "response.failed":
                return Answered(429, repr(event))
            if event["type"] == "response.completed":
                return Answered(200)
    return Answered(0)


def generation(name: str, path: str, body: JSONObject, *, stream: bool = False, route: str | None = None) -> Case:
    label = f"{name}-stream" if stream else name
    return Case(label, route or path, partial(post, path, body), stream=stream)


def operation(name: str, path: str, body: JSONObject, output: int = 3) -> Case:
    return Case(name, path, partial(post, path, body), output=output)


CONVERSE: Final = "/model/{model}/converse"
GEMINI: Final = "/v1beta/models/{model}:generateContent"
CASES: Final = (
    generation("chat", CHAT, {"model": "m", "messages": TURNS}),
    generation("chat", CHAT, {"model": "m", "messages": TURNS, "stream": True}, stream=True),
    generation("completions", "/v1/completions", {"model": "m", "prompt": "Hi"}),
    generation("messages", "/v1/messages", {"model": "m", "messages": TURNS, "max_tokens": 9}),
    generation(
        "messages", "/v1/messages", {"model": "m", "messages": TURNS, "max_tokens": 9, "stream": True}, stream=True
    ),
    generation("responses", "/v1/responses", {"model": "m", "input": "Hi"}),
    generation("responses", "/v1/responses", {"model": "m", "input": "Hi", "stream": True}, stream=True),
    generation(
        "gemini",
        GEMINI.replace("{model}", "m"),
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        route=GEMINI,
    ),
    generation("interactions", "/v1beta/interactions", {"model": "m", "input": "Hi"}),
    generation("converse", CONVERSE.replace("{model}", "m"), {"messages": PARTS}, route=CONVERSE),
    generation("llama_stack", "/v1/inference/chat-completion", {"model_id": "m", "messages": TURNS}),
    generation("ollama", "/api/chat", {"model": "m", "messages": TURNS, "stream": False}),
    generation("ollama_generate", "/api/generate", {"model": "m", "prompt": "Hi", "stream": False}),
    generation("llama_stack_completion", "/v1/inference/completion", {"model_id": "m", "content": "Hi"}),
    operation("embeddings", "/v1/embeddings", {"model": "m", "input": "Hi"}, output=0),
    operation("rerank", "/v1/rerank", {"model": "m", "query": "tides", "documents": ["a", "b"]}, output=0),
    operation("moderation", "/v1/moderations", {"model": "m", "input": "Hi"}),
    operation("speech", "/v1/audio/speech", {"model": "m", "input": "Hi", "voice": "alloy"}),
    operation("image", "/v1/images/generations", {"model": "m", "prompt": "Hi"}),
    Case("transcription", "/v1/audio/transcriptions", partial(post_form, "/v1/audio/transcriptions", "file")),
    Case("image-edit", "/v1/images/edits", partial(post_form, "/v1/images/edits", "image")),
    Case("compaction", "/v1/responses/compact", partial(post, "/v1/responses/compact", {"model": "m", "input": "Hi"})),
    Case("batch", CHAT, send_batch, limited=False),
    Case("background", "/v1/responses", send_background, stream=True),
    Case("web-socket", "/v1/responses", send_turn, stream=True),
    Case(
        "tool-rounds",
        "/v1/responses",
        partial(post, "/v1/responses", {"model": "m", "input": "Search", "tools": [{"type": "web_search"}]}),
        calls=2,
    ),
)


def upstream_answer(request: Received) -> Sequence[Step]:
    """Answer every endpoint of a server, each time with the same usage."""
    path = request.path.removeprefix("/v1")
    simple: dict[str, JSON] = {
        "/embeddings": {
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
            "model": "m",
            "usage": CHAT_TOKENS,
        },
        "/rerank": {
            "results": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.1}],
            "usage": CHAT_TOKENS,
        },
        "/moderations": {"id": "m", "model": "m", "results": [], "usage": TOKENS},
        "/audio/speech": {"audio": "", "usage": TOKENS},
        "/audio/transcriptions": {"text": "Hi", "usage": {"type": "tokens", **TOKENS}},
        "/images/generations": {"created": 1, "data": [], "usage": TOKENS},
        "/images/edits": {"created": 1, "data": [], "usage": TOKENS},
    }
    if path in simple:
        return (Respond(headers=JSON_TYPE, body=json.dumps(simple[path]).encode()),)
    body = request.json
    tool = None
    if body.get("tools") and body.get("tool_choice") != "none" and body["messages"][-1]["role"] != "tool":
        function = body["tools"][0]["function"]
        tool = (function["name"], json.dumps({next(iter(function["parameters"]["properties"])): "tides"}))
    answer = answers("chat", text="Hello.", usage=USAGE, tool=tool)
    return answer.streamed() if body.get("stream") else answer.complete()


class Accounts(NamedTuple):
    """What was noted of all cases, by the tenants that are named like them."""

    first: dict[str, Answered]
    again: dict[str, Answered]
    """The answers to a second request, beyond the limits of the tenants."""
    rows: dict[str, list[RequestRow]]
    uses: dict[str, BudgetUse]
    samples: dict[tuple[str, str], float]
    """Sums of metrics of a tenant."""
    spans: dict[str, list[tuple[str, list[str]]]]
    """The routes of the spans of requests of a session's trace, and the names of those of their tries."""


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    """Send every request to one gateway, twice, and read what it noted."""
    path = tmp_path_factory.mktemp("accounts") / "state.db"
    keys = {case.name: f"key-of-{case.name}" for case in CASES}
    environ = {f"KEY_{number}": key for number, key in enumerate(keys.values())} | {
        "SEARCH_KEY": "none",
        "ADMIN": "admin",
    }
    limits: list[JSONObject] = [{"requests": [f"{case.calls}/1h"]} for case in CASES]
    spending: list[JSONObject] = [
        {"scope": f"tenant:{name}", "amount": SPENDING_LIMIT, "period": "total"} for name in keys
    ]
    with (
        Collector() as collector,
        Upstream(ScriptRule(steps=(json_answer(TWO),), when=RequestMatcher(path="/search*"))) as search,
        Upstream(ScriptRule(steps=upstream_answer)) as server,
    ):
        running = DialectGateway(
            server,
            environ=environ,
            keys={"admin_env": ["ADMIN"]},
            tenants={name: {"key_env": f"KEY_{number}", "limits": limits[number]} for number, name in enumerate(keys)},
            store={"url": f"sqlite://{path}"},
            ledger={},
            prices=[{"model": "*", "input": 1, "output": 2}],
            budgets=spending,
            telemetry={"endpoint": collector.url},
            tools={"web_search": {"executor": "searxng", "url": f"{search.url}/search", "key_env": "SEARCH_KEY"}},
        )
        with running, ThreadPoolExecutor(4) as pool:
            first, again = (
                dict(zip(keys, pool.map(partial(_send, running.url, turn), enumerate(CASES)), strict=True))
                for turn in range(2)
            )
            text = httpx2.get(f"{running.url}/metrics", headers={"x-api-key": "admin"}, timeout=TIMEOUT).text
        rows, uses = asyncio.run(_read(path, [BudgetSettings(**one).budget() for one in spending]))
        yield Accounts(first, again, rows, uses, _samples(text), _spans(collector))


def _send(url: str, turn: int, numbered: tuple[int, Case]) -> Answered:
    number, case = numbered
    if turn and not case.limited:
        return Answered(429)
    trace = f"{turn + 1:016x}{number:016x}"
    headers = {"authorization": f"Bearer key-of-{case.name}", "traceparent": f"00-{trace}-{1:016x}-01"}
    return case.send(url, headers)


async def _read(path: Path, spending: list[Budget]) -> tuple[dict[str, list[RequestRow]], dict[str, BudgetUse]]:
    store = SQLite(path)
    rows = await store.read(queries.requests(RequestFilter(limit=1000, failed=False)))
    uses = await store.read(budgets.uses(spending, 0.0))
    await store.aclose()
    found: dict[str, list[RequestRow]] = {}
    for row in rows:
        if row.model is not None:
            found.setdefault(row.tenant or "", []).append(row)
    return found, {one.name: uses[one.id] for one in spending}


def _samples(text: str) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "tenant" in sample.labels and sample.labels.get("kind") in (None, "input"):
                place = (sample.name, sample.labels["tenant"])
                found[place] = found.get(place, 0.0) + sample.value
    return found


def _spans(collector: Collector) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the spans of the first requests, and of what is done later for them."""
    found: dict[str, list[tuple[str, list[str]]]] = {case.name: [] for case in CASES}
    for span in sorted((one for one in collector.spans if one.kind == "SERVER"), key=lambda one: one.start):
        tries = collector.tries(span)
        if tries:
            tenant = str(span.attributes.get("xenoglot.tenant", ""))
            name = CASES[int(span.trace[16:], 16)].name if span.trace.startswith(f"{1:016x}") else tenant
            found.setdefault(name, []).append(
                (str(span.attributes["http.route"]), [str(one.attributes["xenoglot.upstream"]) for one in tries])
            )
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_request_is_in_the_ledger(accounts: Accounts, case: Case) -> None:
    assert accounts.first[case.name].status == 200, accounts.first[case.name]
    (row,) = accounts.rows[case.name]
    assert (row.route, row.model, row.upstream, row.tries) == (case.route, "m", "up", case.calls)
    assert bool(row.stream) == bool(case.stream)
    assert (row.input, row.output, row.cost, row.currency) == (
        10 * case.calls,
        case.output * case.calls or None,
        case.cost,
        "USD",
    )
    assert row.trace is not None


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_request_is_in_the_metrics(accounts: Accounts, case: Case) -> None:
    names = ("xenoglot_request_seconds_count", "xenoglot_tokens_total")
    requests, tokens = (accounts.samples.get((name, case.name)) for name in names)
    assert (requests, tokens) == (1 + case.limited, 10 * case.calls)
    assert accounts.samples["xenoglot_cost_total", case.name] == pytest.approx(case.cost / 1e6)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_request_is_charged_to_its_budget(accounts: Accounts, case: Case) -> None:
    assert accounts.uses[case.name] == BudgetUse(case.cost)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_request_counts_for_its_limits(accounts: Accounts, case: Case) -> None:
    assert accounts.again[case.name].status == 429, accounts.again[case.name]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_request_has_spans(accounts: Accounts, case: Case) -> None:
    assert accounts.spans[case.name] == [(case.route, ["up"] * case.calls)]


def test_each_endpoint_that_calls_a_model_is_tested() -> None:
    paths = {
        place
        for dialect in map(dialect_registry.get, dialect_registry.names())
        for place in (dialect.path, *(one.path for one in dialect.forwarded_paths))
    }
    alike = {"/v1/audio/translations", "/v1/images/variations", "/v1/decisions", "/v1/chat/moderations"}
    # forwarded as those beside them
    assert paths - alike <= {case.route for case in CASES}
