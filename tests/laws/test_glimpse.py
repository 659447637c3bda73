"""A glimpse at a whole answer: what it sees is what the general way reads, and that refuses nothing of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.laws.mutations import mutations
from tests.laws.vectors import Case, each
from xenoglot.codec.json.json_io import decode_answer, decode_json, encode_json
from xenoglot.dialect_registry import get
from xenoglot.model.response import FinishReason, Usage

pytestmark = pytest.mark.usefixtures("with_shortcuts")

USUAL = {
    "chat": b"""{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":
        {"role":"assistant","content":"Hi","refusal":null,"annotations":[],"reasoning_content":null,"tool_calls":[
        {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"stop"}],
        "usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":
        4},"completion_tokens_details":{"reasoning_tokens":3,"rejected_prediction_tokens":0}},"service_tier":"x"}""",
    "messages": b"""{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking",
        "thinking":"Hm","signature":"s"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{}}],
        "stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":19,"cache_creation_input_tokens":0,
        "cache_read_input_tokens":7,"output_tokens":10,"output_tokens_details":{"thinking_tokens":3}}}""",
}
SEEN = {
    "chat": (Usage(input_tokens=19, output_tokens=10, cache_read=4, reasoning=3), "tool_calls"),
    "messages": (Usage(input_tokens=26, output_tokens=10, cache_read=7, cache_write=0, reasoning=3), "tool_calls"),
}


def seen(name: str, data: bytes) -> tuple[Usage | None, FinishReason] | None:
    look = get(name).glimpse
    assert look is not None
    return look(data)


def agrees(name: str, data: bytes) -> None:
    glimpsed = seen(name, data)
    if glimpsed is None:
        return
    body = decode_answer(data)
    (candidate,) = get(name).decode_response(body).candidates
    usage = get(name).decode_response(body).usage
    assert candidate.finish is not None
    assert glimpsed == (None if usage is None else replace(usage, extra=None), candidate.finish.reason)
    assert body.get("error") is None


@pytest.mark.parametrize("name", USUAL)
def test_the_usual_is_seen(name: str) -> None:
    assert seen(name, USUAL[name]) == SEEN[name]
    agrees(name, USUAL[name])


@pytest.mark.parametrize(("name", "said"), [("chat", b'"finish_reason":"stop"'), ("messages", b'"end_turn"')])
def test_an_empty_reason_is_read_as_the_general_path_reads_it(name: str, said: bytes) -> None:
    data = USUAL[name].replace(said, said[: said.rindex(b'"', 0, -1)] + b'""')
    assert decode_json(data) != decode_json(USUAL[name])
    agrees(name, data)


@pytest.mark.parametrize("name", USUAL)
@settings(max_examples=300)
@given(data=st.data())
def test_what_is_seen_is_so(name: str, data: st.DataObject) -> None:
    body = decode_json(USUAL[name])
    for _ in range(data.draw(st.integers(1, 3))):
        body = data.draw(mutations(body))
    agrees(name, encode_json(body))


@each("response.json", where=lambda case: case.dialect.name in USUAL)
def test_vectors(case: Case) -> None:
    agrees(case.dialect.name, encode_json(case.response))


@pytest.mark.parametrize("name", USUAL)
@pytest.mark.parametrize("data", [b"", b"[", b"[" * 100_000, b'{"x":"\xff"}', b"null"])
def test_garbage_is_not(name: str, data: bytes) -> None:
    assert seen(name, data) is None
