"""The cache of answers, as clients of a served gateway see it."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from http.client import HTTPConnection, IncompleteRead
from typing import TYPE_CHECKING, NamedTuple

import pytest
from msgspec.structs import replace

from tests.gateway.running_gateway import TIMEOUT, config_for, run_gateway
from tests.gateway.scripted_backends import CHAT, HELLO
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from tests.hooks.test_runner import STREAM
from xenoglot import dialect_registry as dialects
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.stage import Pipeline, through
from xenoglot.gateway.config.ledger import PriceSettings
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.settings import CacheSettings
from xenoglot.hooks.hook import HookSettings
from xenoglot.model.content import Text
from xenoglot.model.events import BlockStarted, Failed, Started, TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.config.load import Config
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject

TURN = {"role": "user", "content": "Hi"}
BODIES: dict[str, JSONObject] = {
    "chat": {"messages": [TURN]},
    "messages": {"messages": [TURN], "max_tokens": 9},
    "responses": {"input": "Hi", "store": False},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "ollama": {"messages": [TURN]},
    "completions": {"prompt": "Hi"},
}


def cached(**changes: object) -> Config:
    return config_for("scripted", **{"cache": CacheSettings(), **changes})


class Reply(NamedTuple):
    """A response of a gateway."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def post(url: str, path: str, body: JSONObject, headers: Mapping[str, str] | None = None) -> Reply:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, response.read())
    finally:
        connection.close()


class Seen(NamedTuple):
    """What a client sees of an answer."""

    text: str
    usage: tuple[int | None, int | None]
    cache: str | None


def ask(url: str, dialect: str = "chat", headers: Mapping[str, str] | None = None, **more: object) -> Seen:
    """Ask as a client of a dialect, and read the answer as one."""
    spoken, stream = dialects.get(dialect), bool(more.get("stream"))
    path, query, body = addressed({"model": "m", "stream": stream, **BODIES[dialect], **more}, spoken)
    answer = post(url, path + (f"?{query}" if query else ""), body, headers)
    assert answer.status == 200, answer.body
    if stream:
        decoded = fold(through([answer.body], Pipeline(spoken.framing.decoder(), spoken.stream_decoder())))
    else:
        decoded = spoken.decode_response(json.loads(answer.body))
    assert isinstance(decoded, Response)
    (candidate,) = decoded.candidates
    (part,) = candidate.content
    assert isinstance(part, Text)
    usage = decoded.usage or Usage()
    return Seen(part.text, (usage.input_tokens, usage.output_tokens), answer.headers.get("x-xenoglot-cache"))


@pytest.mark.parametrize("dialect", BODIES)
@pytest.mark.parametrize("first", [False, True], ids=["whole", "stream"])
def test_an_answer_is_returned_again_in_either_form(dialect: str, *, first: bool) -> None:
    """Whole and streamed answers are one entry: each is what the client would have got from the model."""
    backend = Scripted(STREAM if first else HELLO)
    with run_gateway({"scripted": backend}, cached()) as gateway:
        seen = [ask(gateway.url, dialect, stream=stream) for stream in (first, False, True)]
    assert [(one.text, one.cache) for one in seen] == [("Hello", "miss"), ("Hello", "hit"), ("Hello", "hit")]
    assert len(backend.requests) == 1


def test_bytes_of_an_upstream_of_the_same_dialect_are_cached() -> None:
    """The first answer passes byte for byte, the next is encoded; for the client both are the same."""
    usage = Usage(input_tokens=7, output_tokens=3)
    with (
        Upstream(*answers("chat", text=("Hel", "lo"), usage=usage).rules()) as upstream,
        DialectGateway(upstream, cache={}) as gateway,
    ):
        seen = [ask(gateway.url, stream=stream) for stream in (True, False, True)]
        assert len(upstream.requests) == 1
    assert [(one.text, one.cache) for one in seen] == [("Hello", "miss"), ("Hello", "hit"), ("Hello", "hit")]
    assert seen[1].usage == (7, 3)


def test_what_an_answer_depends_on() -> None:
    """Everything but whether it is streamed."""
    backend = Scripted(HELLO)
    variants: list[JSONObject] = [
        {},
        {"model": "n"},
        {"temperature": 0.5},
        {"seed": 1},
        {"messages": [{"role": "user", "content": "hi"}]},
        {"user": "ada"},
        {"metadata": {"a": "b"}},
        {"unknown_field": 1},
        {"stream": True, "stream_options": {"include_usage": True}},
    ]
    with run_gateway({"scripted": backend}, cached()) as gateway:
        first = [ask(gateway.url, **one).cache for one in variants]
        again = [ask(gateway.url, **one).cache for one in variants]
        beta = {"anthropic-beta": "x"}
        other = [ask(gateway.url, "messages", headers).cache for headers in (None, None, beta, beta)]
    assert first == ["miss"] * 8 + ["hit"]
    assert again == ["hit"] * 9
    assert other == ["miss", "hit", "miss", "hit"]  # another API, and what an upstream of it would see


def test_each_tenant_has_its_own_answers() -> None:
    plain = {
        "upstreams": {"scripted": {"dialect": "chat", "base_url": "http://upstream.invalid"}},
        "cache": {},
        "tenants": {"ada": {"key_env": "ADA"}, "bob": {"key_env": "BOB"}},
    }
    config = check(plain, {"ADA": "ada-key-1 ada-key-2", "BOB": "bob-key-1"}, "here")
    backend = Scripted(HELLO)
    with run_gateway({"scripted": backend}, config) as gateway:
        keys = ("ada-key-1", "ada-key-2", "bob-key-1", "bob-key-1")
        seen = [ask(gateway.url, headers={"authorization": f"Bearer {key}"}).cache for key in keys]
    assert seen == ["miss", "hit", "miss", "hit"]


@pytest.mark.parametrize(
    ("demands", "expected"),
    [
        pytest.param(("no-store", ""), [None, "miss"], id="no-store"),
        pytest.param(("", "no-cache", ""), ["miss", "miss", "hit"], id="no-cache"),
        pytest.param(("", "max-age=0, no-cache"), ["miss", "miss"], id="several"),
        pytest.param(("", "max-age=60"), ["miss", "hit"], id="young-enough"),
        pytest.param(("", "max-age=x"), ["miss", "miss"], id="no-age"),
        pytest.param(("", "only-if-cached"), ["miss", "hit"], id="only-if-cached"),
    ],
)
def test_the_client_decides(demands: Sequence[str], expected: Sequence[str | None]) -> None:
    with run_gateway({"scripted": Scripted(HELLO)}, cached()) as gateway:
        seen = [ask(gateway.url, headers={"cache-control": one} if one else {}).cache for one in demands]
    assert seen == expected


def test_only_a_cached_answer_is_wanted() -> None:
    backend = Scripted(HELLO)
    with run_gateway({"scripted": backend}, cached()) as gateway:
        answer = post(gateway.url, "/v1/chat/completions", CHAT, {"cache-control": "only-if-cached"})
    assert (answer.status, backend.requests) == (504, [])


TURNED = replace(HELLO, candidates=(Candidate(content=(Text(text="No."),), finish=Finish(reason="refusal")),))
CUT: tuple[Event, ...] = (
    Started(id="a"),
    BlockStarted(part=Text(text="")),
    TextDelta("Hel"),
    Failed(failure=Failure(kind="upstream", message="broken")),
)


@pytest.mark.parametrize(
    ("turn", "more"),
    [
        pytest.param(Failure(kind="overloaded", message="no"), {}, id="failure"),
        pytest.param(CUT, {"stream": True}, id="broken-off"),
        pytest.param(TURNED, {}, id="refused-by-a-filter"),
        pytest.param(HELLO, {"store": True}, id="stored-by-the-upstream"),
        pytest.param(HELLO, {"tools": [{"type": "of_one_provider"}]}, id="tool-of-one-provider"),
        pytest.param(HELLO, {"web_search_options": {}}, id="hosted-tool"),
    ],
)
def test_what_is_not_cached(turn: Failure | Response | Sequence[Event], more: JSONObject) -> None:
    backend = Scripted(turn)
    with run_gateway({"scripted": backend}, cached()) as gateway:
        for _ in range(2):
            with suppress(IncompleteRead):
                post(gateway.url, "/v1/chat/completions", {**CHAT, **more})
    assert len(backend.requests) == 2


def test_answers_that_the_gateway_stores_are_not_cached() -> None:
    """Each has an id of its own."""
    backend = Scripted(HELLO)
    with run_gateway({"scripted": backend}, cached()) as gateway:
        ids = {
            json.loads(post(gateway.url, "/v1/responses", {"model": "m", "input": "Hi"}).body)["id"] for _ in range(2)
        }
    assert (len(ids), len(backend.requests)) == (2, 2)


def test_an_answer_that_is_too_large_is_not_cached() -> None:
    backend = Scripted(HELLO)
    with run_gateway({"scripted": backend}, cached(cache=CacheSettings(max_answer_bytes=20))) as gateway:
        assert [ask(gateway.url).cache for _ in range(2)] == ["miss", "miss"]


def test_only_some_models_are_cached() -> None:
    with run_gateway({"scripted": Scripted(HELLO)}, cached(cache=CacheSettings(models=("gpt-*",)))) as gateway:
        assert [ask(gateway.url).cache for _ in range(2)] == [None, None]
        assert [ask(gateway.url, model="gpt-5").cache for _ in range(2)] == ["miss", "hit"]


def test_a_hit_is_free_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """The client sees what the answer used when it was made; the log and the ledger, that nothing was used again."""
    caplog.set_level(logging.INFO, "xenoglot.access")
    prices = (PriceSettings(model="*", input="1", output="10"),)
    with run_gateway({"scripted": Scripted(HELLO)}, cached(prices=prices)) as gateway:
        path, body = "/v1/chat/completions", CHAT
        miss, hit = post(gateway.url, path, body), post(gateway.url, path, body)
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "xenoglot.access"]
    assert [(one["cache"], one["cost"]["amount"], one["cost"]["source"]) for one in lines] == [
        ("miss", 25, "own"),
        ("hit", 0, "cache"),
    ]
    assert [(one["usage"]["input_tokens"], one["tries"], one["target"]) for one in lines] == [(5, 1, "m"), (0, 0, "m")]
    assert json.loads(hit.body) == json.loads(miss.body)
    assert [one.headers["x-xenoglot-cost"] for one in (miss, hit)] == ["0.000025 USD", "0.000000 USD"]
    assert (hit.headers["age"], hit.headers["x-xenoglot-target"], "age" in miss.headers) == ("0", "scripted/m", False)


def test_hooks_see_cached_answers_too() -> None:
    """The cache has what the upstream answered, so each client's own values are restored."""
    backend = Scripted(
        replace(HELLO, candidates=(replace(HELLO.candidates[0], content=(Text(text="<EMAIL_ADDRESS_1>"),)),))
    )
    hooks = (HookSettings(use="redact"),)
    with run_gateway({"scripted": backend}, cached(hooks=hooks)) as gateway:
        asked = [[{"role": "user", "content": f"Who is {name}@x.org?"}] for name in ("ada", "bob")]
        seen = [ask(gateway.url, messages=messages) for messages in asked]
    assert [(one.text, one.cache) for one in seen] == [("ada@x.org", "miss"), ("bob@x.org", "hit")]


def test_losses_of_the_request_are_reported_again() -> None:
    with (
        Upstream(*answers("chat", text="Hello").rules()) as upstream,
        DialectGateway(upstream, cache={}) as gateway,
    ):
        body = {**BODIES["messages"], "model": "m", "top_k": 3}
        miss, hit = (post(gateway.url, "/v1/messages", body).headers for _ in range(2))
    assert (miss["x-xenoglot-cache"], hit["x-xenoglot-cache"]) == ("miss", "hit")
    assert "top_k" in hit["x-xenoglot-losses"]
    assert hit["x-xenoglot-losses"] == miss["x-xenoglot-losses"]
