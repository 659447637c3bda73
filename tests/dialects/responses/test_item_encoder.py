"""The items of an answer, written for a client: their ids, and which parts stand in one."""

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.dialects.responses.item_decoder import decode_output, derived_id
from xenoglot.dialects.responses.item_encoder import encode_output, item_id, spans
from xenoglot.model.content import (
    Audio,
    Image,
    Logprob,
    Opaque,
    Origin,
    Part,
    Reasoning,
    Refusal,
    Remote,
    Text,
    ToolCall,
)
from xenoglot.model.json import JSON, JSONObject

A, B = Text(text="a"), Text(text="b")
CALL = ToolCall(id="c1", name="f")
NEW: JSONObject = {"type": "x_call", "id": "x_1"}


def written(*parts: Part) -> tuple[list[JSONObject], list[str]]:
    losses = Losses()
    return encode_output(parts, "resp_1", losses), [str(loss) for loss in losses]


def text(words: str) -> JSONObject:
    return {"type": "output_text", "text": words, "annotations": [], "logprobs": []}


def message(place: int, *content: JSON) -> JSONObject:
    head = {"type": "message", "id": f"msg_1_{place}", "status": "completed", "role": "assistant"}
    return {**head, "content": list(content)}


def test_an_answer_of_a_stranger() -> None:
    """pitfall-57, pitfall-74: adjacent words are one message, and each item has an id of its kind and place."""
    items, lost = written(Reasoning(text="t", summary=("s",)), A, Refusal(text="r"), CALL, B)
    assert items == [
        {
            "type": "reasoning",
            "id": "rs_1_0",
            "status": "completed",
            "summary": [{"type": "summary_text", "text": "s"}],
            "content": [{"type": "reasoning_text", "text": "t"}],
        },
        message(1, text("a"), {"type": "refusal", "refusal": "r"}),
        {
            "type": "function_call",
            "id": "fc_1_2",
            "status": "completed",
            "call_id": "c1",
            "name": "f",
            "arguments": "{}",
        },
        message(3, text("b")),
    ]
    assert lost == []


@pytest.mark.parametrize(
    ("part", "seal", "losses"),
    [
        (
            Reasoning(text="t", signature="s", origin=Origin(dialect="messages", provider="acme")),
            {"encrypted_content": "xenoglot:sealed:WyJtZXNzYWdlcyIsImFjbWUiLCJzIixudWxsXQ=="},
            ["$.candidates[0].content[0] seal emulated (only messages can open it; wrapped to come back)"],
        ),
        (Reasoning(text="t", encrypted="e", origin=Origin(dialect="responses")), {"encrypted_content": "e"}, []),
        (
            Reasoning(text="t", signature="s", encrypted="e"),
            {},
            [
                "$.candidates[0].content[0] signature dropped (the dialect has encrypted content alone)",
                "$.candidates[0].content[0] encrypted dropped (its origin is unknown)",
            ],
        ),
    ],
)
def test_seals(part: Reasoning, seal: JSONObject, losses: list[str]) -> None:
    """pitfall-51, pitfall-58: another's comes back in our wrapping."""
    items, lost = written(part)
    thought = {"type": "reasoning", "id": "rs_1_0", "status": "completed", "summary": []}
    assert items == [{**thought, "content": [{"type": "reasoning_text", "text": "t"}], **seal}]
    assert lost == losses


def test_what_cannot_be_said() -> None:
    items, lost = written(
        Audio(id="a", transcript="t"),
        Image(source=Remote("https://example.com")),
        Opaque(dialect="messages", data={"type": "y"}),
        Opaque(dialect="responses", data=NEW),
        CALL,
    )
    assert items[:2] == [message(0, text("t")), NEW]
    assert items[2]["id"] == "fc_1_2"
    assert lost == [
        "$.candidates[0].content[0] audio approximated (written as its transcript)",
        "$.candidates[0].content[1] image dropped (only inline data can be written)",
        "$.candidates[0].content[2] y dropped (only messages has it)",
    ]


def test_probabilities_have_all_that_is_required() -> None:
    """pitfall-119: what the dialect requires is filled in."""
    items, lost = written(Text(text="a", logprobs=(Logprob(token="a", logprob=-0.5),)))
    assert items[0]["content"][0]["logprobs"] == [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]
    assert lost == ["$.candidates[0].content[0] logprobs approximated (missing bytes and alternatives are filled in)"]


@pytest.mark.parametrize(
    "items",
    [
        [{"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}],
        [{"type": "message", "role": "assistant", "status": "incomplete", "phase": "commentary", "content": []}],
        [{"type": "message", "id": "1", "role": "assistant", "content": [{"type": "x_new"}, text("a"), {"type": "x"}]}],
        [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}}],
        [{"type": "function_call", "id": "fc_1", "name": "f"}],
        [{"type": "reasoning", "id": "rs_1", "content": [], "summary": []}, NEW],
    ],
)
def test_own_items_are_written_as_they_came(items: JSON) -> None:
    assert encode_output(decode_output(items, "$.output"), "resp_1", Losses()) == items


def test_adjacent_messages_stay_two() -> None:
    items = [message(0, text("a"), text("b")), message(1, text("c"))]
    parts = decode_output(items, "$.output")
    assert spans(parts) == [(0, 2), (2, 3)]


def test_calls_without_ids_get_some_that_are_the_same_each_time() -> None:
    call = {"type": "function_call", "name": "f", "arguments": ""}
    parts = decode_output([call, {**call, "id": "fc_1"}], "$.output", "resp_1")
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    assert ids == [derived_id("resp_1", "$.output[0]"), "fc_1"]
    assert ids[0] != derived_id("resp_2", "$.output[0]")


@pytest.mark.parametrize(
    ("answer_id", "expected"),
    [
        ("resp_1", "fc_1_3"),
        ("", "fc_3"),
        ("chatcmpl-1", "fc_chatcmpl-1_3"),
        ("a b", "fc_a_b_3_94adcc5a"),
    ],
)
def test_ids(answer_id: str, expected: str) -> None:
    """pitfall-74: they begin as those of their kind, and are short enough."""
    assert item_id("function_call", answer_id, 3) == expected


def test_unknown_fields_of_a_citation_go_home() -> None:
    """OpenRouter tells what the page said."""
    note = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1, "content": "said"}
    content = {"type": "output_text", "text": "a", "annotations": [note], "logprobs": []}
    items = [{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [content]}]
    losses = Losses()
    assert encode_output(decode_output(items, "$.output"), "resp_1", losses) == items
    assert list(losses) == []


def test_ids_that_are_empty_go_home() -> None:
    items = [
        {"type": "message", "id": "", "role": "assistant", "content": []},
        {"type": "reasoning", "id": "", "summary": []},
        {"type": "function_call", "id": "", "call_id": "c", "name": "f", "arguments": ""},
    ]
    assert encode_output(decode_output(items, "$.output"), "resp_1", Losses()) == items


def test_an_unknown_content_that_calls_itself_a_message_is_carried() -> None:
    odd = Opaque(dialect="responses", data={"type": "message"})
    assert encode_output([Text(text="a"), odd], "resp_1", Losses())[1] == {"type": "message"}
