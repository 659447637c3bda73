"""Usage of every stream: requested for clients that did not ask, hidden from them, logged; else estimated.

Every case is served without a task and by one, with shortcuts and without.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import httpx2
import openai
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from tests.shortcuts import switched
from xenoglot.gateway.api import fast_path
from xenoglot.testing import Upstream
from xenoglot.testing.script import Body, Close, End, ResponseHead, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 2,
    "total_tokens": 11,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
LOGGED = {"input_tokens": 9, "output_tokens": 2, "cache_read": 4, "cache_write": None, "reasoning": 1}
TURN: JSONObject = {"role": "user", "content": "What is the capital of France?"}
PROMPT = 13
WORDS = ("Paris", " is", " it", ".")
DONE = b"data: [DONE]\n\n"


def chunks(*, chat: bool, usage: bool) -> list[bytes]:
    """Return the frames of a stream: one for each word, one for the end, and the usage if it is asked for."""
    null: JSONObject = {"usage": None} if usage else {}

    def frame(choice: JSONObject | None, **more: JSON) -> bytes:
        choices: JSON = [] if choice is None else [{"index": 0, "finish_reason": None} | choice]
        said = {"id": "c1", "created": 1, "model": "m", "choices": choices} | null | more
        return b"data: " + json.dumps(said, separators=(",", ":")).encode() + b"\n\n"

    spoken = [frame({"delta": {"content": word}} if chat else {"text": word}) for word in WORDS]
    end: JSONObject = {"finish_reason": "stop"}
    ended = frame(end | {"delta": {}} if chat else end | {"text": ""})
    return [*spoken, ended, *((frame(None, usage=USAGE),) if usage else ())]


def obeys(request: Received) -> Sequence[Step]:
    """Answer with usage if it is asked for, as the APIs do; break off after a word for those who want that."""
    asked = cast("JSONObject", request.json)
    options = asked.get("stream_options") or {}
    frames = chunks(chat="chat" in request.path, usage=options.get("include_usage") is True)
    head = ResponseHead(headers=(("content-type", "text/event-stream"),))
    if asked.get("user") == "broken":
        return head, Body(b"".join(frames[:2])), Close()
    return head, Body(b"".join([*frames, DONE]), split=asked.get("seed") or 0), End()


@pytest.fixture(scope="module", params=["chat", "completions"])
def gateway(request: pytest.FixtureRequest) -> Iterator[tuple[str, Upstream, DialectGateway]]:
    """Give a gateway in front of a server of a dialect that reports usage on request."""
    with Upstream(ScriptRule(steps=obeys)) as server, DialectGateway(server, request.param) as running:
        yield request.param, server, running


def body_of(dialect: str, **more: JSON) -> JSONObject:
    prompt: JSONObject = {"prompt": "Hi"} if dialect == "completions" else {"messages": [TURN]}
    return {"model": "m", "stream": True, **prompt, **more}


def path_of(dialect: str) -> str:
    return "/v1/completions" if dialect == "completions" else "/v1/chat/completions"


@pytest.mark.parametrize("way", ["passage", "task", "no-shortcuts"])
@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="pitfall-101-not-set"),
        pytest.param({"stream_options": {"include_usage": False}}, id="declined"),
        pytest.param({"seed": 7}, id="cut-into-pieces"),
    ],
)
def test_usage_is_logged_and_hidden(
    gateway: tuple[str, Upstream, DialectGateway],
    access_lines: AccessLines,
    monkeypatch: pytest.MonkeyPatch,
    more: JSONObject,
    way: str,
) -> None:
    dialect, server, running = gateway
    if way == "task":
        monkeypatch.setattr(fast_path.FastPath, "passage", lambda *_: None)
    with switched(on=way != "no-shortcuts"):
        answer = httpx2.post(running.url + path_of(dialect), json=body_of(dialect, **more), timeout=TIMEOUT)
    assert answer.content == b"".join([*chunks(chat=dialect == "chat", usage=False), DONE])
    assert access_lines.next()["usage"] == LOGGED
    assert cast("JSONObject", server.requests[-1].json)["stream_options"] == {"include_usage": True}


def test_a_client_that_asked_gets_every_byte(
    gateway: tuple[str, Upstream, DialectGateway], access_lines: AccessLines
) -> None:
    dialect, _, running = gateway
    body = body_of(dialect, stream_options={"include_usage": True})
    answer = httpx2.post(running.url + path_of(dialect), json=body, timeout=TIMEOUT)
    assert answer.content == b"".join([*chunks(chat=dialect == "chat", usage=True), DONE])
    assert access_lines.next()["usage"] == LOGGED


def test_the_official_sdk_finds_a_choice_in_every_chunk() -> None:
    turns: Any = [TURN]
    with (
        Upstream(ScriptRule(steps=obeys)) as server,
        DialectGateway(server, "chat") as running,
        openai.OpenAI(api_key="none", base_url=f"{running.url}/v1", max_retries=0) as client,
    ):
        words = [
            chunk.choices[0].delta.content
            for chunk in client.chat.completions.create(model="m", messages=turns, stream=True)
        ]
    assert "".join(filter(None, words)) == "".join(WORDS)


def test_a_server_that_rejects_the_option_is_not_sent_it(access_lines: AccessLines) -> None:
    with (
        Upstream(ScriptRule(steps=obeys)) as server,
        DialectGateway(server, "chat", upstream={"target": {"stream_usage": False}}) as running,
    ):
        answer = httpx2.post(running.url + path_of("chat"), json=body_of("chat"), timeout=TIMEOUT)
        assert "stream_options" not in cast("JSONObject", server.requests[-1].json)
    assert answer.content == b"".join([*chunks(chat=True, usage=False), DONE])
    usage = access_lines.next()["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["estimated"]) == (PROMPT, len(WORDS), True)


@pytest.mark.parametrize("way", ["passage", "task"])
@pytest.mark.parametrize("client", ["chat", "messages"])
def test_a_stream_that_broke_off_is_estimated(
    access_lines: AccessLines, monkeypatch: pytest.MonkeyPatch, client: str, way: str
) -> None:
    if way == "task":
        monkeypatch.setattr(fast_path.FastPath, "passage", lambda *_: None)
    body = body_of("chat", user="broken")
    path = path_of("chat")
    if client == "messages":
        body = {"model": "m", "stream": True, "messages": [TURN], "max_tokens": 9, "metadata": {"user_id": "broken"}}
        path = "/v1/messages"
    with Upstream(ScriptRule(steps=obeys)) as server, DialectGateway(server, "chat") as running:
        with pytest.raises(httpx2.HTTPError):
            httpx2.post(running.url + path, json=body, timeout=TIMEOUT)
        line = access_lines.next()
    assert (line["finish"], line["usage"]["estimated"]) == (None, True)
    assert (line["usage"]["input_tokens"], line["usage"]["output_tokens"]) == (PROMPT, 2)
