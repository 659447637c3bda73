"""InvokeModel: bodies and events of the Messages API in the framing and with the errors of Bedrock."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.lib.bedrock._stream_decoder import AWSEventStreamDecoder

from tests.laws.vectors import Case, decoded, each
from xenoglot.codec.framing.binary_events import EXCEPTION, encode_message
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, hosted_by, hosted_dialects
from xenoglot.dialects.converse.invoke.anthropic_body import (
    HEADER_VERSION,
    VERSION,
    counted_body,
    encode_counted,
    fields_of,
    headers_of,
)
from xenoglot.dialects.converse.invoke.chunk_events import METRICS
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.model.events import Event, Failed
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON, JSONObject

INVOKE, MESSAGES = hosted_by("converse", "messages"), get("messages")
OF_MESSAGES = {"where": lambda case: case.dialect is MESSAGES}
BODY: JSONObject = {"anthropic_version": VERSION, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


def chunk(value: JSON) -> bytes:
    """Return the message of one event, padded as servers do."""
    inner = value if isinstance(value, bytes) else encode_json(value)
    return encode_message(ServerSentEvent(encode_json({"bytes": b64encode(inner).decode(), "p": "abcdefgh"}), "chunk"))


def as_chunks(case: Case) -> bytes:
    """Return the stream of a case as Bedrock sends it."""
    return b"".join(chunk(event.data) for event in through([case.stream], MESSAGES.framing.decoder()) if event.data)


def written(dialect: Dialect, events: list[Event]) -> bytes:
    """Return the bytes of a stream."""
    asked = MESSAGES.decode_request({**BODY, "model": "m"})
    return b"".join(through(events, Pipeline(dialect.stream_encoder(asked, Losses()), dialect.framing.encoder())))


@each("stream.*", **OF_MESSAGES)
def test_a_stream_is_read_as_that_of_the_messages_api(case: Case) -> None:
    stream = as_chunks(case)
    expected = decoded(MESSAGES, [case.stream])
    assert decoded(INVOKE, [stream]) == expected
    assert decoded(INVOKE, [stream[at : at + 7] for at in range(0, len(stream), 7)]) == expected


@each("stream.*", **OF_MESSAGES)
def test_the_sdk_reads_the_same_events(case: Case) -> None:
    """What `AnthropicBedrock` unpacks is what clients of the Messages API get; the last event has the counts too."""
    events = decoded(MESSAGES, [case.stream])
    failed = any(type(event) is Failed for event in events)
    alike = written(MESSAGES, events)
    theirs = [decode_json(event.data) for event in through([alike], MESSAGES.framing.decoder()) if event.data]
    unpacked = [
        decode_json(event.data) for event in AWSEventStreamDecoder().iter_bytes(iter([written(INVOKE, events)]))
    ]
    ours = [{name: value for name, value in event.items() if name != METRICS} for event in unpacked]
    wanted = [event for event in theirs if event["type"] != "ping"]
    if not failed:
        assert ours == wanted
    else:
        assert ours[:-1] == wanted[:-1]
        assert (ours[-1]["type"], wanted[-1]["type"]) == ("error", "error")
        assert ours[-1]["error"]["message"] == wanted[-1]["error"]["message"]


@each("request.json", **OF_MESSAGES)
def test_a_body_is_read_as_that_of_the_messages_api(case: Case) -> None:
    body: JSONObject = {**case.request}
    fields = {"anthropic_version": VERSION, "anthropic_beta": ["context-1m-2025-08-07"]}
    assert INVOKE.decode_request(body | fields) == MESSAGES.decode_request(body)
    request = MESSAGES.decode_request(body)
    ours = INVOKE.encode_request(request, Losses(), Target())
    assert ours == {"anthropic_version": VERSION} | MESSAGES.encode_request(request, Losses(), Target())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"prompt": "<s>[INST] Hi [/INST]", "max_gen_len": 9}, id="llama"),
        pytest.param({"inputText": "Hi", "textGenerationConfig": {}}, id="titan"),
        pytest.param({"message": "Hi", "chat_history": []}, id="cohere"),
        pytest.param({"schemaVersion": "messages-v1", "messages": [], "inferenceConfig": {}}, id="nova"),
        pytest.param({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}, id="mistral-or-openai"),
    ],
)
def test_bodies_of_other_models_are_refused(body: JSONObject) -> None:
    with pytest.raises(WireError, match=r"takes bodies of Anthropic's Messages API alone.*Converse") as raised:
        INVOKE.decode_request({**body, "model": "m", "stream": False})
    assert raised.value.path == "$.anthropic_version"


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        pytest.param({"anthropic_version": VERSION}, (("anthropic-version", HEADER_VERSION),), id="version"),
        pytest.param({"anthropic_version": "2026-10-21"}, (("anthropic-version", "2026-10-21"),), id="newer"),
        pytest.param(
            {"anthropic_version": VERSION, "anthropic_beta": ["a-1", "b-2"]},
            (("anthropic-version", HEADER_VERSION), ("anthropic-beta", "a-1,b-2")),
            id="betas",
        ),
    ],
)
def test_headers_are_fields(fields: JSONObject, headers: tuple[tuple[str, str], ...]) -> None:
    assert headers_of(BODY | fields) == headers
    assert fields_of(headers) == fields


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param({"anthropic_beta": "a-1"}, "$.anthropic_beta", id="no-list"),
        pytest.param({"anthropic_beta": ["a\r\nx-api-key: k"]}, "$.anthropic_beta", id="line-end"),
        pytest.param({"anthropic_beta": ["a,b"]}, "$.anthropic_beta", id="two-in-one"),
        pytest.param({"anthropic_version": "a\r\nb"}, "$.anthropic_version", id="line-end-in-version"),
    ],
)
def test_fields_that_are_no_headers(fields: JSONObject, path: str) -> None:
    with pytest.raises(WireError) as raised:
        headers_of(BODY | fields)
    assert raised.value.path == path


def test_an_exception_ends_the_stream() -> None:
    start = chunk({"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}})
    error = encode_message(ServerSentEvent(b'{"message":"slow down"}', "throttlingException", EXCEPTION))
    *_, last = decoded(INVOKE, [start + error + start])
    assert isinstance(last, Failed)
    assert (last.failure.kind, last.failure.message) == ("rate_limit", "slow down")


def test_a_failure_is_an_exception() -> None:
    data = written(INVOKE, [Failed(failure=Failure(kind="overloaded", message="busy"))])
    (event,) = AWSEventStreamDecoder().iter_bytes(iter([data]))
    error = {"type": "serviceUnavailableException", "message": "busy"}
    assert decode_json(event.data.encode()) == {"type": "error", "error": error}


def test_a_stream_that_stops_early_is_a_failure_both_ways() -> None:
    start = {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}}
    events = decoded(INVOKE, [chunk(start)])
    assert type(events[-1]) is Failed
    (*_, last) = AWSEventStreamDecoder().iter_bytes(iter([written(INVOKE, events[:-1])]))
    assert decode_json(last.data.encode())["type"] == "error"


@pytest.mark.parametrize("payload", [b'{"bytes":"%%"}', b'{"bytes":7}'], ids=["no-base64", "number"])
def test_chunks_without_base64(payload: bytes) -> None:
    with pytest.raises(WireError, match=r"expected base64"):
        decoded(INVOKE, [encode_message(ServerSentEvent(payload, "chunk"))])


def test_events_before_a_damaged_chunk_are_the_same_however_the_bytes_are_cut() -> None:
    start = b'{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1}}}'
    good = encode_json({"bytes": b64encode(start).decode()})
    data = b"".join(encode_message(ServerSentEvent(one, "chunk")) for one in (good, b'{"bytes":"%%"}'))
    for cut in range(len(data) + 1):
        events: list[bytes] = []
        with pytest.raises(WireError, match=r"expected base64"):
            read_chunks((data[:cut], data[cut:]), events)
        assert events == [start], cut


def read_chunks(pieces: Iterable[bytes], events: list[bytes]) -> None:
    """Add what the chunks in `pieces` have in them to `events`."""
    decoder = INVOKE.framing.decoder()
    for piece in pieces:
        events += [event.data for event in decoder.feed(piece)]
    decoder.close()


@pytest.mark.parametrize("payload", [b"{}", b"[]", b'{"bytes":""}'], ids=["nothing", "list", "empty"])
def test_chunks_without_an_event(payload: bytes) -> None:
    (event,) = decoded(INVOKE, [encode_message(ServerSentEvent(payload, "chunk"))])
    assert type(event) is Failed


def test_the_last_event_has_the_counts() -> None:
    usage: Any = {"input_tokens": 5, "cache_read_input_tokens": 7}
    stream = b"".join(
        map(
            chunk,
            (
                {"type": "message_start", "message": {"id": "m", "content": [], "usage": usage}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
                {"type": "message_stop", METRICS: {"inputTokenCount": 5, "firstByteLatency": 9}},
            ),
        )
    )
    (*_, last) = through([written(INVOKE, decoded(INVOKE, [stream]))], INVOKE.framing.decoder())
    counts = {"inputTokenCount": 5, "outputTokenCount": 3, "cacheReadInputTokenCount": 7}
    assert decode_json(last.data) == {"type": "message_stop", METRICS: counts}


def test_the_tokens_of_a_body_are_counted() -> None:
    inner = {"anthropic_version": VERSION, "max_tokens": 1, "messages": BODY["messages"]}
    asked = encode_counted({"model": "m", "stream": True, "anthropic_version": VERSION, "messages": BODY["messages"]})
    assert decode_json(b64decode(asked["input"]["invokeModel"]["body"])) == inner
    assert counted_body(asked) == inner | {"model": "m"}
    assert counted_body({"model": "m", "input": {"converse": {"messages": []}}}) is None


@pytest.mark.parametrize("encoded", ["%%", b64encode(b"[]").decode(), b64encode(b"{").decode()])
def test_counts_of_what_is_no_body(encoded: str) -> None:
    with pytest.raises(WireError):
        counted_body({"model": "m", "input": {"invokeModel": {"body": encoded}}})


def test_who_hosts_what() -> None:
    assert [(one.name, one.path) for one in hosted_dialects()] == [("messages", "/model/{model}/invoke")]
    assert hosted_by("converse", "anthropic").path == INVOKE.path
    with pytest.raises(ConfigurationError, match="servers of `converse` do not take bodies of `chat`; they take: mess"):
        hosted_by("converse", "chat")


@pytest.mark.parametrize("name", ["a\r\nx-evil: 1", "Überlauf", "", "two words"])
def test_an_upstreams_word_is_no_header(name: str) -> None:
    assert INVOKE.error_headers is not None
    assert INVOKE.error_headers({"__type": name, "message": "m"}) == ()
    named = INVOKE.error_headers({"__type": "ThrottlingException", "message": "m"})
    assert named == (("x-amzn-errortype", "ThrottlingException"),)
