"""Completions that are kept, in the dialect's words; the gateway's tests ask the same through the SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.features.stored_responses import StoredAnswer, StoreOptions
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.dialects.chat.stored import STATE, StoredChatStream, prepare
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

HI: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
HEL: JSONObject = {
    "id": "theirs",
    "object": "chat.completion.chunk",
    "created": 5,
    "model": "m",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}, "finish_reason": None}],
}
STOP: JSONObject = {**HEL, "choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]}
USAGE: JSONObject = {
    **HEL,
    "choices": [],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}


def shown(showing: StoredChatStream, *chunks: JSON) -> list[JSON]:
    """Return what the client gets for chunks; `[DONE]` is a text."""
    datas = [b"[DONE]" if chunk == "[DONE]" else json.dumps(chunk).encode() for chunk in chunks]
    told = [made.data for data in datas for made in showing.feed(ServerSentEvent(data))]
    return [data.decode() if data == b"[DONE]" else json.loads(data) for data in told]


@pytest.mark.parametrize(
    ("body", "wish"),
    [
        pytest.param(HI, StoreOptions(), id="nothing-said"),
        pytest.param({**HI, "store": False}, StoreOptions(), id="not"),
        pytest.param({**HI, "store": True}, StoreOptions(keep=True), id="kept"),
    ],
)
def test_what_a_request_wishes(body: JSONObject, wish: StoreOptions) -> None:
    assert STATE.wish(body) == wish


def test_a_wish_that_is_none() -> None:
    with pytest.raises(WireError, match=r"\$\.store: expected bool, got str"):
        STATE.wish({"store": "yes"})


@pytest.mark.parametrize(
    ("said", "prepared"),
    [
        pytest.param({"store": True, "metadata": {"a": "b"}}, {}, id="whole"),
        pytest.param({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}, id="stream"),
        pytest.param(
            {"stream": True, "stream_options": {"include_usage": False, "odd": 1}},
            {"stream": True, "stream_options": {"include_usage": True, "odd": 1}},
            id="options",
        ),
    ],
)
def test_a_request_for_a_server_that_keeps_nothing(said: JSONObject, prepared: JSONObject) -> None:
    assert prepare({**HI, **said}, HI["messages"]) == {**HI, **prepared}


def test_a_stream_is_folded_and_tells_the_usage_to_the_store_alone() -> None:
    showing = StoredChatStream(
        StoredAnswer(id="ours", wish=StoreOptions(keep=True), request={**HI, "stream": True, "metadata": {"a": "b"}})
    )
    assert shown(showing, {**HEL, "usage": None}, STOP, USAGE) == [{**HEL, "id": "ours"}, {**STOP, "id": "ours"}]
    assert showing.answer is None
    assert shown(showing, "[DONE]") == ["[DONE]"]
    answer = showing.answer
    assert answer is not None
    assert (answer["id"], answer["object"], answer["metadata"]) == ("ours", "chat.completion", {"a": "b"})
    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert answer["usage"]["total_tokens"] == 3


def test_who_asks_for_the_usage_gets_it() -> None:
    body = {**HI, "stream": True, "stream_options": {"include_usage": True}}
    showing = StoredChatStream(StoredAnswer(id="ours", wish=StoreOptions(keep=True), request=body))
    assert shown(showing, HEL, STOP, USAGE) == [{**chunk, "id": "ours"} for chunk in (HEL, STOP, USAGE)]


def test_a_stream_without_its_last_mark_is_whole_when_it_is_closed() -> None:
    showing = StoredChatStream(StoredAnswer(id="ours", wish=StoreOptions(keep=True), request=HI))
    shown(showing, HEL, STOP)
    showing.close()
    assert showing.answer is not None


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    showing = StoredChatStream(StoredAnswer(id="ours", wish=StoreOptions(keep=True), request=HI))
    shown(showing, HEL)
    showing.close()
    assert showing.answer is None


def test_parts_of_a_message_stand_apart_when_it_is_told_again() -> None:
    parts = [{"type": "text", "text": "Look"}]
    listed = STATE.listed([{"role": "user", "content": "Hi"}, {"role": "user", "content": parts}], "ours")
    assert listed == [
        {"id": "ours-0", "name": None, "role": "user", "content": "Hi", "content_parts": None},
        {"id": "ours-1", "name": None, "role": "user", "content": None, "content_parts": parts},
    ]
