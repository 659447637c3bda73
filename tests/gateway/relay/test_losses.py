"""Losses told to a client: in the header what is known when the answer begins, behind a stream what came later."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anthropic
import httpx2
import openai
import pytest

from tests.gateway.running_gateway import TIMEOUT, AccessLines, RunningGateway, config_for
from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, PATHS, Backend
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.observability.request_log import LONGEST_TELLING
from xenoglot.model.content import Extra
from xenoglot.model.events import BlockEnded, Finished, Started, UsageReported
from xenoglot.model.response import Finish, Usage
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.backends.backend import Call
    from xenoglot.model.json import JSON, JSONObject

HEADER = "x-xenoglot-losses"
EARLY = "$.usage odd dropped (only alien has it)"
LATE = "$.candidates[0] later dropped (only alien has it)"
USAGE = Usage(input_tokens=1, output_tokens=1, extra=Extra(dialect="alien", fields={"odd": 1}))
FINISHED = Finished(finish=Finish(reason="stop"), extra=Extra(dialect="alien", fields={"later": 1}))
STREAM = (*FIRST_EVENTS, BlockEnded(), UsageReported(usage=Usage(input_tokens=1, output_tokens=1)), FINISHED)


def backend_with_unknown_field() -> Scripted:
    """Answer with a field that nobody here knows."""
    return Scripted((*FIRST_EVENTS, BlockEnded(), UsageReported(usage=USAGE), FINISHED))


@pytest.mark.parametrize("path", PATHS)
def test_the_header_of_a_whole_answer_tells_what_the_answer_lost(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines, path: str
) -> None:
    running = gateway_server({"scripted": backend_with_unknown_field()})
    told = running.request("POST", path, PATHS[path]).headers[HEADER]
    assert sorted(told.split("; ")) == sorted([EARLY, LATE])
    assert sorted(access_lines.next()["losses"]) == sorted([EARLY, LATE])


@pytest.mark.parametrize("path", PATHS)
def test_what_a_stream_loses_behind_its_head_is_a_comment_at_its_end(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines, path: str
) -> None:
    running = gateway_server({"scripted": Scripted(STREAM)})
    answer = running.request("POST", path, {**PATHS[path], "stream": True})
    assert HEADER not in answer.headers
    assert answer.body.endswith(f"\n\n: {HEADER}: {LATE}\n\n".encode())
    assert answer.body.count(HEADER.encode()) == 1
    assert access_lines.next()["losses"] == [LATE]


@pytest.mark.parametrize("path", PATHS)
def test_a_loss_that_the_header_told_is_not_told_again(
    gateway_server: Callable[..., RunningGateway], path: str
) -> None:
    begun = Started(id="1", model="m", created=1, extra=Extra(dialect="alien", fields={"soon": 1}))
    running = gateway_server({"scripted": Scripted((begun, *STREAM[1:]))})
    answer = running.request("POST", path, {**PATHS[path], "stream": True})
    soon = "$ soon dropped (only alien has it)"
    if HEADER in answer.headers:
        assert answer.headers[HEADER] == soon
        assert answer.body.endswith(f": {HEADER}: {LATE}\n\n".encode())
    else:  # a dialect that holds its first event back writes it behind the head
        assert answer.body.endswith(f": {HEADER}: {soon}; {LATE}\n\n".encode())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_what_is_ignored_is_not_told(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines, path: str, *, stream: bool
) -> None:
    running = gateway_server({"scripted": backend_with_unknown_field()}, config_for("scripted", on_loss="ignore"))
    answer = running.request("POST", path, {**PATHS[path], "stream": stream})
    assert (HEADER in answer.headers, HEADER.encode() in answer.body) == (False, False)
    assert access_lines.next()["losses"] == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_an_answer_is_not_held_back_for_what_it_loses(
    gateway_server: Callable[..., RunningGateway], path: str, *, stream: bool
) -> None:
    running = gateway_server({"scripted": backend_with_unknown_field()}, config_for("scripted", on_loss="refuse"))
    answer = running.request("POST", path, {**PATHS[path], "stream": stream})
    assert (answer.status, b"Hel" in answer.body) == (200, True)
    assert LATE in answer.headers.get(HEADER, "") + answer.body.decode()


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_that_loses_nothing_says_nothing(gateway_server: Callable[..., RunningGateway], path: str) -> None:
    running = gateway_server({"scripted": Scripted(HELLO)})
    for stream in (False, True):
        answer = running.request("POST", path, {**PATHS[path], "stream": stream})
        assert (HEADER in answer.headers, HEADER.encode() in answer.body) == (False, False)


def test_many_losses_are_cut_short(gateway_server: Callable[..., RunningGateway]) -> None:
    many = Extra(dialect="alien", fields={f"field_{number}": 1 for number in range(200)})
    ending = (BlockEnded(), Finished(finish=Finish(reason="stop"), extra=many))
    running = gateway_server({"scripted": Scripted((*FIRST_EVENTS, *ending))})
    path = "/v1/chat/completions"
    answer = running.request("POST", path, {**PATHS[path], "stream": True})
    comment = answer.body.rpartition(b"\n\n: ")[2].strip().decode()
    *named, more = comment.removeprefix(f"{HEADER}: ").split("; ")
    assert named == [f"$.candidates[0] field_{number} dropped (only alien has it)" for number in range(len(named))]
    assert more == f"and {200 - len(named)} more"
    assert len("; ".join(named)) <= LONGEST_TELLING < len("; ".join([*named, named[0], named[0]]))


class Counting(Backend):
    """Count, and lose something on the way."""

    async def count(self, call: Call) -> int | None:
        """Return a number, if that is allowed."""
        call.losses.dropped("$.sampling", "seed", "there is none")
        call.losses.settle()
        return 7


@pytest.mark.parametrize(
    ("policy", "status", "told"),
    [
        ("warn", 200, "$.sampling seed dropped (there is none)"),
        ("ignore", 200, None),
        ("refuse", 400, None),
    ],
)
def test_a_count_is_told_what_it_loses_too(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines, policy: str, status: int, told: str | None
) -> None:
    running = gateway_server({"scripted": Counting()}, config_for("scripted", on_loss=policy))
    answer = running.request("POST", "/v1/messages/count_tokens", PATHS["/v1/messages"])
    assert (answer.status, answer.headers.get(HEADER)) == (status, told)
    assert (b"seed" in answer.body) == (policy == "refuse")
    assert access_lines.next()["losses"] == ([] if policy == "ignore" else ["$.sampling seed dropped (there is none)"])


SEARCH = {"web_search": {"executor": "searxng", "url": "http://127.0.0.1:1/search"}}
TURN: JSON = [{"role": "user", "content": "Hi"}]
IMAGE: JSON = {"type": "image", "source": {"type": "file", "file_id": "FILE", "odd": 1}, "odd": 1}


@pytest.mark.parametrize(
    ("path", "settings", "body"),
    [
        pytest.param(
            "/v1/messages",
            {"tools": SEARCH},
            {"messages": TURN, "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            id="tool",
        ),
        pytest.param(
            "/v1/messages",
            {"models": [{"name": "m", "upstream": "up", "caps": {"max_tokens": 5}}]},
            {"messages": TURN},
            id="cap",
        ),
        pytest.param("/v1/messages", {}, {"messages": [{"role": "user", "content": [IMAGE]}]}, id="file"),
        pytest.param(
            "/v1/messages/count_tokens", {}, {"messages": [{"role": "user", "content": [IMAGE]}]}, id="count-of-a-file"
        ),
    ],
)
@pytest.mark.parametrize("policy", ["warn", "refuse"])
def test_losses_of_the_gateway_itself_are_refused_before_anything_is_sent(
    path: str, settings: JSONObject, body: JSONObject, policy: str
) -> None:
    with (
        Upstream(*answers("messages", text="Hi").rules()) as upstream,
        DialectGateway(
            upstream, "messages", on_loss=policy, upstream={"target": {"hosted_tools": []}}, **settings
        ) as gateway,
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client,
    ):
        file = client.files.create(file=("a.png", b"\x89PNG\r\n\x1a\n"), purpose="user_data").id
        asked = json.dumps({"model": "m", "max_tokens": 9, **body}).replace("FILE", file)
        answer = httpx2.post(f"{gateway.url}{path}", content=asked, timeout=TIMEOUT)
        sent = len(upstream.requests)
    assert (answer.status_code, sent) == ((200, 1) if policy == "warn" else (400, 0)), answer.text
    assert answer.headers.get(HEADER) or policy == "refuse"


def test_openais_sdk_passes_over_the_comment(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server({"scripted": Scripted(STREAM)})
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:
        chunks = list(
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], stream=True)
        )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hel"
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_anthropics_sdk_passes_over_the_comment(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server({"scripted": Scripted(STREAM)})
    with (
        anthropic.Anthropic(base_url=running.url, api_key="none", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]) as stream,
    ):
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["text"]
    assert message.stop_reason == "end_turn"
