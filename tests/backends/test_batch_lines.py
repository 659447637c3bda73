"""The lines of a batch: what each style asks, which are refused, and the lines that answer them."""

from __future__ import annotations

import json

import pytest
from anthropic.types.messages import MessageBatchIndividualResponse
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.backends.batch_lines import (
    BadLineError,
    LineOutcome,
    decode_line,
    encode_line,
    endpoint_at,
    mark_of,
    read_answer,
    text_of,
)
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError
from xenoglot.model.failure import Failure

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def openai(url: str, **more: object) -> dict[str, object]:
    return {"custom_id": "a", "method": "POST", "url": url, "body": {"model": "m"}, **more}


@pytest.mark.parametrize(
    ("said", "style", "dialect", "custom_id"),
    [
        pytest.param(openai("/v1/chat/completions"), "addressed", "chat", "a", id="chat"),
        pytest.param(openai("/v1/responses"), "addressed", "responses", "a", id="responses"),
        pytest.param(openai("/v1/completions"), "addressed", "completions", "a", id="completions"),
        pytest.param(openai("/v1/messages"), "addressed", "messages", "a", id="messages-by-url"),
        pytest.param(openai("/chat/completions/"), "addressed", "chat", "a", id="without-the-version"),
        pytest.param({"custom_id": "b", "params": BODY}, "params", "messages", "b", id="anthropic"),
        pytest.param(BODY, "plain", "chat", "line-7", id="plain-chat"),
        pytest.param(BODY | {"custom_id": "c"}, "plain", "chat", "c", id="plain-with-an-id"),
        pytest.param(BODY | {"system": "Be brief."}, "plain", "messages", "line-7", id="plain-messages"),
        pytest.param({"model": "m", "input": "Hello"}, "plain", "responses", "line-7", id="plain-responses"),
        pytest.param({"model": "m", "input": [BODY]}, "plain", "responses", "line-7", id="plain-responses-items"),
        pytest.param({"model": "m", "prompt": "Once"}, "plain", "completions", "line-7", id="plain-completions"),
        pytest.param({"contents": []}, "plain", "gemini", "line-7", id="plain-gemini"),
    ],
)
def test_a_line_asks_in_its_style(said: object, style: str, dialect: str, custom_id: str) -> None:
    line = decode_line(json.dumps(said).encode(), 7)
    assert (line.style, line.endpoint.dialect, line.custom_id, line.endpoint.embeddings) == (
        style,
        dialect,
        custom_id,
        False,
    )
    assert "custom_id" not in line.body


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(openai("/v1/embeddings"), id="by-url"),
        pytest.param({"model": "m", "input": ["one", "two"]}, id="many-texts"),
        pytest.param({"model": "m", "input": [1, 2]}, id="tokens"),
        pytest.param({"model": "m", "input": "one", "dimensions": 8}, id="dimensions"),
    ],
)
def test_embeddings_are_known(said: object) -> None:
    assert decode_line(json.dumps(said).encode(), 1).endpoint.embeddings


def test_plain_lines_may_be_told_apart_by_whoever_knows() -> None:
    line = decode_line(json.dumps(BODY).encode(), 1, dialect="ollama", model="other")
    assert (line.endpoint.dialect, line.body["model"]) == ("ollama", "m")
    assert decode_line(b'{"messages": []}', 1, model="other").body["model"] == "other"
    with pytest.raises(ConfigurationError, match="no dialect `klingon`"):
        decode_line(b"{}", 1, dialect="klingon")


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        pytest.param(b"{", "invalid_json_line", "$: not valid JSON", id="cut"),
        pytest.param(b"\xff\xfe{", "invalid_json_line", "$: not valid JSON", id="not-utf-8"),
        pytest.param(b"[" * 5000, "invalid_json_line", "nested too deeply", id="deep"),
        pytest.param(b"[1]", "invalid_json_line", "$: expected an object", id="no-object"),
        pytest.param(b'{"a": NaN}', "invalid_json_line", "not valid JSON", id="nan"),
        pytest.param(b'{"custom_id":"a","body":{}}', "missing_required_parameter", "$.url", id="no-url"),
        pytest.param(
            b'{"custom_id":"a","url":1,"body":{}}', "missing_required_parameter", "$.url", id="url-of-no-text"
        ),
        pytest.param(
            b'{"custom_id":"a","url":"/v1/images"}', "invalid_url", "$.url: no endpoint for batches", id="unknown-url"
        ),
        pytest.param(b'{"custom_id":"a","url":"http://x/v1/responses"}', "invalid_url", "$.url", id="another-host"),
        pytest.param(
            b'{"custom_id":"a","method":"GET","url":"/v1/responses"}', "invalid_method", "$.method", id="method"
        ),
        pytest.param(b'{"custom_id":"a","url":"/v1/responses"}', "missing_required_parameter", "$.body", id="no-body"),
        pytest.param(
            b'{"custom_id":"a","url":"/v1/responses","body":[]}', "missing_required_parameter", "$.body", id="list-body"
        ),
        pytest.param(b'{"url":"/v1/responses","body":{}}', "missing_required_parameter", "$.custom_id", id="no-id"),
        pytest.param(b'{"custom_id":"","params":{}}', "missing_required_parameter", "$.custom_id", id="empty-id"),
        pytest.param(b'{"custom_id":7,"params":{}}', "missing_required_parameter", "$.custom_id", id="number-id"),
        pytest.param(b'{"custom_id":"a","params":[]}', "missing_required_parameter", "$.params", id="params"),
        pytest.param(
            b'{"custom_id":"' + b"x" * 513 + b'","params":{}}', "invalid_custom_id", "longer than 512", id="long-id"
        ),
        pytest.param(b'{"question": 1}', "invalid_request", "no request that is known", id="unknown"),
    ],
)
def test_a_line_that_asks_nothing_is_refused(text: bytes, code: str, told: str) -> None:
    with pytest.raises(BadLineError) as caught:
        decode_line(text, 3)
    assert (caught.value.code, caught.value.number) == (code, 3)
    assert told in str(caught.value)


@given(
    st.binary(max_size=60) | st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_a_line_or_refused(text: bytes) -> None:
    try:
        line = decode_line(text, 1)
    except BadLineError:
        return
    assert line.custom_id


@pytest.mark.parametrize("url", ["/v1beta/models/{model}:generateContent", "", "/", "v1/responses", "/v1/v1/responses"])
def test_what_is_no_path_of_ours_asks_nothing(url: str) -> None:
    assert endpoint_at(url) is None


FAILURE = Failure(kind="rate_limit", message="slow down")


@pytest.mark.parametrize(
    ("outcome", "answered"),
    [
        pytest.param(LineOutcome(body={"id": "x"}, request_id="req_1"), True, id="answer"),
        pytest.param(LineOutcome(status=429, body=get("chat").encode_error(FAILURE)[1]), False, id="error"),
        pytest.param(LineOutcome(unanswered="timeout"), False, id="timeout"),
        pytest.param(LineOutcome(unanswered="cancelled"), False, id="cancelled"),
        pytest.param(LineOutcome(unanswered="expired"), False, id="expired"),
    ],
)
def test_openai_lines_are_answered_in_their_form(outcome: LineOutcome, answered: bool) -> None:  # noqa: FBT001  a case
    text = json.dumps(openai("/v1/chat/completions")).encode()
    line, mark = decode_line(text, 2), mark_of(text, 2)
    written = encode_line(line, mark, outcome)
    told = json.loads(written)
    assert list(told) == ["id", "custom_id", "response", "error"]
    assert (told["id"], told["custom_id"]) == (str(mark), "a")
    assert (told["response"] is None) is (outcome.unanswered is not None)
    assert (told["error"] is None) is (outcome.unanswered is None)
    if told["response"] is not None:
        assert list(told["response"]) == ["status_code", "request_id", "body"]
    found = read_answer(written)
    assert found is not None
    assert (found.mark, found.ok) == (mark, answered)


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        pytest.param(LineOutcome(body=MESSAGE), "succeeded", id="answer"),
        pytest.param(LineOutcome(status=429, body=get("messages").encode_error(FAILURE)[1]), "errored", id="error"),
        pytest.param(LineOutcome(unanswered="timeout"), "errored", id="timeout"),
        pytest.param(LineOutcome(unanswered="cancelled"), "canceled", id="cancelled"),
        pytest.param(LineOutcome(unanswered="expired"), "expired", id="expired"),
    ],
)
def test_anthropic_lines_are_answered_as_their_sdk_reads_it(outcome: LineOutcome, kind: str) -> None:
    text = json.dumps({"custom_id": "b", "params": BODY}).encode()
    written = encode_line(decode_line(text, 4), mark_of(text, 4), outcome)
    read = MessageBatchIndividualResponse.model_validate_json(written)
    assert (read.custom_id, read.result.type) == ("b", kind)
    found = read_answer(written)
    assert found is not None
    assert (found.mark.number, found.ok) == (4, kind == "succeeded")


def test_a_line_is_one_for_every_reader() -> None:
    said = "a\u0085b\u2028c\u2029d\r\ne\x1cf"
    text = json.dumps(BODY | {"custom_id": said}).encode()
    written = encode_line(decode_line(text, 1), mark_of(text, 1), LineOutcome(body={"text": said}))
    assert len(written.decode().splitlines()) == 1
    told = json.loads(written)
    assert (told["custom_id"], told["response"]["body"]["text"]) == (said, said)


def test_what_was_lost_is_told() -> None:
    text = json.dumps(BODY).encode()
    written = encode_line(
        decode_line(text, 1), mark_of(text, 1), LineOutcome(body={}, losses=("$ top_k dropped (why)",))
    )
    assert json.loads(written)["losses"] == ["$ top_k dropped (why)"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"id":"batch_req_0_0000000000000000"}',
        b'{"id":"batch_req_1_00"}',
        b'{"id":"chatcmpl-1"}',
        b'{"id":7}',
        b"\xff",
        b"[" * 5000,
    ],
)
def test_what_is_no_answer_of_ours_has_no_mark(data: bytes) -> None:
    assert read_answer(data) is None


@pytest.mark.parametrize(
    ("data", "number", "text"),
    [
        pytest.param(b"\xef\xbb\xbf{}\r\n", 1, b"{}", id="byte-order-mark"),
        pytest.param(b"\xef\xbb\xbf{}\n", 2, b"\xef\xbb\xbf{}", id="mark-in-the-middle"),
        pytest.param(b" \t\r\n", 5, b"", id="blank"),
        pytest.param(b"{}", 9, b"{}", id="last-line"),
    ],
)
def test_what_a_line_says(data: bytes, number: int, text: bytes) -> None:
    assert text_of(data, number) == text
