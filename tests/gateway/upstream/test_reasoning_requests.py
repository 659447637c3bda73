"""Reasoning that the client did not ask for: removed from its answers, kept for later turns, reported, and counted.

An upstream that always reasons (`reasoning_content`) stands behind a gateway; each client dialect asks for reasoning,
does not ask, or declines. Every case is served without a task and by one, whole and streamed.
"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, Self

import anthropic
import httpx2
import ollama
import pytest
from google import genai
from google.genai import types

from tests.gateway.running_gateway import TIMEOUT
from xenoglot import dialect_registry as dialects
from xenoglot.codec.framing.formats import EVENT_STREAM
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.stage import Pipeline, through
from xenoglot.gateway.api.fast_path import FastPath
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import GatewayServer, bind, loop_factory
from xenoglot.model.content import Reasoning, Text
from xenoglot.model.fold import fold
from xenoglot.model.response import Response
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

MEMORY = {"url": "memory"}
TURN = {"role": "user", "content": "Hi"}
USER = {"role": "user", "parts": [{"text": "Hi"}]}
ASKED: dict[str, tuple[JSONObject, bool]] = {
    "messages": ({"messages": [TURN], "max_tokens": 9}, False),
    "messages-disabled": ({"messages": [TURN], "max_tokens": 9, "thinking": {"type": "disabled"}}, False),
    "messages-enabled": (
        {"messages": [TURN], "max_tokens": 2048, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        True,
    ),
    "messages-adaptive": ({"messages": [TURN], "max_tokens": 9, "thinking": {"type": "adaptive"}}, True),
    "gemini": ({"contents": [USER]}, False),
    "gemini-budget": (
        {"contents": [USER], "generationConfig": {"thinkingConfig": {"thinkingBudget": 1024}}},
        False,
    ),
    "gemini-included": (
        {"contents": [USER], "generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
        True,
    ),
    "ollama": ({"messages": [TURN]}, True),
    "ollama-on": ({"messages": [TURN], "think": True}, True),
    "ollama-off": ({"messages": [TURN], "think": False}, False),
    "chat": ({"messages": [TURN]}, True),
    "responses": ({"input": "Hi"}, True),
}
"""What each client asks, and whether its answer holds reasoning."""

PLAN, WORDS = "The plan.", "Hello."
LOSS = "$.candidates[0] reasoning dropped (the client did not ask for it)"


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """Give a server of `chat` that always reasons."""
    with Upstream(*answers("chat", text=("Hel", "lo."), reasoning=PLAN).rules()) as server:
        yield server


class DialectGateway:
    """A gateway on a real socket, in a thread of its own, in front of one server of `dialect`."""

    def __init__(
        self,
        server: Upstream,
        /,
        dialect: str = "chat",
        environ: Mapping[str, str] | None = None,
        drain_seconds: float = 0.0,
        **more: JSON,
    ) -> None:
        upstream = {"dialect": dialect, "base_url": server.url, **more.pop("upstream", {})}
        plain = {
            "server": {"port": 0, "drain_seconds": drain_seconds},
            "upstreams": {"up": upstream},
            "store": MEMORY,
            **more,
        }
        self._config = check(plain, environ or {}, "the tests")
        self._ready = threading.Event()
        self._server: GatewayServer | None = None
        self._thread = threading.Thread(target=self._run, name="dialect_gateway")
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(TIMEOUT)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with build_gateway(self._config) as gateway:
            with bind("127.0.0.1", 0) as listener:
                self._server = GatewayServer(gateway)
                self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                self._ready.set()
                await self._server.serve([listener])


@pytest.fixture(scope="module")
def dialect_gateway(upstream: Upstream) -> Iterator[DialectGateway]:
    """Give a gateway with the usual settings."""
    with DialectGateway(upstream) as running:
        yield running


def answer_and_losses(running: DialectGateway, client: str, body: JSONObject, *, stream: bool) -> tuple[Response, str]:
    """Send the request; return the answer as the client reads it, and the losses that it was told."""
    dialect = dialects.get(client)
    path, query, sent = addressed({dialect.model_field: "m", **body, "stream": stream}, dialect)
    answer = httpx2.post(f"{running.url}{path}?{query}", json=sent, timeout=TIMEOUT)
    assert answer.status_code == 200
    told = answer.headers.get("x-xenoglot-losses", "")
    if not stream:
        return dialect.decode_response(answer.json()), told
    events = through([answer.content], Pipeline(dialect.framing.decoder(), dialect.stream_decoder()))
    response = fold(events)
    assert isinstance(response, Response)
    return response, told + answer.text


def text_of(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("task", [False, True], ids=["passage", "task"])
@pytest.mark.parametrize("case", ASKED)
def test_reasoning_is_returned_where_it_was_requested_clients_0(
    dialect_gateway: DialectGateway,
    monkeypatch: pytest.MonkeyPatch,
    case: str,
    *,
    task: bool,
    stream: bool,
) -> None:
    (body, shown), client = ASKED[case], case.partition("-")[0]
    if task:
        monkeypatch.setattr(FastPath, "passage", lambda *_: None)
    response, told = answer_and_losses(dialect_gateway, client, body, stream=stream)
    (candidate,) = response.candidates
    thoughts = [part for part in candidate.content if isinstance(part, Reasoning)]
    assert (bool(thoughts), text_of(candidate.content)) == (shown, WORDS)
    assert shown or isinstance(candidate.content[0], Text)
    if client == "chat" and stream:  # it did not ask for usage
        assert response.usage is None
    else:
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens) == (7, 3)
    if (
        dialects.get(client).framing is EVENT_STREAM and dialects.get(client).comments
    ) or not stream:  # else there is no place for a late loss
        assert (LOSS in told) == (not shown)
        assert told.count(LOSS) <= 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("client", "wish", "shown"),
    [("messages", "always", True), ("gemini", "always", True), ("chat", "never", True), ("responses", "never", False)],
)
def test_a_setting_per_client_dialect_decides(
    upstream: Upstream,
    client: str,
    wish: str,
    shown: bool,  # noqa: FBT001  a column
    *,
    stream: bool,
) -> None:
    """An upstream of the client's own dialect (`chat` here) decides for itself: its bytes are not changed."""
    with DialectGateway(upstream, clients={client: {"reasoning": wish}}) as running:
        response, _ = answer_and_losses(running, client, ASKED[client][0], stream=stream)
    assert any(isinstance(part, Reasoning) for part in response.candidates[0].content) == shown


@pytest.mark.parametrize("preserve", [False, True], ids=["bytes", "events"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_between_equal_dialects_the_upstream_decides(*, stream: bool, preserve: bool) -> None:
    rules = answers("messages", text=WORDS, reasoning=PLAN).rules()
    with (
        Upstream(*rules) as server,
        DialectGateway(server, "messages", upstream={"preserve_reasoning": preserve}) as running,
    ):
        response, told = answer_and_losses(running, "messages", ASKED["messages"][0], stream=stream)
    assert isinstance(response.candidates[0].content[0], Reasoning)
    assert LOSS not in told


def test_anthropic_reads_the_answer_as_the_first_block_clients_0(
    dialect_gateway: DialectGateway,
) -> None:
    turns: Any = [TURN]
    with anthropic.Anthropic(api_key="none", base_url=dialect_gateway.url, max_retries=0) as client:
        message: Any = client.messages.create(model="m", max_tokens=9, messages=turns)
        assert message.content[0].text == WORDS
        with client.messages.stream(model="m", max_tokens=9, messages=turns) as stream:
            assert "".join(stream.text_stream) == WORDS
            assert [block.type for block in stream.get_final_message().content] == ["text"]
        wish: Any = {"type": "enabled", "budget_tokens": 1024}
        thought: Any = client.messages.create(model="m", max_tokens=2048, messages=turns, thinking=wish)
        assert [block.type for block in thought.content] == ["thinking", "text"]


def test_google_genai_reads_the_answer_as_the_first_part_clients_0(
    dialect_gateway: DialectGateway,
) -> None:
    with genai.Client(api_key="none", http_options=types.HttpOptions(base_url=dialect_gateway.url)) as client:
        whole: Any = client.models.generate_content(model="m", contents="Hi")
        pieces: list[Any] = [*client.models.generate_content_stream(model="m", contents="Hi")]
    assert (whole.text, whole.candidates[0].content.parts[0].text) == (WORDS, WORDS)
    parts = [part for piece in pieces for part in piece.candidates[0].content.parts]
    assert "".join(part.text for part in parts) == WORDS
    assert not any(part.thought for part in parts)


def test_ollama_shows_thinking_unless_it_is_turned_off(
    dialect_gateway: DialectGateway,
) -> None:
    turns: Any = [TURN]
    with ollama.Client(host=dialect_gateway.url) as client:
        seen = [client.chat(model="m", messages=turns, think=wish).message for wish in (None, True, False)]
    assert [(message.thinking, message.content) for message in seen] == [(PLAN, WORDS), (PLAN, WORDS), (None, WORDS)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_removed_reasoning_is_preserved_for_later_turns(upstream: Upstream, *, stream: bool) -> None:
    """pitfall-53: the client never saw the thought; the upstream that needs it back gets it."""
    upstream.forget()
    body = ASKED["messages"][0]
    again = {**body, "messages": [TURN, {"role": "assistant", "content": WORDS}, TURN]}
    with DialectGateway(upstream, upstream={"preserve_reasoning": True}) as running:
        response, _ = answer_and_losses(running, "messages", body, stream=stream)
        answer_and_losses(running, "messages", again, stream=stream)
    assert [type(part) for part in response.candidates[0].content] == [Text]
    sent = json.loads(upstream.requests[-1].body)
    assert sent["messages"][1] == {"role": "assistant", "content": WORDS, "reasoning_content": PLAN}
