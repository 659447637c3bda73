"""Further dialects of an upstream: their clients are answered in them, bytes untouched.

Ollama is called at `/api/generate` by clients of `/api/generate`, servers of `chat` with `/v1/completions` there.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING

import httpx
import httpx2
import ollama
import openai
import pytest

from tests.gateway.config.test_provider_defaults import problems
from tests.gateway.config.test_provider_defaults import upstream as configured
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.backends.backend import Call
from xenoglot.backends.http.client import Transport
from xenoglot.codec.loss import Losses
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.api.fast_path import FastPath
from xenoglot.gateway.config.extra_endpoints import ExtraEndpoint
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_remote
from xenoglot.model.content import Text
from xenoglot.model.request import Message, Request
from xenoglot.providers import catalog
from xenoglot.testing import Respond, ScriptRule, Upstream, answers
from xenoglot.testing.script import Body, Close, RequestMatcher, ResponseHead

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing.script import Step

LINES, EVENTS = (("content-type", "application/x-ndjson"),), (("content-type", "text/event-stream"),)
JSON_TYPE = (("content-type", "application/json"),)

GENERATED = (
    b'{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"","image":"aGk=","done":true,'
    b'"done_reason":"stop","context":[1,2],"total_duration":5}'
)
STEPS = (
    b'{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"","done":false,"completed":1,"total":2}\n'
    b'{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"ab","done":false}\n' + GENERATED + b"\n"
)
RAW = (
    b'{ "model":"m", "prompt":"[INST] a","raw":true,"suffix":"b","template":"{{ .Prompt }}","context":[7],"stream":%s}'
)

COMPLETED = (
    b'{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","kv_transfer_params":null,"choices":[{"index":0,'
    b'"text":"ab","logprobs":null,"finish_reason":"stop","stop_reason":9}],"usage":{"prompt_tokens":1,'
    b'"completion_tokens":2,"total_tokens":3}}'
)
CHUNKS = b"data: %s\n\ndata: [DONE]\n\n" % COMPLETED
ECHOED = b'{ "model":"m", "prompt":[1,2],"echo":true,"prompt_logprobs":1,"stream":%s}'


def on(path: str, *steps: Step) -> ScriptRule:
    """Return what a server answers at a path."""
    return ScriptRule(steps=steps, when=RequestMatcher(path=path))


def post(running: DialectGateway, path: str, body: bytes) -> httpx2.Response:
    return httpx2.post(f"{running.url}{path}", content=body, headers=dict(JSON_TYPE), timeout=TIMEOUT)


SPOKEN = {
    "ollama_generate": ("ollama", [], "/api/generate", RAW, GENERATED, STEPS, LINES),
    "completions": ("chat", ["completions"], "/v1/completions", ECHOED, COMPLETED, CHUNKS, EVENTS),
}


@pytest.mark.parametrize("task", [False, True], ids=["passage", "task"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", SPOKEN)
def test_bytes_pass_untouched_in_a_further_dialect_findings_i(
    monkeypatch: pytest.MonkeyPatch, case: str, *, stream: bool, task: bool
) -> None:
    main, also, path, sent, whole, pieces, streamed = SPOKEN[case]
    if task:
        monkeypatch.setattr(FastPath, "passage", lambda *_: None)
    body = sent % (b"true" if stream else b"false")
    steps = Respond(headers=streamed if stream else JSON_TYPE, body=pieces if stream else whole)
    settings: JSONObject = {"also": also} if also else {}
    with Upstream(on(path, steps)) as server, DialectGateway(server, main, upstream=settings) as running:
        answer = post(running, path, body)
    assert (answer.status_code, answer.content) == (200, pieces if stream else whole)
    if stream and case == "completions":  # what usage is known by; the client sees nothing of it
        body = body[:-1] + b',"stream_options":{"include_usage":true}}'
    assert [(one.path, one.body) for one in server.requests] == [(path, body)]
    assert "x-xenoglot-losses" not in answer.headers


def test_bytes_pass_where_only_translated_answers_are_preserved() -> None:
    good = on("/api/generate", Respond(headers=JSON_TYPE, body=GENERATED))
    settings: JSONObject = {"preserve": "translated"}
    with Upstream(good) as server, DialectGateway(server, "ollama", upstream=settings) as running:
        answer = post(running, "/api/generate", RAW % b"false")
    assert (answer.content, server.requests[0].body) == (GENERATED, RAW % b"false")


@pytest.mark.parametrize("case", SPOKEN)
def test_without_the_further_dialect_requests_are_translated(case: str) -> None:
    main, _, path, _, _, _, _ = SPOKEN[case]
    with (
        Upstream(*answers(main, text="ab").rules()) as server,
        DialectGateway(server, main, upstream={"also": []}) as running,
    ):
        answer = post(running, path, b'{"model":"m","prompt":"a","stream":false}')
    assert answer.status_code == 200
    assert [one.path for one in server.requests] == [{"ollama": "/api/chat", "chat": "/v1/chat/completions"}[main]]


def test_clients_of_other_dialects_are_answered_in_the_main_one() -> None:
    settings: JSONObject = {"also": ["completions"]}
    with Upstream(*answers("chat", text="ab").rules()) as server, DialectGateway(server, upstream=settings) as running:
        answer = post(
            running, "/v1/messages", b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}'
        )
    assert answer.json()["content"] == [{"type": "text", "text": "ab"}]
    assert [one.path for one in server.requests] == ["/v1/chat/completions"]


def test_only_the_models_that_a_dialect_is_for_are_called_in_it() -> None:
    settings: JSONObject = {"also": [{"dialect": "completions", "models": ["base-*"]}]}
    rules = (*answers("chat", text="ab").rules(), on("/v1/completions", Respond(headers=JSON_TYPE, body=COMPLETED)))
    with Upstream(*rules) as server, DialectGateway(server, upstream=settings) as running:
        texts = [
            post(running, "/v1/completions", b'{"model":"%s","prompt":"a"}' % model).json()["choices"][0]["text"]
            for model in (b"base-1", b"chatty")
        ]
    assert texts == ["ab", "ab"]
    assert [one.path for one in server.requests] == ["/v1/completions", "/v1/chat/completions"]


def test_keys_and_headers_are_those_of_the_upstream() -> None:
    settings: JSONObject = {"also": ["completions"], "headers": {"x-team": "a"}}
    with Upstream(on("/v1/completions", Respond(headers=JSON_TYPE, body=COMPLETED))) as server:
        settings |= {"key_env": "UP_KEY"}
        with DialectGateway(server, upstream=settings, environ={"UP_KEY": "sk-1"}) as running:
            post(running, "/v1/completions", b'{"model":"m","prompt":"a"}')
    (request,) = server.requests
    assert (request.header("authorization"), request.header("x-team")) == ("Bearer sk-1", "a")


CUT = STEPS.partition(b"\n")[0] + b"\n"


def test_a_busy_server_is_retried_in_the_same_dialect() -> None:
    busy = ScriptRule(steps=(Respond(status=503, headers=JSON_TYPE, body=b'{"error":"busy"}'),), times=1)
    good = on("/api/generate", Respond(headers=JSON_TYPE, body=GENERATED))
    with Upstream(busy, good) as server, DialectGateway(server, "ollama") as running:
        answer = post(running, "/api/generate", RAW % b"false")
    assert (answer.status_code, answer.content) == (200, GENERATED)
    assert [one.path for one in server.requests] == ["/api/generate"] * 2


def test_an_error_is_told_in_the_dialect_and_not_translated_again() -> None:
    refusal = Respond(status=404, headers=JSON_TYPE, body=b'{"error":"model \'m\' not found"}')
    with Upstream(on("/api/generate", refusal)) as server, DialectGateway(server, "ollama") as running:
        answer = post(running, "/api/generate", RAW % b"false")
    assert (answer.status_code, answer.json()) == (404, {"error": "model 'm' not found"})
    assert len(server.requests) == 1


@pytest.mark.parametrize("task", [False, True], ids=["passage", "task"])
def test_a_stream_that_breaks_off_never_looks_whole_u14(monkeypatch: pytest.MonkeyPatch, *, task: bool) -> None:
    if task:
        monkeypatch.setattr(FastPath, "passage", lambda *_: None)
    steps = (ResponseHead(headers=LINES), Body(data=CUT), Close())
    with (
        Upstream(on("/api/generate", *steps)) as server,
        DialectGateway(server, "ollama") as running,
        ollama.Client(host=running.url) as client,
        pytest.raises((ollama.ResponseError, httpx.RemoteProtocolError)),
    ):
        [*client.generate(model="m", prompt="a", stream=True)]


def test_loading_is_left_to_ollama_itself() -> None:
    body = b'{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"","done":true,"done_reason":"load"}'
    asked = b'{"model":"m","keep_alive":-1,"stream":false}'
    load = on("/api/generate", Respond(headers=JSON_TYPE, body=body))
    with Upstream(load) as server, DialectGateway(server, "ollama") as running:
        answer = post(running, "/api/generate", asked)
    assert answer.content == body
    assert [(one.path, one.body) for one in server.requests] == [("/api/generate", asked)]


async def test_the_beginning_of_an_answer_goes_to_the_dialect_with_turns() -> None:
    """Another target continues an answer that broke off: a prompt of `/api/generate` has no place for it."""
    turns = tuple(Message(role=role, content=(Text(text="a"),)) for role in ("user", "assistant"))
    call = Call(request=Request(model="m", messages=turns), losses=Losses(), dialect="ollama_generate")
    async with Upstream(*answers("ollama", text="b").rules()) as server, aclosing(Transport()) as transport:
        config = check({"upstreams": {"up": {"dialect": "ollama", "base_url": server.url}}}, {}, "the tests")
        answer = await build_remote("up", config.upstreams["up"], transport, config).answer(call)
        await answer.aclose()
    assert [one.path for one in server.requests] == ["/api/chat"]


def test_a_default_of_the_route_is_written_in_the_same_dialect() -> None:
    models: list[JSON] = [{"name": "m", "model": "n", "defaults": {"seed": 5}}]
    good = on("/api/generate", Respond(headers=JSON_TYPE, body=GENERATED))
    with Upstream(good) as server, DialectGateway(server, "ollama", models=models) as running:
        post(running, "/api/generate", RAW % b"false")
    (request,) = server.requests
    wanted = json.loads(RAW % b"false") | {"model": "n", "options": {"seed": 5}}
    assert (request.path, request.json) == ("/api/generate", wanted)


def test_ollamas_sdk_makes_pictures_and_fills_in_the_middle() -> None:
    rules = [
        ScriptRule(
            steps=(Respond(headers=LINES, body=STEPS),), when=RequestMatcher(dialect="ollama_generate", stream=True)
        ),
        on("/api/generate", Respond(headers=JSON_TYPE, body=GENERATED)),
    ]
    with (
        Upstream(*rules) as server,
        DialectGateway(server, "ollama") as running,
        ollama.Client(host=running.url) as client,
    ):
        whole = client.generate(model="m", prompt="a", suffix="b", raw=True, context=[7], width=64, height=64, steps=2)
        pieces = [*client.generate(model="m", prompt="a", stream=True)]
    assert (whole.image, whole.context) == ("aGk=", [1, 2])
    assert [(piece.completed, piece.response, piece.image) for piece in pieces] == [
        (1, "", None),
        (None, "ab", None),
        (None, "", "aGk="),
    ]
    sent = server.requests[0].json
    assert isinstance(sent, dict)
    assert {key: sent[key] for key in ("suffix", "raw", "context", "width", "height", "steps")} == {
        "suffix": "b",
        "raw": True,
        "context": [7],
        "width": 64,
        "height": 64,
        "steps": 2,
    }


def test_openais_sdk_completes_at_the_servers_own_endpoint() -> None:
    rules = [
        ScriptRule(
            steps=(Respond(headers=EVENTS, body=CHUNKS),), when=RequestMatcher(dialect="completions", stream=True)
        ),
        on("/v1/completions", Respond(headers=JSON_TYPE, body=COMPLETED)),
    ]
    settings: JSONObject = {"also": ["completions"]}
    with (
        Upstream(*rules) as server,
        DialectGateway(server, upstream=settings) as running,
        openai.OpenAI(api_key="none", base_url=f"{running.url}/v1", max_retries=0) as client,
    ):
        whole = client.completions.create(model="m", prompt=[1, 2], echo=True, extra_body={"prompt_logprobs": 1})
        pieces = [*client.completions.create(model="m", prompt="a", stream=True)]
    assert (whole.choices[0].text, [piece.choices[0].text for piece in pieces]) == ("ab", ["ab"])
    assert server.requests[0].json == {"model": "m", "prompt": [1, 2], "echo": True, "prompt_logprobs": 1}
    assert {one.path for one in server.requests} == {"/v1/completions"}


def faces(**said: object) -> dict[str, tuple[str | None, tuple[str, ...]]]:
    """Return the further dialects of an upstream: where they are, and for which models."""
    return {one.dialect: (one.base_url, one.models) for one in configured(**said).also}


OPENAIS = catalog.get("openai").faces[-1].models
HERE = "http://127.0.0.1:11434"


@pytest.mark.parametrize(
    ("said", "also"),
    [
        ({"dialect": "ollama", "base_url": "http://h"}, {"ollama_generate": (None, ())}),
        ({"dialect": "llama_stack", "base_url": "http://h"}, {"llama_stack_completion": (None, ())}),
        ({"dialect": "ollama_generate", "base_url": "http://h"}, {}),
        ({"dialect": "chat", "base_url": "http://h"}, {}),
        ({"dialect": "chat", "base_url": "http://h", "also": ["completions"]}, {"completions": (None, ())}),
        ({"provider": "ollama"}, {"ollama_generate": (HERE, ()), "completions": (f"{HERE}/v1", ())}),
        ({"provider": "ollama", "also": []}, {}),
        (
            {"provider": "ollama", "base_url": "http://gpu:1/"},
            {"ollama_generate": ("http://gpu:1", ()), "completions": ("http://gpu:1/v1", ())},
        ),
        (
            {"provider": "ollama", "dialect": "chat", "base_url": "http://gpu:1/v1"},
            {"ollama_generate": ("http://gpu:1", ()), "completions": ("http://gpu:1/v1", ())},
        ),
        ({"provider": "vllm"}, {"completions": ("http://127.0.0.1:8000/v1", ())}),
        ({"provider": "vllm", "dialect": "messages", "base_url": "http://g"}, {"completions": ("http://g/v1", ())}),
        ({"provider": "openai", "key_env": "MINE"}, {"completions": ("https://api.openai.com/v1", OPENAIS)}),
        ({"provider": "groq"}, {}),
    ],
)
def test_what_an_upstream_speaks_beside_its_dialect(
    said: JSONObject, also: dict[str, tuple[str | None, tuple[str, ...]]]
) -> None:
    assert faces(**said) == also


def test_a_flag_names_further_dialects() -> None:
    (also,) = from_flags({}, upstream="http://h", also=["completions"]).upstreams["upstream"].also
    assert also == ExtraEndpoint(dialect="completions")
    with pytest.raises(ConfigurationError, match=r"--also: found \"chat\", which is set already"):
        from_flags({}, upstream="http://h", also=["chat"])
    with pytest.raises(ConfigurationError, match=r"^--also: no server is chosen"):
        from_flags({}, also=["completions"])


def test_what_is_known_of_a_provider_holds_in_each_of_its_dialects() -> None:
    (generate, completions) = configured(provider="ollama", target={"seed_field": "random_seed"}).also
    row = catalog.get("ollama")
    told = {"seed_field": "random_seed"}
    assert generate.target == catalog.target_of(row.quirks, told)
    assert completions.target == catalog.target_of(row.quirks, {"fan_out": True}, told)


def test_a_chat_model_of_openai_is_not_asked_for_completions() -> None:
    (also,) = configured(provider="openai", key_env="MINE").also
    assert [also.has(name) for name in ("gpt-3.5-turbo-instruct", "ft:davinci-002:acme", "gpt-4o")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("also", "problem"),
    [
        (["chatty"], 'upstreams.up.also[0].dialect: found "chatty"; did you mean `chat`?'),
        (["chat"], 'upstreams.up.also[0].dialect: found "chat", which is set already'),
        (["completions"] * 2, 'upstreams.up.also[1].dialect: found "completions", which is set already'),
        ([{"dialect": "completions", "base_url": "h"}], "upstreams.up.also[0].base_url: "),
        ([{"dialect": "completions", "path": "x"}], "upstreams.up.also[0].path: "),
        ([{}], "upstreams.up.also[0].dialect: required, and not there"),
        ([5], "upstreams.up.also[0]: found 5; expected a table"),
        ("completions", 'upstreams.up.also: found "completions"; expected '),
    ],
    ids=str,
)
def test_a_further_dialect_that_is_a_mistake(also: JSON, problem: str) -> None:
    assert problem in "\n".join(problems(dialect="chat", base_url="http://h", also=also))


def test_a_model_is_called_in_a_dialect_for_all_or_for_some() -> None:
    some = ExtraEndpoint(dialect="completions", models=("base-*", "one"))
    assert [some.has(name) for name in ("base-1", "one", "two", None)] == [True, True, False, True]
    assert ExtraEndpoint(dialect="completions").has("two")
