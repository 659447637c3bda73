"""Hooks of a served gateway: what clients and upstreams get of what they change, reject and fail at."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.running_gateway import config_for, run_gateway
from tests.gateway.scripted_backends import CHAT, HELLO, MESSAGES, PATHS
from tests.hooks import user_hooks
from xenoglot.backends.scripted import Scripted
from xenoglot.hooks.hook import HookSettings
from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, Finished, Started, TextDelta, UsageReported
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    from tests.gateway.running_gateway import GatewayResponse
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject

STREAM: tuple[Event, ...] = (
    Started(id="answer-1", model="m", created=1),
    BlockStarted(part=Text(text="")),
    TextDelta("Hel"),
    TextDelta("lo"),
    BlockEnded(),
    UsageReported(usage=Usage(input_tokens=5, output_tokens=2)),
    Finished(finish=Finish(reason="stop")),
)


def hook(use: str, **settings: object) -> HookSettings:
    return HookSettings(use=use if ":" in use else f"tests.hooks.user_hooks:{use}", **settings)  # type: ignore[arg-type]


def ask(
    *hooks: HookSettings, body: JSONObject = CHAT, path: str = "/v1/chat/completions"
) -> tuple[GatewayResponse, Scripted]:
    """What a client gets, and the upstream that was or was not asked."""
    backend = Scripted(STREAM if body.get("stream") else HELLO)
    with run_gateway({"scripted": backend}, config_for("scripted", hooks=hooks)) as gateway:
        return gateway.request("POST", path, body), backend


def text(response: GatewayResponse) -> Any:  # noqa: ANN401  JSON
    """The text of an answer of `chat`, whole or streamed."""
    if not response.headers["content-type"].startswith("text/event-stream"):
        return response.json["choices"][0]["message"]["content"]
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks(response) if chunk["choices"])


def chunks(response: GatewayResponse) -> list[Any]:
    lines = response.body.decode().split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


STREAMED: JSONObject = {**CHAT, "stream": True}


@pytest.mark.parametrize("body", [CHAT, STREAMED], ids=["whole", "stream"])
def test_a_request_is_changed_before_it_is_sent(body: JSONObject, caplog: pytest.LogCaptureFixture) -> None:
    """The name of the model and the form of the answer stay what the client wants."""
    caplog.set_level(logging.INFO, "xenoglot.access")
    answer, backend = ask(hook("AddSystem"), body=body)
    (sent,) = backend.requests
    assert (text(answer), sent.messages[0], sent.model, sent.stream) == (
        "Hello",
        user_hooks.SYSTEM,
        "m",
        bool(body.get("stream")),
    )
    (line,) = [json.loads(one.getMessage()) for one in caplog.records if one.name == "xenoglot.access"]
    assert line["tags"] == {"by": "AddSystem"}


@pytest.mark.parametrize("body", [CHAT, STREAMED], ids=["whole", "stream"])
def test_an_answer_is_changed_and_its_usage_is_not(body: JSONObject, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "xenoglot.access")
    answer, _ = ask(hook("Shout"), body=body)
    assert text(answer) == "HELLO"
    (line,) = [json.loads(one.getMessage()) for one in caplog.records if one.name == "xenoglot.access"]
    assert (line["usage"]["input_tokens"], line["usage"]["output_tokens"], line["finish"]) == (5, 2, "stop")


def test_events_that_are_held_back_come_in_one() -> None:
    answer, _ = ask(hook("HoldBack"), body=STREAMED)
    pieces = [chunk["choices"][0]["delta"].get("content") for chunk in chunks(answer) if chunk["choices"]]
    assert [piece for piece in pieces if piece] == ["Hello"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_rejected_answer_is_an_error_of_the_dialect(path: str, stream: bool) -> None:  # noqa: FBT001
    """A stream is held back for a hook that only sees whole answers, so that nothing of it is sent."""
    answer, backend = ask(hook("RejectAnswers"), body={**PATHS[path], "stream": stream}, path=path)
    assert (answer.status, len(backend.requests)) == (404, 1)
    assert answer.json["error"]["message"] == "not this answer"


def test_a_stream_that_is_rejected_late_ends_in_an_error() -> None:
    answer, _ = ask(hook("RejectEnds"), body={**MESSAGES, "stream": True}, path="/v1/messages")
    assert (answer.status, answer.truncated) == (200, True)
    last = json.loads(answer.body.decode().rstrip().split("data: ")[-1])
    assert (last["type"], last["error"]["message"]) == ("error", "too late")
    assert b"Hel" in answer.body


@pytest.mark.parametrize("where", ["before_request", "on_event", "after_response"])
@pytest.mark.parametrize("how", ["raises", "wrong value", "is slow"])
def test_a_hook_that_fails(where: str, how: str, caplog: pytest.LogCaptureFixture) -> None:
    seconds = 0.05 if how == "is slow" else 60.0
    broken = hook("Broken", options={"where": where, "how": how}, timeout_seconds=seconds)
    answer, backend = ask(broken)
    assert (answer.status, len(backend.requests)) == (500, where != "before_request")
    assert "a hook of the gateway failed" in answer.json["error"]["message"]
    assert "broken" not in answer.body.decode()
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "`tests.hooks.user_hooks:Broken`" in logged
    assert ("ValueError: my hook is broken" in logged) is (how == "raises")
    passing = hook("Broken", options={"where": where, "how": how}, timeout_seconds=seconds, on_failure="pass")
    assert text(ask(passing)[0]) == "Hello"


def test_the_last_hook_sees_the_answer_first() -> None:
    """It sees what those after it made: here, the words that were there before `Shout`."""
    first = HookSettings(use="deny_list", options={"words": ["hello"], "answers": True})
    last = hook("Shout")
    assert ask(first, last)[0].status == 403
    case = HookSettings(use="deny_list", options={"words": (), "patterns": ["(?-i:Hello)"], "answers": True})
    assert text(ask(case, last)[0]) == "HELLO"
    assert ask(last, case)[0].status == 403


def test_a_hook_is_for_some_models_only() -> None:
    deny = HookSettings(use="deny_list", options={"words": ["Hi"]}, models=("gpt-*",))
    assert ask(deny)[0].status == 200
    assert ask(deny, body={**CHAT, "model": "gpt-5"})[0].status == 403


def test_a_rejected_request_reaches_no_upstream() -> None:
    deny = HookSettings(use="deny_list", options={"words": ["Hi"], "message": "Ask for something else."})
    answer, backend = ask(deny, body=MESSAGES, path="/v1/messages")
    assert (answer.status, answer.json["error"], backend.requests) == (
        403,
        {"type": "permission_error", "message": "Ask for something else."},
        [],
    )


def test_counting_tokens_sends_what_the_hooks_leave() -> None:
    deny = HookSettings(use="deny_list", options={"words": ["Hi"]})
    assert ask(deny, body=CHAT, path="/v1/messages/count_tokens")[0].status == 403
