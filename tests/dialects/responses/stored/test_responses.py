"""Answers that are kept, in the dialect's words; the gateway's tests ask the same through the SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.features.stored_responses import StoredAnswer, StoreOptions
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.dialects.responses.stored.responses import (
    STATE,
    StoredResponseStream,
    decode_wish,
    ending,
    opening,
    prepare,
)
from xenoglot.errors import WireError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

SEED = "resp_" + "0123456789abcdef" * 3
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def event(data: JSON) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data).encode(), "name")


@pytest.mark.parametrize(
    ("body", "wish"),
    [
        pytest.param({}, StoreOptions(keep=True), id="nothing-said"),
        pytest.param({"store": None, "background": None}, StoreOptions(keep=True), id="null-says-nothing"),
        pytest.param({"store": False, "input": "Hi"}, StoreOptions(), id="pitfall-61-nothing-to-keep"),
        pytest.param({"previous_response_id": "resp_1"}, StoreOptions(keep=True, previous="resp_1"), id="previous"),
        pytest.param({"conversation": "conv_1"}, StoreOptions(keep=True, conversation="conv_1"), id="conversation"),
        pytest.param({"conversation": {"id": "conv_1"}}, StoreOptions(keep=True, conversation="conv_1"), id="object"),
        pytest.param({"background": True}, StoreOptions(keep=True, background=True), id="background"),
        pytest.param(
            {"store": False, "input": [{"type": "item_reference", "id": "a"}, {"id": "b"}, {"id": "c", "type": None}]},
            StoreOptions(references=("a", "b", "c")),
            id="pitfall-59-references",
        ),
    ],
)
def test_what_a_request_wishes(body: JSONObject, wish: StoreOptions) -> None:
    assert decode_wish(body) == wish


@pytest.mark.parametrize(
    ("body", "path"),
    [
        pytest.param([], "$", id="no-object"),
        pytest.param({"store": "yes"}, "$.store", id="store"),
        pytest.param({"background": 1}, "$.background", id="background"),
        pytest.param({"previous_response_id": 1}, "$.previous_response_id", id="previous"),
        pytest.param({"conversation": 1}, "$.conversation", id="conversation"),
        pytest.param({"conversation": {}}, "$.conversation.id", id="conversation-without-id"),
        pytest.param({"previous_response_id": "a", "conversation": "b"}, "$.previous_response_id", id="both"),
        pytest.param({"background": True, "store": False}, "$.background", id="background-not-kept"),
        pytest.param({"input": [{"type": "item_reference"}]}, "$.input.id", id="reference-without-id"),
    ],
)
def test_wishes_that_are_none(body: JSON, path: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_wish(body)
    assert caught.value.path == path


@given(ANY_JSON)
def test_any_json_is_a_wish_or_no_request(body: JSON) -> None:
    try:
        decode_wish(body)
    except WireError:
        return
    assert isinstance(body, dict)


def test_a_request_without_history_says_it_as_it_did() -> None:
    body = {"model": "m", "store": True, "background": True, "input": "Hi", "odd": [1]}
    assert list(prepare(body, STATE.items(body)).items()) == [
        ("model", "m"),
        ("store", False),
        ("input", "Hi"),
        ("odd", [1]),
    ]


def test_history_stands_before_the_input() -> None:
    body = {"model": "m", "previous_response_id": "resp_1", "instructions": "Be brief.", "input": "And?"}
    before: list[JSON] = [
        {"type": "message", "id": "msg_1", "role": "assistant", "content": []},
        *STATE.listed([{"role": "user", "content": "Hi"}], SEED),
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "sealed"},
    ]
    assert prepare(body, [*before, *STATE.items(body)]) == {
        "model": "m",
        "instructions": "Be brief.",
        "store": False,
        "input": [
            before[0],
            {
                "type": "message",
                "status": "completed",
                "role": "user",
                "content": [{"type": "input_text", "text": "Hi"}],
            },
            before[3],
            {"type": "message", "role": "user", "content": "And?"},
        ],
    }


@pytest.mark.parametrize(
    ("body", "include"),
    [
        pytest.param({}, None, id="no-word-of-reasoning"),
        pytest.param({"reasoning": {"effort": "low"}}, ["reasoning.encrypted_content"], id="reasoning"),
        pytest.param(
            {"reasoning": {}, "include": ["message.output_text.logprobs"]},
            ["message.output_text.logprobs", "reasoning.encrypted_content"],
            id="beside-others",
        ),
        pytest.param(
            {"reasoning": {}, "include": ["reasoning.encrypted_content"]}, ["reasoning.encrypted_content"], id="asked"
        ),
    ],
)
def test_pitfall_61_seals_are_asked_for(body: JSONObject, include: list[str] | None) -> None:
    assert STATE.ask_seals(body).get("include") == include


NAME = "k" + SEED.removeprefix("resp_") + "i0"


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        pytest.param(
            {"role": "user", "content": "Hi"},
            {
                "id": f"msg_{NAME}",
                "type": "message",
                "status": "completed",
                "role": "user",
                "content": [{"type": "input_text", "text": "Hi"}],
            },
            id="text",
        ),
        pytest.param(
            {"role": "assistant", "content": "Hi", "status": "incomplete"},
            {
                "id": f"msg_{NAME}",
                "type": "message",
                "status": "incomplete",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
            },
            id="the-models-text",
        ),
        pytest.param(
            {"type": "message", "id": "msg_1", "content": []},
            {"type": "message", "id": "msg_1", "status": "completed", "content": []},
            id="an-id-of-its-own",
        ),
        pytest.param(
            {"type": "function_call_output", "call_id": "c"},
            {"type": "function_call_output", "call_id": "c", "id": f"fc_{NAME}"},
            id="result",
        ),
        pytest.param({"type": "new_kind", "x": 1}, {"type": "new_kind", "x": 1, "id": f"item_{NAME}"}, id="unknown"),
    ],
)
def test_items_are_shown_with_ids(item: JSONObject, shown: JSONObject) -> None:
    assert STATE.listed([item], SEED) == [shown]


class TestStreams:
    """The stream of a kept answer."""

    kept = StoredAnswer(id="resp_ours", wish=StoreOptions(keep=True, previous="resp_0"), request={})

    def test_an_answer_in_an_event_is_ours(self) -> None:
        showing = StoredResponseStream(self.kept)
        shown = [
            json.loads(told.data)
            for frame in (
                {"type": "response.created", "sequence_number": 3, "response": {"id": "theirs"}},
                {"type": "keepalive"},
                {
                    "type": "response.incomplete",
                    "sequence_number": 9,
                    "response": {"id": "theirs", "status": "incomplete"},
                },
            )
            for told in showing.feed(event(frame))
        ]
        ours = {"id": "resp_ours", "background": False, "previous_response_id": "resp_0", "store": True}
        assert shown == [
            {"type": "response.created", "sequence_number": 0, "response": ours},
            {"type": "keepalive"},
            {"type": "response.incomplete", "sequence_number": 1, "response": {**ours, "status": "incomplete"}},
        ]
        assert showing.answer == shown[-1]["response"]

    def test_in_the_background_it_goes_on_from_the_opening(self) -> None:
        wish = StoreOptions(keep=True, background=True, conversation="conv_1")
        showing = StoredResponseStream(StoredAnswer(id="resp_ours", wish=wish, request={}, created=5))
        before = [json.loads(told.data) for told in opening({"id": "resp_ours", "status": "queued"})]
        assert [(told["type"], told["sequence_number"]) for told in before] == [
            ("response.created", 0),
            ("response.queued", 1),
        ]
        assert showing.feed(event({"type": "response.created", "sequence_number": 0, "response": {}})) == ()
        (told,) = showing.feed(event({"type": "response.in_progress", "sequence_number": 1, "response": {}}))
        assert json.loads(told.data) == {
            "type": "response.in_progress",
            "sequence_number": 2,
            "response": {
                "id": "resp_ours",
                "background": True,
                "previous_response_id": None,
                "store": True,
                "conversation": {"id": "conv_1"},
                "created_at": 5,
            },
        }

    def test_one_that_failed_ends_so_and_one_that_was_cancelled_just_ends(self) -> None:
        failure = Failure(kind="internal", message="gone")
        failed = STATE.mark({"id": "resp_1", "status": "in_progress"}, "failed", failure)
        assert failed["error"]["message"] == "gone"
        assert [json.loads(told.data) for told in ending(failed, 7)] == [
            {"type": "response.failed", "sequence_number": 7, "response": failed}
        ]
        assert ending(STATE.mark(failed, "cancelled", None), 7) == ()
