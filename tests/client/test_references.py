"""What the clients before this one did (C..), kept, and what they did wrong (C-W..), done right."""

import json
import math
from typing import Any

import pytest
from msgspec.structs import replace

from tests.client.server_scripts import (
    HELLO,
    HELLO_STREAMED,
    ONCE,
    chunk,
    error_answer,
    scripted_client,
    streamed,
    whole_answer,
)
from xenoglot.client.async_ import AsyncClient
from xenoglot.errors import (
    AuthenticationError,
    ConnectionFailedError,
    FailureError,
    IncompleteError,
    NotFoundError,
    OverloadedError,
    RateLimitError,
    UpstreamError,
)
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.events import Event, Finished, Started, TextDelta, UsageReported
from xenoglot.model.response import Usage
from xenoglot.testing import BROKEN, CUT, END, Body, Respond, ResponseHead, Send, Steps, Upstream

CALL: dict[str, Any] = {"id": "call_a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def call_chunk(index: int | None, text: str, name: str | None = None, identity: str | None = None) -> dict[str, object]:
    """A piece of a tool call."""
    where = {} if index is None else {"index": index}
    named = {} if name is None else {"id": identity, "type": "function"}
    return {
        "tool_calls": [where | named | {"function": ({} if name is None else {"name": name}) | {"arguments": text}}]
    }


@pytest.mark.parametrize(
    ("base", "path"),
    [
        pytest.param("/v1", "/v1/chat/completions", id="c1-with-a-version"),
        pytest.param("/v1/", "/v1/chat/completions", id="c1-with-a-slash"),
        pytest.param("", "/v1/chat/completions", id="c1-bare"),
        pytest.param("/api/paas/v4", "/api/paas/v4/chat/completions", id="c1-another-version"),
        pytest.param("/v1/chat/completions", "/v1/chat/completions", id="c1-whole"),
    ],
)
async def test_the_address(base: str, path: str) -> None:
    async with scripted_client(HELLO, path=base) as (client, server):
        await client.complete("Hi")
        assert [request.target for request in server.requests] == [path]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        pytest.param({"content": None}, "", id="c2-nothing"),
        pytest.param({"content": "a"}, "a", id="c2-string"),
        pytest.param({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", id="c2-parts"),
    ],
)
async def test_the_text(message: dict[str, object], text: str) -> None:
    async with scripted_client(whole_answer(message)) as (client, _):
        assert (await client.complete("Hi")).text == text


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        pytest.param({"tool_calls": [CALL]}, [("call_a", "add", '{"a": 1}')], id="c11-call"),
        pytest.param(
            {"function_call": {"name": "add", "arguments": "{}"}}, [(None, "add", "{}")], id="c11-legacy-function-call"
        ),
        pytest.param(
            {"tool_calls": [CALL | {"function": {"name": "add", "arguments": "{nonsense"}}]},
            [("call_a", "add", "{nonsense")],
            id="c-w12-bad-arguments-are-kept-for-the-loop",
        ),
        pytest.param(
            {"tool_calls": [{"type": "function", "function": {"name": "add", "arguments": ""}}]},
            [(None, "add", "")],
            id="c3-no-arguments-and-no-id",
        ),
    ],
)
async def test_calls(message: dict[str, object], calls: list[tuple[str | None, str, str]]) -> None:
    async with scripted_client(whole_answer(message)) as (client, _):
        found = (await client.complete("Hi", tools=[ADD])).tool_calls
    assert [(call.name, call.arguments) for call in found] == [call[1:] for call in calls]
    assert all(call.id for call in found)
    assert [call.id for call, (identity, *_) in zip(found, calls, strict=True) if identity] == [
        identity for identity, *_ in calls if identity
    ]


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        pytest.param(None, None, id="c-w17-none"),
        pytest.param(
            {"prompt_tokens": 0, "completion_tokens": 3, "total_tokens": 3},
            Usage(input_tokens=0, output_tokens=3),
            id="c5-zero-is-not-unknown",
        ),
        pytest.param(
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "total_tokens": 12,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            Usage(input_tokens=9, output_tokens=3, cache_read=4),
            id="c-w4-cached",
        ),
        pytest.param(
            {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "total_tokens": 14,
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(input_tokens=9, output_tokens=5, reasoning=2),
            id="c5-reasoning",
        ),
    ],
)
async def test_the_usage(wire: dict[str, object] | None, usage: Usage | None) -> None:
    async with scripted_client(whole_answer({"content": "x"}, **({} if wire is None else {"usage": wire}))) as (
        client,
        _,
    ):
        found = (await client.complete("Hi")).usage
    assert (found if found is None else replace(found, extra=None)) == usage


async def test_c_w5_usage_in_every_chunk_is_a_snapshot() -> None:
    usage = [{"prompt_tokens": 5, "completion_tokens": n, "total_tokens": 5 + n} for n in (1, 2, 3)]
    script = streamed(
        chunk({"content": "a"}, usage=usage[0]),
        chunk({"content": "b"}, usage=usage[1]),
        chunk({}, "stop", usage=usage[2]),
    )
    async with scripted_client(script) as (client, _), client.stream("Hi") as stream:
        reply = await stream.reply()
    assert reply.usage == Usage(input_tokens=5, output_tokens=3)


async def test_c_w17_nan_in_the_usage_is_no_crash() -> None:
    choice = b'{"index":0,"message":{"content":"a"},"finish_reason":"stop"}'
    body = b'{"id":"x","model":"m","choices":[' + choice + b'],"usage":{"prompt_tokens":NaN}}'
    async with scripted_client((Respond(headers=(("content-type", "application/json"),), body=body),)) as (client, _):
        with pytest.raises(UpstreamError, match="answered no JSON"):
            await client.complete("Hi")


async def test_c7_c_w6_what_is_not_said_is_not_sent() -> None:
    async with scripted_client(HELLO) as (client, server):
        await client.complete("Hi")
        assert server.requests[0].json == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        pytest.param({"max_tokens": 5}, {"max_tokens": 5}, id="c-w7-max-tokens"),
        pytest.param({"top_p": 0.5, "seed": 3}, {"top_p": 0.5, "seed": 3}, id="c-w7-sampling"),
        pytest.param({"stop": "x"}, {"stop": ["x"]}, id="c-w7-stop"),
        pytest.param({"frequency_penalty": 0.5}, {"frequency_penalty": 0.5}, id="c-w7-penalties"),
        pytest.param({"thinking": "low"}, {"reasoning_effort": "low"}, id="c-w7-effort"),
        pytest.param(
            {"tools": [ADD], "parallel_tool_calls": False},
            {"tools": [ADD], "parallel_tool_calls": False},
            id="c-w7-parallel",
        ),
        pytest.param({"extra": {"top_a": 0.2}}, {"top_a": 0.2}, id="c-w7-extra-body"),
        pytest.param({"user": "u", "metadata": {"a": "b"}}, {"user": "u", "metadata": {"a": "b"}}, id="c-w7-user"),
    ],
)
async def test_options(options: dict[str, Any], sent: dict[str, object]) -> None:
    async with scripted_client(HELLO) as (client, server):
        reply = await client.complete("Hi", **options)
        body = server.requests[0].json
    assert isinstance(body, dict)
    assert {key: value for key, value in body.items() if key not in {"model", "messages"}} == sent
    assert reply.losses == ()


async def test_c6_a_schema_is_asked_for() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    async with scripted_client(HELLO) as (client, server):
        await client.complete("Hi", output=schema)
        body = server.requests[0].json
    assert isinstance(body, dict)
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": False},
    }


async def test_c8_c_w7_headers() -> None:
    async with scripted_client(HELLO, headers={"x-team": "blue"}) as (client, server):
        await client.complete("Hi", headers={"OpenAI-Organization": "org"})
        got = dict(server.requests[0].headers)
    assert got["authorization"] == "Bearer sk-secret-1234"
    assert (got["x-team"], got["openai-organization"], got["content-type"]) == ("blue", "org", "application/json")


@pytest.mark.parametrize(
    ("steps", "kind", "status", "words"),
    [
        pytest.param(
            error_answer(401, {"message": "bad key sk-secret-1234", "code": "invalid_api_key"}),
            AuthenticationError,
            401,
            "bad key",
            id="c-w9-401",
        ),
        pytest.param(
            error_answer(404, {"message": "no such model"}), NotFoundError, 404, "no such model", id="c-w9-404"
        ),
        pytest.param(error_answer(503, "<html>"), OverloadedError, 503, "", id="c9-not-json"),
        pytest.param(
            (Respond(headers=(("content-type", "application/json"),), body=b"<html>"),),
            UpstreamError,
            None,
            "",
            id="c9-no-json-at-200",
        ),
        pytest.param(
            (Respond(headers=(("content-type", "application/json"),), body=b"[]"),),
            UpstreamError,
            None,
            "",
            id="c9-no-object",
        ),
        pytest.param(
            (Respond(headers=(("content-type", "application/json"),), body=b'{"choices": []}'),),
            FailureError,
            None,
            "",
            id="c9-no-choices",
        ),
        pytest.param(
            (
                Respond(
                    headers=(("content-type", "application/json"),),
                    body=b'{"error": {"message": "out of paper", "type": "server_error"}}',
                ),
            ),
            UpstreamError,
            None,
            "out of paper",
            id="c-w1-an-error-at-200",
        ),
        pytest.param(
            (ResponseHead(length=100), Body(b'{"id"'), *CUT),
            ConnectionFailedError,
            None,
            "connection lost",
            id="c-w8-incomplete-read",
        ),
        pytest.param(BROKEN, ConnectionFailedError, None, "", id="c-w8-reset"),
        pytest.param((Send(b"nonsense\r\n\r\n"), *CUT), UpstreamError, None, "not answer in HTTP", id="c-w8-no-http"),
    ],
)
async def test_errors(steps: Steps, kind: type[FailureError], status: int | None, words: str) -> None:
    async with scripted_client(steps) as (client, _):
        with pytest.raises(kind) as caught:
            await client.complete("Hi")
    assert type(caught.value) is not FailureError
    assert caught.value.status == status
    assert words in str(caught.value)
    assert "sk-secret" not in str(caught.value)
    assert "127.0.0.1" not in caught.value.failure.message


async def test_c_w9_errors_say_what_the_server_said() -> None:
    error = {"message": "slow down", "code": "rate_limit_exceeded", "type": "requests"}
    async with scripted_client(error_answer(429, error, ("retry-after", "3"))) as (client, _):
        with pytest.raises(RateLimitError) as caught:
            await client.complete("Hi")
    found = caught.value
    assert (found.kind, found.status, found.code, found.request_id, found.retryable, found.retry_after) == (
        "rate_limit",
        429,
        "rate_limit_exceeded",
        "req-7",
        True,
        3.0,
    )


async def test_c9_nobody_there() -> None:
    async with (
        Upstream(door="refuse") as server,
        AsyncClient(server.url, model="m", proxy=None, retry=ONCE) as client,
    ):
        with pytest.raises(
            ConnectionFailedError,
            match=r"^cannot connect to http://127.0.0.1:\d+: connection refused",
        ):
            await client.complete("Hi")


async def events(script: Steps, **settings: Any) -> list[Event]:  # noqa: ANN401  those of a client
    """All events of a streamed answer."""
    async with scripted_client(script, **settings) as (client, _), client.stream("Hi") as stream:
        return [event async for event in stream]


async def test_c12_a_stream_is_lazy() -> None:
    async with scripted_client(HELLO_STREAMED) as (client, server):
        stream = client.stream("Hi")
        assert server.requests == []
        found = [event async for event in stream]
        assert len(server.requests) == 1
    assert isinstance(found[0], Started)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(HELLO_STREAMED, id="c13-plain"),
        pytest.param(
            (
                ResponseHead(headers=(("content-type", "text/event-stream"),)),
                Body(
                    b"".join(step.data for step in HELLO_STREAMED if isinstance(step, Body)).replace(b"\n", b"\r\n"), 3
                ),
                *END,
            ),
            id="c13-crlf-cut-anywhere",
        ),
        pytest.param(
            streamed(
                b": hello\n\nevent: x\nid: 4\nretry: 3\n"
                b"data: " + json.dumps(chunk({"content": "Hello."})).encode() + b"\n\n",
                chunk({}, "stop"),
            ),
            id="c13-other-fields",
        ),
        pytest.param(streamed(chunk({"content": "Hello."}), chunk({}, "stop"), done=False), id="c16-no-done"),
        pytest.param(
            streamed(chunk({"content": "Hello."}), b"data: " + json.dumps(chunk({}, "stop")).encode(), done=False),
            id="c13-no-last-blank-line",
        ),
    ],
)
async def test_streams_are_read(script: Steps) -> None:
    found = await events(script)
    assert "".join(event.text for event in found if isinstance(event, TextDelta)) == "Hello."
    assert isinstance(found[-1], Finished)


async def test_c13_broken_characters_are_replaced() -> None:
    broken = json.dumps(chunk({"content": "a?b"})).encode().replace(b"?", b"\xff")
    found = await events(streamed(b"data: " + broken + b"\n\n", chunk({}, "stop")))
    assert "".join(event.text for event in found if isinstance(event, TextDelta)) == "a\ufffdb"


async def test_a_stream_that_is_answered_whole_is_a_stream() -> None:
    found = await events(HELLO)
    assert [event.text for event in found if isinstance(event, TextDelta)] == ["Hello."]


async def test_an_answer_that_is_streamed_unasked_is_whole() -> None:
    async with scripted_client(HELLO_STREAMED) as (client, _):
        assert (await client.complete("Hi")).text == "Hello."


async def test_c14_c16_usage_alone_and_after_the_end() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    found = await events(streamed(chunk({"content": "a"}), chunk({}, "stop"), chunk(None, usage=usage)))
    assert UsageReported(usage=Usage(input_tokens=5, output_tokens=2)) in found


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        pytest.param(
            streamed(
                chunk({"content": "a"}), {"error": {"message": "out of paper", "type": "server_error"}}, done=False
            ),
            UpstreamError,
            "out of paper",
            id="c-w1-error-object",
        ),
        pytest.param(streamed(b"data: {nonsense\n\n"), UpstreamError, "", id="c13-no-json"),
        pytest.param(
            streamed(chunk({"content": "a"}), done=False), IncompleteError, "ended without", id="c-w11-no-end"
        ),
        pytest.param(streamed(chunk({"content": "a"}), done=False, then=CUT), IncompleteError, "", id="c-w11-cut"),
        pytest.param(
            streamed(chunk({"content": "a"}), done=False, then=BROKEN), IncompleteError, "", id="c-w8-reset-on-the-way"
        ),
        pytest.param(streamed(done=False), FailureError, "", id="c-w11-nothing-at-all"),
        pytest.param(
            streamed(chunk({"content": "a"}, "stop", index=0), chunk({"content": "b"}, index=1), done=False),
            IncompleteError,
            "",
            id="c-w11-one-of-two",
        ),
    ],
)
async def test_broken_streams(script: Steps, kind: type[FailureError], words: str) -> None:
    with pytest.raises(kind) as caught:
        await events(script)
    assert words in str(caught.value)
    assert type(caught.value) is not FailureError


async def test_c_w2_thoughts_are_kept_and_sent_back() -> None:
    script = streamed(chunk({"reasoning_content": "Hm."}), chunk({"content": "Yes."}), chunk({}, "stop"))
    async with scripted_client(script) as (client, _):
        async with client.stream("Hi") as stream:
            reply = await stream.reply()
        assert (reply.reasoning, reply.text) == ("Hm.", "Yes.")
        assert reply.message.content == (Reasoning(text="Hm."), Text(text="Yes."))


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [
                call_chunk(0, "", "add", "a"),
                call_chunk(0, '{"a"'),
                call_chunk(0, ": 1}"),
                call_chunk(1, '{"b": 2}', "sub", "b"),
            ],
            id="c15-indexed",
        ),
        pytest.param(
            [call_chunk(None, '{"a": 1}', "add", "a"), call_chunk(None, '{"b": 2}', "sub", "b")], id="c-w3-no-index"
        ),
        pytest.param(
            [call_chunk(0, '{"a": 1}', "add", "a"), call_chunk(0, '{"b": 2}', "sub", "b")], id="c-w3-one-index-for-all"
        ),
    ],
)
async def test_parallel_calls(pieces: list[dict[str, object]]) -> None:
    script = streamed(*(chunk(piece) for piece in pieces), chunk({}, "tool_calls"))
    async with scripted_client(script) as (client, _), client.stream("Hi", tools=[ADD]) as stream:
        reply = await stream.reply()
    assert reply.tool_calls == (
        ToolCall(id="a", name="add", arguments='{"a": 1}'),
        ToolCall(id="b", name="sub", arguments='{"b": 2}'),
    )


async def test_c_w10_candidates_stay_apart() -> None:
    script = streamed(
        chunk({"content": "a"}, index=0),
        chunk({"content": "x"}, index=1),
        chunk({"content": "b"}, index=0),
        chunk({}, "stop", index=0),
        chunk({}, "length", index=1),
    )
    async with scripted_client(script) as (client, _), client.stream("Hi", n=2) as stream:
        texts = [text async for text in stream.texts()]
        reply = await stream.reply()
    first, second = reply.response.candidates
    assert (texts, reply.text) == (["a", "b"], "ab")
    assert (first.finish.reason if first.finish else None, second.finish.reason if second.finish else None) == (
        "stop",
        "length",
    )
    assert second.content == (Text(text="x"),)


async def test_c_w10_legacy_function_calls_are_streamed() -> None:
    script = streamed(
        chunk({"function_call": {"name": "add", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}),
        chunk({}, "function_call"),
    )
    async with scripted_client(script) as (client, _), client.stream("Hi", tools=[ADD]) as stream:
        reply = await stream.reply()
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("add", "{}")]


async def test_c10_what_a_reply_has() -> None:
    async with scripted_client(
        whole_answer({"content": "Hello."}, usage={"prompt_tokens": 1, "completion_tokens": 2})
    ) as (client, _):
        reply = await client.complete("Hi")
    assert (reply.id, reply.model, reply.text, reply.request_id) == ("chatcmpl-1", "m", "Hello.", "req-7")
    assert (reply.finish.reason if reply.finish else None, reply.refusal, reply.tool_calls) == ("stop", None, ())
    assert reply.to("chat")["choices"][0]["message"]["content"] == "Hello."


@pytest.mark.parametrize("value", [math.nan, math.inf], ids=["nan", "inf"])
async def test_c_w17_a_number_that_is_none_is_refused(value: float) -> None:
    async with scripted_client(HELLO) as (client, server):
        with pytest.raises(FailureError, match=r"\$\.temperature"):
            await client.complete("Hi", temperature=value)
        assert server.requests == []
