"""The helpers of the SDKs: answers parsed into types, loops of tools, betas, and clients that try again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anthropic
import openai
import pytest
from anthropic import beta_tool
from pydantic import BaseModel

from tests.matrix.case import (
    HELLO,
    HI,
    Answer,
    assistant,
    call,
    chat_usage,
    choice,
    delta,
    function,
    last_usage,
    message,
    start,
    stop,
    stream_body,
    text,
    text_block,
    tool,
    user,
    whole_body,
)
from tests.matrix.matrix_gateway import DIALECTS, MatrixGateway, model
from tests.matrix.sdk import SyncChat, SyncMessages
from tests.matrix.test_matrix import upstream_headers
from tests.matrix.test_refusals import raised
from tests.matrix.upstream import Reply, json_reply, stream_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSON, JSONObject


class Place(BaseModel):
    """What is asked for."""

    city: str
    people: int


PLACE = '{"city":"Rome","people":2800000}'
ANSWERS: dict[str, Answer] = {
    "chat": Answer(
        choice({"content": PLACE}, usage=chat_usage(5, 9)),
        (
            delta(role="assistant", content=PLACE[:9]),
            delta(content=PLACE[9:]),
            delta("stop"),
            last_usage(chat_usage(5, 9)),
        ),
    ),
    "messages": Answer(
        message(text(PLACE), usage={"input_tokens": 5, "output_tokens": 9}),
        (
            start({"input_tokens": 5, "output_tokens": 1}),
            *text_block(0, PLACE[:9], PLACE[9:]),
            *stop("end_turn", {"output_tokens": 9}),
        ),
    ),
}
PROPERTIES = {"city": {"title": "City", "type": "string"}, "people": {"title": "People", "type": "integer"}}


@pytest.fixture
def chat(matrix_gateway: MatrixGateway) -> Iterator[SyncChat]:
    """Give openai."""
    client = SyncChat(matrix_gateway.url)
    yield client
    client.close()


@pytest.fixture
def messages(matrix_gateway: MatrixGateway) -> Iterator[SyncMessages]:
    """Give anthropic."""
    client = SyncMessages(matrix_gateway.url)
    yield client
    client.close()


def upstream_schema(upstream: str, body: JSONObject) -> JSON:
    """Return the schema that an upstream was told to keep to."""
    if upstream == "chat":
        return body["response_format"]["json_schema"]["schema"]
    return body["output_config"]["format"]["schema"]


@pytest.mark.parametrize("upstream", DIALECTS)
def test_openai_parses(upstream: str, matrix_gateway: MatrixGateway, chat: SyncChat) -> None:
    server = matrix_gateway.upstreams[upstream]
    server.script(json_reply(whole_body(upstream, ANSWERS[upstream].whole)))
    parsed = chat.client.chat.completions.parse(model=model(upstream), response_format=Place, **HI["chat"])
    assert parsed.choices[0].message.parsed == Place(city="Rome", people=2_800_000)
    server.script(stream_reply(stream_body(upstream, ANSWERS[upstream].stream)))
    with chat.client.chat.completions.stream(model=model(upstream), response_format=Place, **HI["chat"]) as stream:
        streamed = stream.get_final_completion()
    assert streamed.choices[0].message.parsed == Place(city="Rome", people=2_800_000)
    told = [upstream_schema(upstream, request.json) for request in server.received()]
    schema = {"type": "object", "title": "Place", "description": "What is asked for.", "properties": PROPERTIES}
    assert told == [schema | {"required": ["city", "people"], "additionalProperties": False}] * 2


@pytest.mark.parametrize("upstream", DIALECTS)
def test_anthropic_parses(upstream: str, matrix_gateway: MatrixGateway, messages: SyncMessages) -> None:
    server = matrix_gateway.upstreams[upstream]
    server.script(json_reply(whole_body(upstream, ANSWERS[upstream].whole)))
    parsed = messages.client.messages.parse(model=model(upstream), output_format=Place, **HI["messages"])
    assert parsed.parsed_output == Place(city="Rome", people=2_800_000)
    server.script(stream_reply(stream_body(upstream, ANSWERS[upstream].stream)))
    with messages.client.messages.stream(model=model(upstream), output_format=Place, **HI["messages"]) as stream:
        streamed = stream.get_final_message()
    assert streamed.parsed_output == Place(city="Rome", people=2_800_000)
    told = [upstream_schema(upstream, request.json) for request in server.received()]
    schema = {"type": "object", "title": "Place", "description": "What is asked for.", "properties": PROPERTIES}
    assert told == [schema | {"required": ["city", "people"], "additionalProperties": False}] * 2


@pytest.mark.parametrize("upstream", DIALECTS)
def test_betas_reach_their_own_dialect_alone_pitfall_125(
    upstream: str, matrix_gateway: MatrixGateway, messages: SyncMessages
) -> None:
    matrix_gateway.upstreams[upstream].script(json_reply(whole_body(upstream, HELLO[upstream].whole)))
    answer = messages.client.beta.messages.create(
        model=model(upstream), betas=["interleaved-thinking-2025-05-14", "made-up-2026-01-01"], **HI["messages"]
    )
    (received,) = matrix_gateway.upstreams[upstream].received()
    betas = {"anthropic-beta": "interleaved-thinking-2025-05-14,made-up-2026-01-01"} if upstream == "messages" else {}
    assert received.lasting == upstream_headers("messages", upstream, "whole") | betas
    assert [block.type for block in answer.content] == ["text"]


@beta_tool
def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    return f"Sun in {city}"


def test_a_loop_of_tools_without_threads(
    matrix_gateway: MatrixGateway, messages: SyncMessages, lines: AccessLines
) -> None:
    """The SDK begins with a message thread, is told that there are none, and sends the whole history from then on."""
    upstream = matrix_gateway.upstreams["chat"]
    calling = choice({"content": None, "tool_calls": [call("call_1", "weather", '{"city":"Rome"}')]}, "tool_calls")
    upstream.script(json_reply(whole_body("chat", calling)), json_reply(whole_body("chat", HELLO["chat"].whole)))
    runner = messages.client.beta.messages.tool_runner(model=model("chat"), tools=[weather], **HI["messages"])
    final = runner.until_done()
    told = [request.json for request in upstream.received()]
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "title": "City", "description": "Where."}},
        "required": ["city"],
        "additionalProperties": False,
    }
    first = {
        "model": model("chat"),
        "messages": [user("Hi")],
        "tools": [function("weather", schema, description="Tell the weather.")],
        "max_tokens": 64,
    }
    loop = [assistant("", tool_calls=[call("call_1", "weather", '{"city":"Rome"}')]), tool("call_1", "Sun in Rome")]
    assert told == [first, first | {"messages": [user("Hi"), *loop]}]
    assert [block.text for block in final.content if block.type == "text"] == ["Hello"]
    assert [lines.next()["status"] for _ in range(3)] == [400, 200, 200]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the seconds that the SDKs would have waited before they tried again; they do not wait."""
    noted: list[float] = []
    for base in (openai._base_client.BaseClient, anthropic._base_client.BaseClient):
        usual = base._calculate_retry_timeout

        def calculated(self: object, *arguments: object, usual: Callable[..., float] = usual) -> float:
            noted.append(usual(self, *arguments))
            return 0.0

        monkeypatch.setattr(base, "_calculate_retry_timeout", calculated)
    return noted


def limited(upstream: str, seconds: str) -> Reply:
    """Return a refusal that asks to come again."""
    bodies: dict[str, JSONObject] = {
        "chat": {"error": {"message": "Slow down", "type": "requests", "code": "rate_limit_exceeded"}},
        "messages": {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}},
    }
    return json_reply(bodies[upstream], 429, (("retry-after", seconds),))


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_clients_wait_as_long_as_the_upstream_says(
    speaks: str, upstream: str, matrix_gateway: MatrixGateway, waits: list[float]
) -> None:
    """The gateway itself tries nothing twice: the client does, once for each of its requests."""
    client = (
        SyncChat(matrix_gateway.url, max_retries=2)
        if speaks == "chat"
        else SyncMessages(matrix_gateway.url, max_retries=2)
    )
    answer = json_reply(whole_body(upstream, HELLO[upstream].whole))
    matrix_gateway.upstreams[upstream].script(limited(upstream, "3"), limited(upstream, "9000"), answer)
    client.create(model=model(upstream), **HI[speaks])
    client.close()
    assert len(matrix_gateway.upstreams[upstream].received()) == client.tap.exchanges == 3
    assert waits == [3.0, 60.0]


@pytest.mark.parametrize("speaks", DIALECTS)
def test_clients_do_not_insist_on_what_is_futile(
    speaks: str, matrix_gateway: MatrixGateway, waits: list[float]
) -> None:
    """`x-should-retry: false` keeps them from asking again, even after a 409, which they would by themselves."""
    client = (
        SyncChat(matrix_gateway.url, max_retries=2)
        if speaks == "chat"
        else SyncMessages(matrix_gateway.url, max_retries=2)
    )
    matrix_gateway.upstreams["chat"].script(
        json_reply({"error": {"message": "Busy", "type": "invalid_request_error"}}, 409)
    )
    raised(lambda: client.create(model=model("chat"), **HI[speaks]))
    client.close()
    assert (len(matrix_gateway.upstreams["chat"].received()), client.tap.exchanges, waits) == (1, 1, [])
