"""What was recorded of real traffic is what was said, without secrets, and replayed it is the same to an SDK."""

from __future__ import annotations

import tomllib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from tests.backends.raw_server import advance, leakless, turns
from tests.engine.shared_engine import SHAPE
from tests.engine.shared_engine import Running as Process
from tests.gateway.running_gateway import RunningGateway, config_for
from xenoglot.backends.http.client import Transport
from xenoglot.engine.backend import Engine
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.app import Gateway
from xenoglot.testing import CUT, AsyncRawClient, Respond, Upstream, answers
from xenoglot.testing.cassette import Meta, RecordedExchange, dialect_at, encode_meta, load, redacted, save
from xenoglot.testing.client import request
from xenoglot.testing.recorder import Recorder
from xenoglot.testing.replay import recheck, replayed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator
    from pathlib import Path

    from xenoglot.engine.server.server_process import EngineEndpoint
    from xenoglot.engine.server.weights import Weights

KEY = "sk-very-secret-0123456789"
HIDDEN = "configured-secret-987"
ASK: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "Say hello."}]}


@asynccontextmanager
async def recording(url: str, folder: Path, *secrets: str) -> AsyncIterator[str]:
    """Give the URL of a recorder in front of `url`."""
    recorder = Recorder(url, folder, secrets=secrets)
    async with await recorder.listen("127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await recorder.aclose()
    await turns()


@pytest.fixture(scope="module")
def model(weights: Weights, running_engine: EngineEndpoint) -> Generator[str]:
    """Give the URL of a gateway in front of the embedded model."""
    engine = Engine(weights, SHAPE, transport=Transport(), process=Process(running_engine))
    with RunningGateway(Gateway(config_for("scripted"), {"scripted": engine})) as running:
        yield running.url


def everything(folder: Path) -> bytes:
    """Return all that stands in the files of a folder."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def conversation(url: str) -> list[object]:
    """Return what two SDKs make of a model's answers, whole and streamed, and of a refusal."""
    made: list[object] = []
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as chat:
        ask = ASK | {"max_completion_tokens": 6, "temperature": 0}
        made.append((await chat.chat.completions.create(**ask)).model_dump())
        made += [chunk.model_dump() async for chunk in await chat.chat.completions.create(**ask, stream=True)]
        made += [model.id async for model in chat.models.list()]
        with pytest.raises(openai.BadRequestError) as refused:
            await chat.chat.completions.create(**ask | {"temperature": 99})
        made.append(refused.value.body)
    claude = anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)
    async with claude, claude.messages.stream(max_tokens=6, extra_body={"temperature": 0}, **ASK) as events:
        made.append((await events.get_final_message()).model_dump())
    return made


async def test_an_sdk_gets_the_same_from_what_was_recorded(model: str, tmp_path: Path) -> None:
    async with recording(model, tmp_path) as url:
        said = await conversation(url)
    exchanges = load(tmp_path)
    assert [(each.meta.dialect, each.meta.method, each.meta.status, each.streamed) for each in exchanges] == [
        ("chat", "POST", 200, False),
        ("chat", "POST", 200, True),
        ("", "GET", 200, False),
        ("chat", "POST", 400, False),
        ("messages", "POST", 200, True),
    ]
    assert [line for each in exchanges for line in recheck(each)] == []
    async with Upstream(*replayed(exchanges)) as upstream:
        assert await conversation(upstream.url) == said
    assert KEY.encode() not in everything(tmp_path)


@leakless
async def test_what_is_kept_is_what_came(tmp_path: Path) -> None:
    made = answers("chat", text=("Hel", HIDDEN, "lo."))
    async with Upstream(*made.rules()) as upstream, recording(upstream.url, tmp_path, HIDDEN) as url:
        async with AsyncRawClient(url) as client:
            stream = await client.request("POST", "/v1/chat/completions?key=abcdefgh9", ASK | {"stream": True})
            whole = await client.request("POST", "/v1/chat/completions", ASK, {"authorization": f"Bearer {KEY}"})
        assert [request.header("accept-encoding") for request in upstream.requests] == ["identity"] * 2
        assert upstream.requests[1].header("authorization") == f"Bearer {KEY}"
    assert (stream.body, whole.body) == (made.stream, made.body)
    first, second = load(tmp_path)
    hidden = HIDDEN.encode()
    assert (first.body, second.body) == tuple(data.replace(hidden, b"*" * 21) for data in (made.stream, made.body))
    assert (first.meta.query, first.meta.ending, sum(size for _, size in first.meta.chunks)) == (
        "key=***",
        "whole",
        len(made.stream),
    )
    assert dict(second.meta.request_headers)["authorization"] == "***"
    assert sorted(path.name for path in (tmp_path / first.name).iterdir()) == [
        "meta.toml",
        "request.json",
        "stream.sse",
    ]


@leakless
async def test_a_cut_answer_is_cut_for_the_client_and_in_the_replay(tmp_path: Path) -> None:
    made = answers("messages")
    server = Upstream(made.streamed(upto=3, then=CUT))
    async with server as upstream, recording(upstream.url, tmp_path) as url, AsyncRawClient(url) as client:
        live = await client.request("POST", "/v1/messages", {"max_tokens": 5, **ASK, "stream": True})
    (exchange,) = load(tmp_path)
    assert (exchange.meta.ending, exchange.body) == ("cut", b"".join(made.frames[:3]))
    async with Upstream(*replayed([exchange])) as upstream, AsyncRawClient(upstream.url) as client:
        again = await client.request("POST", "/v1/messages", {"stream": True, **ASK, "max_tokens": 5})
    assert (live.body, live.ending) == (again.body, again.ending) == (exchange.body, "fin")


@leakless
async def test_an_upstream_that_is_not_there(tmp_path: Path) -> None:
    server = Upstream((Respond(),), door="refuse")
    async with server as upstream, recording(upstream.url, tmp_path) as url, AsyncRawClient(url) as client:
        assert (await client.request("POST", "/v1/messages", b"{}")).status == 502
    (exchange,) = load(tmp_path)
    assert (exchange.meta.status, exchange.meta.ending, replayed([exchange])) == (0, "cut", ())


@leakless
async def test_equal_requests_get_their_answers_in_order_and_the_pauses_of_the_recording() -> None:
    meta = Meta(method="POST", path="/v1/[x]", status=200, chunks=((1.0, 2), (3.5, 1)))
    exchanges = [RecordedExchange(meta=meta, request=b'{"a":1,"b":2}', body=body) for body in (b"one", b"two")]
    async with Upstream(*replayed(exchanges, timing=True)) as upstream, AsyncRawClient(upstream.url) as client:
        said = []
        for _ in range(3):
            await client.send(request("POST", "/v1/[x]", b'{"b": 2, "a": 1}'))
            begun = await client.read_until(b"\r\n\r\n")
            await advance(1.0)
            begun += await client.read()
            await advance(2.5)
            said.append((await client.reply(begun=begun)).body)
        assert said == [b"one", b"two", b"two"]
        assert (await client.request("POST", "/v1/x", b'{"b": 2, "a": 1}')).status == 501


def test_a_difference_is_told() -> None:
    meta = Meta(method="POST", path="/v1/chat/completions", dialect="chat", status=200)
    asked = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
    odd = answers("chat").body.replace(b"1700000000", b"1700000000.0")
    assert list(recheck(RecordedExchange(meta=meta, request=asked, body=odd))) == [
        'response: `"created": 1700000000.0,` became `"created": 1700000000,`'
    ]
    assert [line.partition(":")[0] for line in recheck(RecordedExchange(meta=meta, request=b"[]", body=b"{"))] == [
        "request",
        "response",
    ]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param("/v1/chat/completions", "chat", id="chat"),
        pytest.param("/openai/v1/completions", "completions", id="completions"),
        pytest.param("/v1beta/models/gemini-9:streamGenerateContent", "gemini", id="gemini"),
        pytest.param("/v1/files", None, id="none"),
    ],
)
def test_the_dialect_of_a_path(path: str, name: str | None) -> None:
    found = dialect_at(path)
    assert (found.name if found else None) == name


def test_a_secret_is_hidden_wherever_it_stands(tmp_path: Path) -> None:
    meta = Meta(
        method="GET",
        path=f"/x/{KEY}",
        query=f"a=1&api_key={KEY}&sig=short",
        request_headers=(("x-api-key", KEY), ("x-note", f"it is {KEY}")),
        headers=(("set-cookie", "session=1234567890"), ("x-odd", "\x7f\u00e9")),
        status=200,
    )
    place = save(
        redacted(RecordedExchange(meta=meta, request=KEY.encode(), body=b"a " + KEY.encode()), ()), tmp_path, 1
    )
    clean = tomllib.loads((place / "meta.toml").read_text(encoding="utf-8"))
    stars = "*" * len(KEY)
    assert (clean["path"], clean["query"]) == (f"/x/{stars}", "a=1&api_key=***&sig=***")
    assert clean["request_headers"] == [["x-api-key", "***"], ["x-note", f"it is {stars}"]]
    assert clean["headers"] == [["set-cookie", "***"], ["x-odd", "\x7f\u00e9"]]
    (again,) = load(tmp_path)
    assert (again.request, again.body) == (stars.encode(), f"a {stars}".encode())


@pytest.mark.parametrize(
    ("meta", "complaint"),
    [
        pytest.param(None, "holds no recorded exchange", id="nothing"),
        pytest.param("method = ", "Invalid value", id="no-TOML"),
        pytest.param('method = "GET"\npath = "/"\nodd = 1', "unknown field `odd`", id="unknown"),
    ],
)
def test_a_folder_that_is_no_recording(tmp_path: Path, meta: str | None, complaint: str) -> None:
    if meta is not None:
        (tmp_path / "0001").mkdir()
        (tmp_path / "0001" / "meta.toml").write_text(meta, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=complaint):
        load(tmp_path)


def test_meta_is_toml() -> None:
    meta = Meta(method="GET", path='/"\\\n', headers=(("a", "\x00\x1f"),), chunks=((0.5, 3),))
    assert tomllib.loads(encode_meta(meta))["path"] == meta.path
