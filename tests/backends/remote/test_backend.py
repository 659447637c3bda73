"""The remote backend against a scripted server: what is sent, what is made of the answer, and of every fault."""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.backends.raw_server import Peer, leakless, respond_with, response, serving
from xenoglot.backends.backend import ByteAnswer, Call, EventAnswer, monitored
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.stream_guard import PassthroughMonitor
from xenoglot.codec.framing.sse import MAX_EVENT_BYTES
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target, TargetRule, Targets
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError, LossError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, Prompt, Request, Sampling, Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from tests.backends.raw_server import RawServer
    from xenoglot.model.events import Event
    from xenoglot.model.failure import FailureCause
    from xenoglot.model.json import JSONObject

KEY = "sk-upstream-secret"
JSON_TYPE = "content-type: application/json"
REQUEST = Request(model="m", messages=(Message(role="user", content=(Text(text="Hi"),)),))
STREAMED = Request(model="m", messages=REQUEST.messages, stream=True)
BODY = b'{"messages":[{"role":"user","content":"Hi"}],  "model": "m", "x": 1.0}'
ANSWER = (
    b'{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"Hello"}}],"usage":{"prompt_tokens":3,"completion_tokens":1,'
    b'"total_tokens":4}}'
)
HELLO = Response(
    id="c1",
    model="m",
    created=1,
    candidates=(Candidate(content=(Text(text="Hello"),), finish=Finish(reason="stop", raw="stop", dialect="chat")),),
    usage=Usage(input_tokens=3, output_tokens=1),
)
HEAD = b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
CHUNKS = [
    HEAD + b'[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}\n\n',
    HEAD + b'[{"index":0,"delta":{"content":"lo"}}]}\n\n',
    HEAD
    + b'[{"index":0,"delta":{},"finish_reason":"stop"}],'
    + b'"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}\n\n',
    b"data: [DONE]\n\n",
]
STREAM = b"".join(CHUNKS)
EVENT_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
CUT = EVENT_STREAM + b"content-length: 100000\r\n\r\n"


def sse(data: bytes) -> bytes:
    return EVENT_STREAM + b"content-length: %d\r\n\r\n" % len(data) + data


def call(request: Request = REQUEST, **fields: object) -> Call:
    return Call(request=request, losses=Losses(), **fields)  # type: ignore[arg-type]


@asynccontextmanager
async def upstream(
    *responses: bytes, dialect: str = "chat", **settings: object
) -> AsyncIterator[tuple[Remote, RawServer]]:
    """A remote backend and the server behind it, which gives one response after the other and then closes."""

    async def script(peer: Peer) -> None:
        await respond_with(*responses)(peer)
        peer.close()

    async with serving(script) as wire, aclosing(Transport()) as transport:
        yield Remote("up", get(dialect), wire.url, transport=transport, keys=(KEY,), **settings), wire  # type: ignore[arg-type]


async def outcome(remote: Remote, asked: Call) -> Response | Failure:
    """The answer, folded; or the failure as clients see it, whether it came as a status or in the stream."""
    try:
        answer = await remote.answer(asked)
    except FailureError as error:
        return for_clients(error.failure)
    assert isinstance(answer, EventAnswer)
    events: list[Event] = []
    async with aclosing(answer):
        async for batch in answer.batches:
            events += batch
    folded = fold(events)
    return for_clients(folded) if isinstance(folded, Failure) else folded


def for_clients(failure: Failure) -> Failure:
    """The failure without the message for operators, which no dialect encodes; it names the server."""
    assert failure.operator_message
    return replace(failure, operator_message=None)


def sent(wire: RawServer) -> tuple[str, dict[str, str], bytes]:
    """The first request: its line, its headers, its body."""
    head, _, body = wire.requests[0][0].partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    return line, {name: value for name, _, value in (field.partition(": ") for field in fields)}, body


@leakless
async def test_what_is_sent_across() -> None:
    """pitfall-125: our key and our headers, and nothing of the client's."""
    request = Request(model="m", messages=REQUEST.messages, sampling=Sampling(max_tokens=5, seed=1))
    async with upstream(response(ANSWER, JSON_TYPE), headers={"X-Team": "a"}) as (remote, wire):
        asked = call(request, dialect="messages", headers=(("anthropic-beta", "b"),), body=b"not passed on")
        assert await outcome(remote, asked) == HELLO
        line, headers, body = sent(wire)
    assert line == "POST /v1/chat/completions HTTP/1.1"
    assert {name: value for name, value in headers.items() if name not in ("host", "content-length")} == {
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "identity",
        "authorization": f"Bearer {KEY}",
        "user-agent": "xenoglot",
        "x-xenoglot-hops": "1",
        "x-team": "a",
    }
    assert json.loads(body) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 5,
        "seed": 1,
    }


@leakless
async def test_a_dialect_sees_its_own_headers() -> None:
    """pitfall-125: betas go to whoever understands them."""
    async with upstream(response(b"{}", JSON_TYPE), dialect="messages") as (remote, wire):
        await outcome(remote, call(dialect="messages", headers=(("anthropic-beta", "b"), ("anthropic-version", "v"))))
        _, headers, _ = sent(wire)
    assert {name: headers[name] for name in ("x-api-key", "anthropic-version", "anthropic-beta")} == {
        "x-api-key": KEY,
        "anthropic-version": "v",
        "anthropic-beta": "b",
    }


@pytest.mark.parametrize(
    ("model", "body"),
    [
        pytest.param("m", BODY, id="untouched"),
        pytest.param(
            "other", b'{"messages":[{"role":"user","content":"Hi"}],"model":"other","x":1.0}', id="renamed-order-kept"
        ),
    ],
)
@leakless
async def test_the_same_dialect_is_passed_on(model: str, body: bytes) -> None:
    request = Request(model=model, messages=REQUEST.messages)
    async with upstream(response(ANSWER, JSON_TYPE)) as (remote, wire):
        answer = await remote.answer(call(request, dialect="chat", body=BODY))
        assert isinstance(answer, ByteAnswer)
        pieces = [piece async for piece in answer.pieces]
        assert (b"".join(piece.data for piece in pieces), answer.media_type) == (ANSWER, "application/json")
        assert fold([event for piece in pieces for event in piece.events]) == HELLO
        assert sent(wire)[2] == body


@leakless
async def test_a_model_that_the_dialect_calls_otherwise_is_renamed() -> None:
    body = b'{"model_id":"m","messages":[]}'
    request = Request(model="other", messages=())
    answer = b'{"completion_message":{"role":"assistant","content":"Hello","stop_reason":"end_of_turn"}}'
    async with upstream(response(answer, JSON_TYPE), dialect="llama_stack") as (remote, wire):
        await remote.answer(call(request, dialect="llama_stack", body=body))
        line, _, passed_on = sent(wire)
    assert line == "POST /v1/inference/chat-completion HTTP/1.1"
    assert passed_on == b'{"model_id":"other","messages":[]}'


@leakless
async def test_a_stream_of_the_same_dialect_is_passed_on_and_watched() -> None:
    async with upstream(sse(STREAM)) as (remote, _):
        answer = await remote.answer(call(STREAMED, dialect="chat", body=BODY))
        assert isinstance(answer, ByteAnswer)
        async with aclosing(answer):
            pieces = [piece async for piece in answer.pieces]
        assert (b"".join(piece.data for piece in pieces), answer.media_type) == (STREAM, "text/event-stream")
        assert fold([event for piece in pieces for event in piece.events]) == HELLO


QUIRKS = [
    pytest.param(
        Target(max_tokens_field="max_completion_tokens"),
        b'{"x":1.0, "max_tokens":3,"model":"m", "messages":[ ]}',
        b'{"x":1.0,"model":"m","messages":[ ],"max_completion_tokens":3}',
        id="a-field-by-another-name",
    ),
    pytest.param(
        Target(lacks=("user",), stream_usage=False),
        b'{"user":"u","model":"m","messages":[ ],"stream_options":{"include_usage":true},"temperature":1.00}',
        b'{"model":"m","messages":[ ],"temperature":1.00}',
        id="fields-that-it-lacks",
    ),
    pytest.param(
        Target(max_tokens_limit=2),
        b'{"x":1.0, "max_tokens":3,"model":"m", "messages":[ ]}',
        b'{"x":1.0,"max_tokens":2,"model":"m","messages":[ ]}',
        id="a-field-in-its-place",
    ),
    pytest.param(
        Target(max_tokens_limit=9),
        b'{"x":1.0, "max_tokens":3,"model":"m", "messages":[ ]}',
        b'{"x":1.0, "max_tokens":3,"model":"m", "messages":[ ]}',
        id="nothing-to-do",
    ),
]


@pytest.mark.parametrize(("target", "body", "passed_on"), QUIRKS)
@leakless
async def test_of_what_is_passed_on_only_the_fields_that_a_quirk_concerns_change(
    target: Target, body: bytes, passed_on: bytes
) -> None:
    request = get("chat").decode_request(json.loads(body))
    async with upstream(response(ANSWER, JSON_TYPE), target=target) as (remote, wire):
        answer = await remote.answer(call(request, dialect="chat", body=body))
        assert isinstance(answer, ByteAnswer)
        assert b"".join([piece.data async for piece in answer.pieces]) == ANSWER
        assert sent(wire)[2] == passed_on


@leakless
async def test_an_answer_that_calls_tools_by_other_names_is_not_passed_on() -> None:
    tool = {"type": "function", "function": {"name": "a_rather_long_name"}}
    body = {"model": "m", "messages": [], "tools": [tool]}
    async with upstream(response(ANSWER, JSON_TYPE), target=Target(tool_name_limit=12)) as (remote, wire):
        request = get("chat").decode_request(body)
        assert await outcome(remote, call(request, dialect="chat", body=json.dumps(body).encode())) == HELLO
        assert [len(one["function"]["name"]) for one in json.loads(sent(wire)[2])["tools"]] == [12]


@leakless
async def test_each_model_has_its_facts() -> None:
    targets = Targets(Target(), [TargetRule(names=("small*",), target=Target(max_tokens_limit=2))])
    asked = [Request(model=name, sampling=Sampling(max_tokens=3)) for name in ("small-1", "large")]
    async with upstream(response(ANSWER, JSON_TYPE), response(ANSWER, JSON_TYPE), target=targets) as (remote, wire):
        for request in asked:
            assert await outcome(remote, call(request)) == HELLO
        bodies = [json.loads(data.partition(b"\r\n\r\n")[2]) for data in wire.requests[0]]
    assert [body["max_tokens"] for body in bodies] == [2, 3]


@leakless
async def test_usage_is_asked_for_whether_the_client_wants_it_or_not() -> None:
    request = get("chat").decode_request({"model": "m", "messages": [], "stream": True})
    async with upstream(sse(STREAM)) as (remote, wire):
        assert await outcome(remote, call(request, dialect="chat")) == HELLO
        body = {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}}
        assert json.loads(sent(wire)[2]) == body, "pitfall-101"


@pytest.mark.parametrize(
    ("request_", "data"),
    [
        pytest.param(REQUEST, sse(STREAM), id="pitfall-117-U25-json-asked-stream-came"),
        pytest.param(STREAMED, response(ANSWER, JSON_TYPE), id="pitfall-117-U25-stream-asked-json-came"),
        pytest.param(STREAMED, sse(STREAM), id="stream"),
        pytest.param(REQUEST, response(ANSWER), id="no-content-type"),
        pytest.param(STREAMED, sse(STREAM).replace(b"text/event", b"Text/Event"), id="U24-type-in-capitals"),
        pytest.param(STREAMED, sse(STREAM + b"data: {oops\n\n"), id="U16-events-after-the-end"),
    ],
)
@pytest.mark.parametrize("body", [None, BODY], ids=["across", "same-dialect"])
@leakless
async def test_either_form_of_answer_is_read(request_: Request, data: bytes, body: bytes | None) -> None:
    async with upstream(data) as (remote, _):
        answer = await remote.answer(call(request_, dialect="chat", body=body))
        async with aclosing(answer):
            if isinstance(answer, EventAnswer):
                events = [event async for batch in answer.batches for event in batch]
            else:
                events = [event async for piece in answer.pieces for event in piece.events]
        assert fold(events) == HELLO


UNREADABLE = "server error: the upstream's answer was not understood: $: not valid JSON: "
STREAM_UNREADABLE = "server error: the upstream's stream cannot be read: "
BROKEN_OFF = "connection lost: the upstream closed it"
ENDED_EARLY = "connection lost: the upstream's stream ended without being complete"


async def test_answers_without_calls_are_returned_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tool of the request would be looked at otherwise, for nothing: agents bring dozens to each request."""

    def read(_call: Call, _names: object = None) -> list[object]:
        raise AssertionError("the tools of the request were read")

    monkeypatch.setattr(Remote, "_restore_stages", read)
    asked = call(replace(REQUEST, tools=(Tool(name="a_rather_long_name"),)))
    answer = Response(id="r", model="m", candidates=(Candidate(content=(Text(text="Hello."),)),))
    async with aclosing(Transport()) as transport:
        remote = Remote("up", get("chat"), "http://127.0.0.1:9", transport=transport)
        assert remote.restore_tools(answer, asked) is answer


def status(code: int, body: bytes, *fields: str) -> bytes:
    return response(body, JSON_TYPE, *fields).replace(b"200 OK", b"%d Said" % code, 1)


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        pytest.param(b"", Failure(kind="upstream", message=BROKEN_OFF, cause="closed"), id="U11-reset-before-any-byte"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n" + ANSWER,
            Failure(kind="upstream", message=BROKEN_OFF, cause="closed"),
            id="U12-cut-body",
        ),
        pytest.param(
            b"HTTP/9\r\n\r\n",
            Failure(kind="upstream", message="the upstream's answer is not lawful HTTP", cause="protocol"),
            id="U43-malformed-head",
        ),
        pytest.param(
            response(b"<html>", "content-type: text/html"),
            Failure(kind="upstream", message=UNREADABLE + "invalid character (byte 0)", cause="garbled"),
            id="U24-html",
        ),
        pytest.param(
            response(b"", JSON_TYPE),
            Failure(kind="upstream", message=UNREADABLE + "Input data was truncated", cause="garbled"),
            id="U24-empty",
        ),
        pytest.param(
            response(b'{"error":{"message":"no such luck","type":"server_error"}}', JSON_TYPE),
            Failure(
                kind="internal", message="server error: the upstream failed", dialect="openai", raw_type="server_error"
            ),
            id="U23-error-object-in-200",
        ),
        pytest.param(
            status(502, b"<html><h1>Bad Gateway 10.1.2.3</h1>"),
            Failure(
                kind="upstream", message="server error: the upstream failed (status 502)", status=502, dialect="openai"
            ),
            id="U26-R32-html-502",
        ),
        pytest.param(
            status(401, b'{"error":{"message":"bad key %s","type":"invalid_request_error"}}' % KEY.encode()),
            Failure(kind="upstream", message="the upstream refused the gateway's credentials", cause="credentials"),
            id="U40-401",
        ),
        pytest.param(
            status(403, b"{}"),
            Failure(kind="upstream", message="the upstream refused the gateway's credentials", cause="forbidden"),
            id="U40-403",
        ),
        pytest.param(
            status(
                429,
                b'{"error":{"message":"slow down, %s","type":"rate_limit_error","code":"rate"}}' % KEY.encode(),
                "retry-after: 7",
            ),
            Failure(
                kind="rate_limit",
                message="slow down, [redacted]",
                status=429,
                dialect="openai",
                raw_type="rate_limit_error",
                code="rate",
                retry_after=7.0,
                details={"message": "slow down, [redacted]", "type": "rate_limit_error", "code": "rate"},
            ),
            id="U37-S08-429",
        ),
        pytest.param(
            status(404, b'{"error":{"message":"no model m","type":"invalid_request_error","code":"model_not_found"}}'),
            Failure(
                kind="not_found",
                message="no model m",
                status=404,
                dialect="openai",
                raw_type="invalid_request_error",
                code="model_not_found",
                details={"message": "no model m", "type": "invalid_request_error", "code": "model_not_found"},
            ),
            id="U41-404",
        ),
    ],
)
@leakless
async def test_faults_become_failures(data: bytes, failure: Failure) -> None:
    async with upstream(data) as (remote, _):
        assert await outcome(remote, call()) == failure


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        pytest.param(
            CUT + CHUNKS[0],
            Failure(kind="upstream", message=BROKEN_OFF, cause="closed"),
            id="U13-pitfall-104-cut-after-text",
        ),
        pytest.param(
            sse(CHUNKS[0]), Failure(kind="upstream", message=ENDED_EARLY), id="U14-clean-end-without-terminal-event"
        ),
        pytest.param(
            sse(CHUNKS[0] + b'data: {"choices": [{"ind\n\n'),
            Failure(kind="upstream", message=STREAM_UNREADABLE + "$: not valid JSON: Input data was truncated"),
            id="U17-truncated-json",
        ),
        pytest.param(
            sse(CHUNKS[0] + b'data: {"error":{"message":"too busy","type":"overloaded_error"}}\n\n' + CHUNKS[1]),
            Failure(
                kind="overloaded",
                message="too busy",
                dialect="openai",
                raw_type="overloaded_error",
                details={"message": "too busy", "type": "overloaded_error"},
            ),
            id="U22-pitfall-105-C-W1-error-in-the-stream",
        ),
    ],
)
@leakless
async def test_broken_streams_fail(data: bytes, failure: Failure) -> None:
    async with upstream(data) as (remote, _):
        assert await outcome(remote, call(STREAMED)) == failure


@leakless
async def test_a_cut_after_the_end_costs_nothing() -> None:
    async with upstream(CUT + STREAM) as (remote, _):
        assert await outcome(remote, call(STREAMED)) == HELLO


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        pytest.param(
            CHUNKS[0] + b'data: {"error":{"message":"not %s","type":"invalid_request_error"}}\n\n' % KEY.encode(),
            Failure(
                kind="invalid_request",
                message="not [redacted]",
                details={"message": "not [redacted]", "type": "invalid_request_error"},
            ),
            id="S08-our-key",
        ),
        pytest.param(
            CHUNKS[0] + b'data: {"error":{"message":"at /srv/x","type":"server_error"}}\n\n',
            Failure(kind="internal", message="server error: the upstream failed"),
            id="R32-their-fault",
        ),
        pytest.param(
            CHUNKS[0] + b'data: {"error":{"message":"too busy","type":"overloaded_error"}}\n\n',
            Failure(
                kind="overloaded",
                message="too busy",
                dialect="openai",
                raw_type="overloaded_error",
                details={"message": "too busy", "type": "overloaded_error"},
            ),
            id="U22-fit-as-it-is",
        ),
        pytest.param(CHUNKS[3], Failure(kind="upstream", message=ENDED_EARLY), id="U15-nothing-but-done"),
    ],
)
@leakless
async def test_what_is_seen_of_a_stream_passed_on_is_fit_to_be_told(data: bytes, failure: Failure) -> None:
    """A failure that is not in the bytes in words for the client has no dialect."""
    async with upstream(sse(data)) as (remote, _):
        answer = await remote.answer(call(STREAMED, dialect="chat", body=BODY))
        assert isinstance(answer, ByteAnswer)
        async with aclosing(answer):
            events = [event async for piece in answer.pieces for event in piece.events]
        assert [for_clients(event.failure) for event in events if isinstance(event, Failed)] == [failure]


@leakless
async def test_u36_an_endless_event_in_a_stream_passed_on_is_the_upstreams_failure() -> None:
    async def chunks() -> AsyncGenerator[bytes]:
        yield b"data: " + b"x" * MAX_EVENT_BYTES

    watch = PassthroughMonitor(get("chat"), lambda failure: failure)
    failures = [piece.failure async for piece in monitored(chunks(), watch)]
    message = (
        "server error: the upstream's answer was not understood: $: a server-sent event is larger than 33554432 bytes"
    )
    assert list(map(for_clients, filter(None, failures))) == [
        Failure(kind="upstream", message=message, cause="garbled")
    ]


@pytest.mark.parametrize(("code", "cause"), [(401, "credentials"), (403, "forbidden")])
@leakless
async def test_u40_a_credential_refused_by_another_name(code: int, cause: FailureCause) -> None:
    refusal = status(code, b'{"type":"error","error":{"type":"invalid_request_error","message":"at host"}}')
    async with upstream(refusal, dialect="messages") as (remote, _):
        failure = Failure(kind="upstream", message="the upstream refused the gateway's credentials", cause=cause)
        assert await outcome(remote, call()) == failure


@leakless
async def test_a_stream_passed_on_is_seen_to_be_cut() -> None:
    async with upstream(sse(CHUNKS[0])) as (remote, _):
        answer = await remote.answer(call(STREAMED, dialect="chat", body=BODY))
        assert isinstance(answer, ByteAnswer)
        async with aclosing(answer):
            *_, last = [piece async for piece in answer.pieces]
        assert last.data == b""
        assert last.failure is not None
        assert for_clients(last.failure) == Failure(kind="upstream", message=ENDED_EARLY)


@leakless
async def test_names_of_tools_are_fitted_and_put_back() -> None:
    name = "mcp__server.with.dots__" + "tool" * 20
    request = Request(model="m", messages=REQUEST.messages, tools=(Tool(name=name),))
    async with serving(_echo_tool) as wire, aclosing(Transport()) as transport:
        remote = Remote("up", get("chat"), wire.url, transport=transport)
        answer = await outcome(remote, call(request))
    assert isinstance(answer, Response)
    part = answer.candidates[0].content[0]
    assert isinstance(part, ToolCall)
    assert (part.name, part.arguments) == (name, "{}")


async def _echo_tool(peer: Peer) -> None:
    asked = json.loads((await peer.request()).partition(b"\r\n\r\n")[2])
    name = asked["tools"][0]["function"]["name"]
    assert len(name) <= 64
    calls = [{"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    peer.send(response(json.dumps({"id": "c1", "choices": [choice]}).encode(), JSON_TYPE))


@leakless
async def test_free_text_tools_come_back_as_such() -> None:
    content = [{"type": "tool_use", "id": "1", "name": "patch", "input": {"input": "*** a"}}]
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": content}
    body = json.dumps({**message, "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}})
    request = Request(model="m", messages=REQUEST.messages, tools=(Tool(name="patch", kind="custom"),))
    async with upstream(response(body.encode(), JSON_TYPE), dialect="messages") as (remote, _):
        answer = await outcome(remote, call(request))
    assert isinstance(answer, Response)
    assert answer.candidates[0].content == (ToolCall(id="1", name="patch", kind="custom", arguments="*** a"),)


@leakless
async def test_strict_mode_sends_nothing_that_loses() -> None:
    request = Request(model="m", messages=REQUEST.messages, sampling=Sampling(seed=1, max_tokens=2))
    asked = Call(request=request, losses=Losses(strict=True))
    async with upstream(dialect="messages") as (remote, wire):
        with pytest.raises(LossError) as error:
            await remote.answer(asked)
        assert wire.requests == []
    assert error.value.losses == ("$.sampling seed dropped (the dialect has no such field)",)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param(response(b'{"input_tokens":12}', JSON_TYPE), 12, id="pitfall-124-the-server-knows"),
        pytest.param(status(404, b"{}"), None, id="no-such-endpoint"),
        pytest.param(response(b'{"tokens":12}', JSON_TYPE), None, id="not-said"),
        pytest.param(response(b"[12]", JSON_TYPE), None, id="no-object"),
    ],
)
@leakless
async def test_counting(data: bytes, count: int | None) -> None:
    async with upstream(data, dialect="messages") as (remote, wire):
        assert await remote.count(call()) == count
        line, _, body = sent(wire)
    assert line == "POST /v1/messages/count_tokens HTTP/1.1"
    assert json.loads(body) == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@leakless
async def test_a_dialect_without_counting_is_not_asked() -> None:
    async with upstream() as (remote, wire):
        assert await remote.count(call()) is None
        assert wire.requests == []


@leakless
async def test_models() -> None:
    listed = {"object": "list", "data": [{"id": "a", "created": 5, "owned_by": "o"}, {"id": "b", "type": "model"}, {}]}
    async with upstream(response(json.dumps(listed).encode(), JSON_TYPE)) as (remote, wire):
        models = (ModelInfo(id="a", created=5, owned_by="o"), ModelInfo(id="b"))
        assert await remote.models() == models
        assert sent(wire)[0] == "GET /v1/models HTTP/1.1"


@leakless
async def test_models_that_cannot_be_listed() -> None:
    async with upstream(status(500, b"oops")) as (remote, _):
        with pytest.raises(FailureError, match=r"^server error: the upstream failed$"):
            await remote.models()


def posted(wire: RawServer) -> list[JSONObject]:
    """Return the bodies of all that was asked, on whichever connection."""
    return [json.loads(asked.partition(b"\r\n\r\n")[2]) for peer in wire.requests for asked in peer]


async def test_a_string_that_cannot_be_sent_ends_the_answer_all_the_same() -> None:
    """A-W4: the server stops at one of them by itself, we at the other; it is asked for a stream, to be left early."""
    request = replace(REQUEST, sampling=Sampling(stop=("END", "l", "1", "2", "3"), seed=1))
    losses = Losses()
    async with upstream(sse(STREAM)) as (remote, wire):
        answer = await outcome(remote, Call(request=request, losses=losses, dialect="chat", body=BODY))
    assert posted(wire) == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "seed": 1,
            "stop": ["END", "l", "1", "2"],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]
    assert isinstance(answer, Response)
    stopped = Finish(reason="stop_sequence", stop_sequence="l")
    assert answer.candidates == (Candidate(content=(Text(text="He"),), finish=stopped),)
    assert [str(loss) for loss in losses] == [
        "$.sampling stop emulated (the answer is ended where the model writes one of the strings)"
    ]


async def test_several_texts_are_asked_one_by_one() -> None:
    request = Request(model="m", prompt=Prompt(texts=("One", "Two")))
    async with upstream(response(ANSWER, JSON_TYPE)) as (remote, wire):
        answer = await outcome(remote, call(request, body=BODY, dialect="completions"))
    asked = sorted(body["messages"][0]["content"] for body in posted(wire))
    assert asked == ["One", "Two"]
    assert isinstance(answer, Response)
    assert answer.candidates == HELLO.candidates * 2
    assert answer.usage == Usage(input_tokens=6, output_tokens=2)


async def test_a_server_that_makes_one_answer_is_asked_for_each() -> None:
    request = Request(model="m", messages=REQUEST.messages, sampling=Sampling(n=2))
    async with upstream(response(ANSWER, JSON_TYPE), target=Target(fan_out=True)) as (remote, wire):
        answer = await outcome(remote, call(request))
    assert ["n" in body for body in posted(wire)] == [False, False]
    assert isinstance(answer, Response)
    assert answer.candidates == HELLO.candidates * 2
