"""Several targets behind one name, over HTTP: when another takes over, what the client sees of it, what is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.running_gateway import config_for, read_all, read_until
from tests.gateway.scripted_backends import CHAT, FIRST_EVENTS, HELLO, MESSAGES, BlockingBackend
from tests.gateway.test_faults import post
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config.settings import ModelSettings, ServerSettings, UpstreamSettings
from xenoglot.gateway.config.targets import Caps, ModelTarget, StreamBuffer
from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, Failed, Finished, Started, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message, Sampling
from xenoglot.model.response import Finish, Usage
from xenoglot.policy.capabilities import RequestCondition
from xenoglot.policy.target_health import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.gateway.running_gateway import AccessLines, GatewayResponse, RunningGateway
    from xenoglot.backends.backend import ByteAnswer, Call
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject

BUSY = Failure(kind="overloaded", message="busy", status=503)
WRONG = Failure(kind="invalid_request", message="no", status=400)
CUT = Failed(failure=Failure(kind="upstream", message="connection lost: the upstream closed it", cause="closed"))
STREAM: JSONObject = {**CHAT, "stream": True}


class Continuing(Scripted):
    """A scripted backend that goes on with a turn that has begun."""

    def continues(self, _model: str) -> bool:
        """Say so."""
        return True


def configured(*targets: ModelTarget, **settings: object) -> Config:
    """Return a configuration with the upstreams `a` and `b`, none of which is tried twice."""
    upstream = UpstreamSettings(dialect="chat", base_url="http://upstream.invalid/v1", retry=Retry(attempts=1))
    ways = targets or (ModelTarget(upstream="a", model="one"), ModelTarget(upstream="b", model="two"))
    model = replace(ModelSettings(name="m", targets=ways, strategy="ordered"), **settings)
    return config_for(upstreams={"a": upstream, "b": upstream}, models=(model,))


def words(answer: GatewayResponse) -> str:
    """Return the words of a chat stream."""
    frames = [line[6:] for line in answer.body.split(b"\n\n") if line.startswith(b"data: {")]
    choices = [choice for frame in frames for choice in json.loads(frame).get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(BUSY, id="refused"),
        pytest.param((CUT,), id="broken-at-once"),
        pytest.param((Started(id="x", model="x", created=1), CUT), id="U13-broken-as-it-began"),
    ],
)
def test_another_takes_over_before_the_first_byte(
    gateway_server: Callable[..., RunningGateway],
    access_lines: AccessLines,
    first: Failure | Sequence[Event],
    stream: bool,  # noqa: FBT001  a case
) -> None:
    begun_in_its_own_batch = stream and not isinstance(first, Failure) and len(first) > 1
    running = gateway_server({"a": Scripted(first), "b": Scripted(HELLO)}, configured())
    answer = running.request("POST", "/v1/chat/completions", {**CHAT, "stream": stream})
    line = access_lines.next()
    if begun_in_its_own_batch:  # the client has its beginning: see `hold_back`
        assert (answer.truncated, line["target"], line["tries"]) == (True, "one", 1)
        return
    assert (answer.status, answer.headers["x-xenoglot-target"], answer.truncated) == (200, "b/two", False)
    assert (line["backend"], line["target"], line["tries"], line["failure"]) == ("b", "two", 2, None)
    assert (words(answer) if stream else answer.json["choices"][0]["message"]["content"]) == "Hello"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_k04_all_are_down(gateway_server: Callable[..., RunningGateway], path: str) -> None:
    running = gateway_server({"a": Scripted(WRONG, BUSY), "b": Scripted(BUSY)}, configured())
    refused = running.request("POST", path, MESSAGES)
    assert (refused.status, refused.headers["x-xenoglot-target"]) == (400, "a/one")
    down = running.request("POST", path, MESSAGES)
    assert down.status == (529 if path == "/v1/messages" else 503)
    assert (down.headers["x-xenoglot-target"], down.headers["x-should-retry"]) == ("b/two", "false")


def test_u13_nobody_takes_over_once_the_client_has_words(gateway_server: Callable[..., RunningGateway]) -> None:
    second = Scripted(HELLO)
    running = gateway_server({"a": Scripted((*FIRST_EVENTS, CUT)), "b": second}, configured())
    answer = running.request("POST", "/v1/chat/completions", STREAM)
    assert (words(answer), answer.truncated, second.requests) == ("Hel", True, [])


def test_what_is_held_back_can_still_be_taken_over(gateway_server: Callable[..., RunningGateway]) -> None:
    hold_back = StreamBuffer(seconds=3600.0)
    running = gateway_server({"a": Scripted((*FIRST_EVENTS, CUT)), "b": Scripted(HELLO)}, configured(buffer=hold_back))
    answer = running.request("POST", "/v1/chat/completions", STREAM)
    assert (words(answer), answer.truncated) == ("Hello", False)


def test_no_more_is_held_back_than_is_said(gateway_server: Callable[..., RunningGateway]) -> None:
    hold_back = StreamBuffer(seconds=3600.0, bytes=3)
    running = gateway_server({"a": Scripted((*FIRST_EVENTS, CUT)), "b": Scripted(HELLO)}, configured(buffer=hold_back))
    answer = running.request("POST", "/v1/chat/completions", STREAM)
    assert (words(answer), answer.truncated) == ("Hel", True)


STORY = "Once upon a time there was a fox. "
FIRST = (
    Started(id="x", model="x", created=1),
    UsageReported(usage=Usage(input_tokens=5, output_tokens=8)),
    BlockStarted(part=Text(text="")),
    TextDelta(text=STORY),
    CUT,
)


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        pytest.param(("It ran.",), STORY + "It ran.", id="goes-on"),
        pytest.param((STORY[-12:] + "It ran.",), STORY + "It ran.", id="the-overlap-is-trimmed"),
        pytest.param((STORY[-12:-6], STORY[-6:], "It ran."), STORY + "It ran.", id="in-pieces"),
        pytest.param((" It ran.",), STORY + " It ran.", id="what-is-the-same-by-chance-stays"),
        pytest.param((STORY[-9:],), STORY, id="nothing-new"),
    ],
)
def test_another_goes_on(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines, rest: Sequence[str], told: str
) -> None:
    following = Continuing(
        (
            Started(id="y", model="y", created=2),
            BlockStarted(part=Text(text="")),
            *(TextDelta(text=text) for text in rest),
            BlockEnded(),
            UsageReported(usage=Usage(input_tokens=13, output_tokens=3)),
            Finished(finish=Finish(reason="stop")),
        )
    )
    running = gateway_server({"a": Scripted(FIRST), "b": following}, configured(midstream_failover=True))
    answer = running.request("POST", "/v1/chat/completions", {**STREAM, "max_tokens": 100})
    line = access_lines.next()
    assert (words(answer), answer.truncated, answer.body.endswith(b"data: [DONE]\n\n")) == (told, False, True)
    assert (line["usage"]["input_tokens"], line["usage"]["output_tokens"], line["failure"]) == (18, 11, None)
    asked = following.requests[0]
    assert asked.messages[-1] == Message(role="assistant", content=(Text(text=STORY),))
    assert (asked.model, asked.sampling.max_tokens) == ("two", 92)


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(Scripted(HELLO), id="that-answers-and-does-not-go-on"),
        pytest.param(Continuing(BUSY), id="that-is-busy"),
    ],
)
def test_where_nobody_can_go_on_the_stream_fails(
    gateway_server: Callable[..., RunningGateway], second: Scripted
) -> None:
    running = gateway_server({"a": Scripted(FIRST), "b": second}, configured(midstream_failover=True))
    answer = running.request("POST", "/v1/chat/completions", STREAM)
    assert (words(answer), answer.truncated, b"[DONE]" in answer.body) == (STORY, True, False)


class Refusing(BlockingBackend):
    """Takes its time to find out that there will be no answer."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def answer(self, _call: Call) -> ByteAnswer:
        """Hang, and refuse."""
        await self._hang()
        raise self._error


def test_pitfall_108_an_answer_that_began_early_has_one_beginning(
    gateway_server: Callable[..., RunningGateway],
) -> None:
    first = Refusing(FailureError(BUSY))
    config = replace(configured(), server=ServerSettings(ping_interval=0.01))
    running = gateway_server({"a": first, "b": Scripted(HELLO)}, config)
    with running.connect() as connection:
        asked = {"model": "m", "input": "Hi", "store": False, "stream": True}
        connection.sendall(post("/v1/responses", asked, "Connection: close"))
        heard = read_until(connection, b"response.in_progress")
        first.called.wait()
        first.resume()
        heard += read_all(connection)
    told = [json.loads(line[6:]) for line in heard.splitlines() if line.startswith(b"data: {")]
    answers = [event["response"] for event in told if "response" in event]
    assert [event["type"] for event in told].count("response.created") == 1
    assert {(answer["id"], answer["model"]) for answer in answers} == {(answers[0]["id"], "one")}
    assert (told[-1]["type"], answers[0]["id"] != HELLO.id) == ("response.completed", True)
    assert b"x-xenoglot-losses: $ id approximated" in heard


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_what_is_refused_behind_a_sign_of_life_is_told(
    gateway_server: Callable[..., RunningGateway], path: str
) -> None:
    backend = Refusing(WireError("$.n", "one answer at a time"))
    upstream = UpstreamSettings(dialect="chat", base_url="http://upstream.invalid/v1")
    config = config_for("a", upstreams={"a": upstream}, server=ServerSettings(ping_interval=0.01))
    running = gateway_server({"a": backend}, config)
    with running.connect() as connection:
        connection.sendall(post(path, STREAM | {"input": "Hi", "store": False}))
        heard = read_until(connection, b"\n\n" if path.endswith("completions") else b"in_progress")
        backend.called.wait()
        backend.resume()
        heard += read_all(connection)
    assert b"one answer at a time" in heard
    assert not heard.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("targets", [1, 2])
def test_nobody_is_named_who_may_not_answer(gateway_server: Callable[..., RunningGateway], targets: int) -> None:
    first = BlockingBackend()
    ways = (ModelTarget(upstream="a", model="one"), ModelTarget(upstream="b", model="two"))[:targets]
    config = replace(configured(*ways), server=ServerSettings(ping_interval=0.01))
    running = gateway_server({"a": first, "b": Scripted(HELLO)}, config)
    with running.connect() as connection:
        connection.sendall(post("/v1/chat/completions", STREAM))
        heard = read_until(connection, b": ping\n\n")
        first.called.wait()
    assert (b"x-xenoglot-target: a/one" in heard) is (targets == 1)


def test_losses_of_who_did_not_answer_are_not_told(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines
) -> None:
    targets = (
        ModelTarget(upstream="a", model="one", caps=Caps(max_tokens=10)),
        ModelTarget(upstream="b", model="two", caps=Caps(max_tokens=20)),
    )
    running = gateway_server({"a": Scripted(BUSY), "b": Scripted(HELLO)}, configured(*targets))
    answer = running.request("POST", "/v1/chat/completions", {**CHAT, "max_tokens": 50})
    loss = "$.sampling max_tokens approximated (20 is the most here)"
    assert (answer.headers["x-xenoglot-losses"], access_lines.next()["losses"]) == (loss, [loss])


class Counter(Scripted):
    """Counts, or fails to."""

    def __init__(self, counted: int | Failure | None) -> None:
        super().__init__(HELLO)
        self.counted = counted
        self.keys: list[int] = []

    async def count(self, call: Call) -> int | None:
        """Say what it is to say."""
        self.keys.append(call.key)
        if isinstance(self.counted, Failure):
            raise FailureError(self.counted)
        return self.counted


DOWN = Failure(
    kind="upstream", message="connection error: the upstream cannot be reached", cause="connect", not_sent=True
)


@pytest.mark.parametrize(
    ("first", "second", "status", "how", "target"),
    [
        pytest.param(7, 8, 200, "exact", "one", id="the-first"),
        pytest.param(None, 8, 200, "estimate", "one", id="the-first-has-no-tokenizer"),
        pytest.param(DOWN, 8, 200, "exact", "two", id="U01-the-first-is-down"),
        pytest.param(BUSY, 8, 200, "exact", "two", id="U38-the-first-is-busy"),
        pytest.param(BUSY, None, 200, "estimate", "two", id="the-second-has-no-tokenizer"),
        pytest.param(DOWN, DOWN, 200, "estimate", "two", id="K04-all-are-down"),
        pytest.param(BUSY, BUSY, 529, None, "two", id="K04-all-are-busy"),
        pytest.param(WRONG, 8, 400, None, "one", id="the-request-is-at-fault"),
    ],
)
def test_tokens_are_counted_by_who_can_be_asked(  # noqa: PLR0913, PLR0917  a case
    gateway_server: Callable[..., RunningGateway],
    access_lines: AccessLines,
    first: int | Failure | None,
    second: int | Failure | None,
    status: int,
    how: str | None,
    target: str,
) -> None:
    running = gateway_server({"a": Counter(first), "b": Counter(second)}, configured())
    answer = running.request("POST", "/v1/messages/count_tokens", MESSAGES)
    assert (answer.status, answer.headers.get("x-xenoglot-count")) == (status, how)
    assert access_lines.next()["target"] == target


def test_a_condition_and_what_a_target_says_for_itself(gateway_server: Callable[..., RunningGateway]) -> None:
    first, second = Scripted(HELLO), Scripted(HELLO)
    targets = (
        ModelTarget(upstream="a", model="one", when=RequestCondition(needs=("tools",))),
        ModelTarget(upstream="b", model="two", defaults=Sampling(temperature=0.5), caps=Caps(max_tokens=10)),
    )
    config = configured(*targets, defaults=Sampling(temperature=1.0, top_p=0.9))
    running = gateway_server({"a": first, "b": second}, config)
    answer = running.request("POST", "/v1/chat/completions", {**CHAT, "max_tokens": 50})
    assert answer.headers["x-xenoglot-losses"] == "$.sampling max_tokens approximated (10 is the most here)"
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    running.request("POST", "/v1/chat/completions", {**CHAT, "tools": [tool]})
    assert [(asked.model, asked.sampling) for asked in (*first.requests, *second.requests)] == [
        ("one", Sampling(temperature=1.0, top_p=0.9)),
        ("two", Sampling(temperature=0.5, top_p=0.9, max_tokens=10)),
    ]


class Blind(Scripted):
    """A scripted backend of which it is known that it sees no pictures."""

    def missing_capabilities(self, _model: str) -> frozenset[str]:
        """Say so."""
        return frozenset({"images"})


def test_a_target_that_cannot_is_passed_over(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server({"a": Blind(HELLO), "b": Scripted(HELLO)}, configured())
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    asked = {**CHAT, "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, image]}]}
    targets = [
        running.request("POST", "/v1/chat/completions", body).headers["x-xenoglot-target"] for body in (CHAT, asked)
    ]
    assert targets == ["a/one", "b/two"]


def test_an_unknown_model_has_a_suggestion_that_the_client_may_use(
    gateway_server: Callable[..., RunningGateway],
) -> None:
    config = configured(name="large-model")
    running = gateway_server({"a": Scripted(HELLO), "b": Scripted(HELLO)}, config)
    answered = running.request("POST", "/v1/chat/completions", {**CHAT, "model": "lrage-model"})
    assert answered.status == 404
    assert "the model `lrage-model` does not exist here; did you mean `large-model`?" in answered.body.decode()
    own = Principal(owner="team", tenant="team", models=("small-*",))
    with pytest.raises(FailureError, match="GET /v1/models says which do"):
        running.gateway.models.plan("lrage-model", client=own)
