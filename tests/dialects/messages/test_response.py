"""Whole answers: what they become, and what is made of answers from elsewhere."""

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.messages import MESSAGES
from xenoglot.errors import FailureError
from xenoglot.model.content import (
    Citation,
    Extra,
    Image,
    Opaque,
    Origin,
    Part,
    Reasoning,
    Refusal,
    Remote,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, FinishReason, Response, Usage

BODY: JSONObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
COUNTED = Usage(input_tokens=1, output_tokens=2)


def encoded(response: Response) -> tuple[JSONObject, list[str]]:
    losses = Losses()
    body = MESSAGES.encode_response(response, Request(model="asked"), losses)
    return body, [str(loss) for loss in losses]


def test_an_answer_in_canonical_values() -> None:
    """pitfall-69, U30: calls end the turn, and one without an id gets one derived from the answer's."""
    value = {
        **BODY,
        "content": [{"type": "text", "text": "A"}, {"type": "tool_use", "name": "f", "input": {"a": 1}}],
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 4,
            "cache_read_input_tokens": 5,
            "output_tokens": 6,
            "output_tokens_details": {"thinking_tokens": 2},
            "service_tier": "standard",
            "inference_geo": "us",
        },
        "container": {"id": "c"},
        "diagnostics": None,
    }
    response = MESSAGES.decode_response(value)
    assert response == Response(
        id="msg_1",
        model="m",
        candidates=(
            Candidate(
                content=(Text(text="A"), ToolCall(id="toolu_48aef36250ca8cfa798fbdf3", name="f", arguments='{"a":1}')),
                finish=Finish(reason="tool_calls", raw="end_turn", dialect="messages"),
                extra=Extra(dialect="messages", fields={"container": {"id": "c"}}),
            ),
        ),
        usage=Usage(
            input_tokens=12,
            output_tokens=6,
            cache_read=5,
            cache_write=4,
            reasoning=2,
            extra=Extra(dialect="messages", fields={"inference_geo": "us"}),
        ),
        service_tier="default",
        extra=Extra(dialect="messages", fields={"diagnostics": None}),
    )


@pytest.mark.parametrize(
    ("usage", "canonical"),
    [
        pytest.param({}, Usage(), id="nothing-said"),
        pytest.param({"input_tokens": 3}, Usage(input_tokens=3), id="pitfall-79-no-cache"),
        pytest.param(
            {"input_tokens": 0, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 0, "output_tokens": 0},
            Usage(input_tokens=7, cache_read=7, cache_write=0, output_tokens=0),
            id="pitfall-79-zero-is-said",
        ),
        pytest.param({"cache_read_input_tokens": 7}, Usage(cache_read=7), id="pitfall-79-half-said"),
    ],
)
def test_usage_both_ways(usage: JSONObject, canonical: Usage) -> None:
    """pitfall-78, pitfall-81: cached tokens are inside the canonical input, thinking inside the output."""
    response = MESSAGES.decode_response({**BODY, "usage": usage})
    assert response.usage == canonical
    assert encoded(response)[0]["usage"] == usage


def test_an_error_in_place_of_an_answer() -> None:
    """U23."""
    with pytest.raises(FailureError) as caught:
        MESSAGES.decode_response({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    assert caught.value.failure == Failure(
        kind="overloaded", message="Overloaded", dialect="messages", raw_type="overloaded_error"
    )


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "end_turn"),
        ("stop_sequence", "stop_sequence"),
        ("length", "max_tokens"),
        ("context", "model_context_window_exceeded"),
        ("tool_calls", "tool_use"),
        ("refusal", "refusal"),
        ("pause", "pause_turn"),
        ("compaction", "compaction"),
    ],
)
def test_reasons_of_the_end(reason: FinishReason, word: str) -> None:
    """pitfall-68, pitfall-71: and back again."""
    finish = Finish(reason=reason, raw="w", dialect="chat")
    body, losses = encoded(Response(id="x", model="m", candidates=(Candidate(finish=finish),), usage=COUNTED))
    assert body == {**BODY, "id": "x", "stop_reason": word}
    assert losses == []
    again = MESSAGES.decode_response(body).candidates[0].finish
    assert again == Finish(reason=reason, raw=word, dialect="messages")


STOP = Finish(reason="stop", raw="stop", dialect="chat")


@pytest.mark.parametrize(
    ("parts", "content", "stop_reason", "losses"),
    [
        pytest.param([Text(text="")], [{"type": "text", "text": ""}], "end_turn", [], id="pitfall-73-empty"),
        pytest.param(
            [ToolCall(id="call_1", name="a.b", arguments="")],
            [{"type": "tool_use", "id": "call_1", "name": "a.b", "input": {}}],
            "tool_use",
            [],
            id="pitfall-69-94-calls",
        ),
        pytest.param(
            [ToolCall(id="c", name="f", arguments="[1")],
            [{"type": "tool_use", "id": "c", "name": "f", "input": {"_raw": "[1"}}],
            "tool_use",
            ["$.candidates[0].content[0] arguments approximated (no JSON object; written as `_raw`)"],
            id="U31-no-json",
        ),
        pytest.param(
            [Refusal(text="No.")],
            [{"type": "text", "text": "No."}],
            "refusal",
            ["$.candidates[0].content[0] refusal approximated (written as text)"],
            id="pitfall-72-refusal",
        ),
        pytest.param(
            [Reasoning(text="hm"), Reasoning(summary=("a", "b"))],
            [
                {"type": "thinking", "thinking": "hm", "signature": "xenoglot:unsigned"},
                {"type": "thinking", "thinking": "a\n\nb", "signature": "xenoglot:unsigned"},
            ],
            "end_turn",
            ["$.candidates[0].content[1] summary approximated (written as the thinking itself)"],
            id="pitfall-77-unsigned",
        ),
        pytest.param(
            [Reasoning(text="hm", signature="s", origin=Origin(dialect="r", provider="p"))],
            [{"type": "thinking", "thinking": "hm", "signature": "xenoglot:sealed:WyJyIiwicCIsInMiLG51bGxd"}],
            "end_turn",
            ["$.candidates[0].content[0] signature emulated (only r can open it; wrapped to come back)"],
            id="pitfall-50-anothers-seal",
        ),
        pytest.param(
            [Text(text="x", citations=(Citation(kind="url_citation", url="u", title="T", start=0, end=1),))],
            [
                {
                    "type": "text",
                    "text": "x",
                    "citations": [
                        {
                            "type": "web_search_result_location",
                            "url": "u",
                            "title": "T",
                            "cited_text": "",
                            "encrypted_index": "",
                        }
                    ],
                }
            ],
            "end_turn",
            [
                (
                    "$.candidates[0].content[0].citations[0] citation approximated"
                    " (written as a `web_search_result_location`)"
                )
            ],
            id="citation",
        ),
        pytest.param(
            [Image(source=Remote(url="u")), Opaque(dialect="r", data={}), Opaque(dialect="r", data={}, text="w")],
            [{"type": "text", "text": "w"}],
            "end_turn",
            [
                "$.candidates[0].content[0] image dropped (it has no place in a turn of role `assistant`)",
                "$.candidates[0].content[1] part dropped (only r understands it)",
                "$.candidates[0].content[2] part approximated (only r understands it; its words are written)",
            ],
            id="no-place",
        ),
    ],
)
def test_answers_from_elsewhere(
    parts: list[Part], content: list[JSONObject], stop_reason: str, losses: list[str]
) -> None:
    answer = Response(id="x", candidates=(Candidate(content=tuple(parts), finish=STOP),), usage=COUNTED)
    body, lost = encoded(answer)
    assert body == {**BODY, "id": "x", "model": "asked", "content": content, "stop_reason": stop_reason}
    assert lost == losses


def test_what_nobody_said_is_said_to_be_made_up() -> None:
    candidates = tuple(Candidate(content=(Text(text=text),), finish=STOP) for text in "ab")
    body, losses = encoded(Response(id="x", model="m", candidates=candidates))
    counted = {"input_tokens": 0, "output_tokens": 0}
    assert body == {**BODY, "id": "x", "content": [{"type": "text", "text": "a"}], "usage": counted}
    assert losses == [
        "$.candidates[1] candidate dropped (an answer of the dialect is one)",
        "$.usage input_tokens approximated (not reported, and the dialect requires a number: 0)",
        "$.usage output_tokens approximated (not reported, and the dialect requires a number: 0)",
    ]


def test_findings_c6_an_id_of_any_characters_comes_back() -> None:
    """Kimi's ids (`functions.f:0`) fit the pattern of the dialect's clients, and are the model's again in a request."""
    call = ToolCall(id="functions.f:0", name="f", arguments="{}")
    body, told = encoded(Response(id="1", candidates=(Candidate(content=(call,)),), usage=COUNTED))
    blocks = body["content"]
    assert isinstance(blocks, list)
    assert blocks == [{"type": "tool_use", "id": "toolu_as_functions_2ef_3a0", "name": "f", "input": {}}]
    assert told == []
    result: JSONObject = {"type": "tool_result", "tool_use_id": "toolu_as_functions_2ef_3a0", "content": "ok"}
    for more in ({}, {"cache_control": {"type": "ephemeral", "ttl": "1h"}}):  # the quick way, and the general one
        turns: list[JSONObject] = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{**block, **more} for block in blocks if isinstance(block, dict)]},
            {"role": "user", "content": [{**result, **more}]},
        ]
        asked: JSONObject = {"model": "m", "max_tokens": 1, "messages": [*turns]}
        request = MESSAGES.decode_request(asked)
        (again,), (answered,) = request.messages[1].content, request.messages[2].content
        assert isinstance(again, ToolCall)
        assert isinstance(answered, ToolResult)
        assert [again.id, answered.call_id] == ["functions.f:0"] * 2
        assert MESSAGES.encode_request(request, Losses(), Target()) == asked
