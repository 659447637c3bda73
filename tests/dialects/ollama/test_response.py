"""Whole answers: what the vectors do not say."""

import pytest
from msgspec.structs import replace

from tests.dialects.ollama.wire import AT, CREATED, piece
from xenoglot.codec.loss import Losses
from xenoglot.dialects.ollama import OLLAMA, OLLAMA_GENERATE
from xenoglot.errors import WireError
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.json import JSON
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response, Usage

ASKED = Request(model="asked")


def test_a_strangers_answer() -> None:
    call = ToolCall(id="c", name="f", arguments="{}")
    answer = Response(
        id="msg_1",
        created=CREATED,
        candidates=(
            Candidate(
                content=(Text(text="a"), Reasoning(text="b"), Text(text="c"), call),
                finish=Finish(reason="stop_sequence", stop_sequence="END"),
            ),
            Candidate(),
        ),
        usage=Usage(input_tokens=1, output_tokens=2, reasoning=1, total=9),
        service_tier="flex",
    )
    losses = Losses()
    assert OLLAMA.encode_response(answer, ASKED, losses) == {
        "model": "asked",
        "created_at": "2025-10-26T17:21:21Z",
        "message": {
            "role": "assistant",
            "content": "ac",
            "thinking": "b",
            "tool_calls": [{"id": "c", "function": {"index": 0, "name": "f", "arguments": {}}}],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 1,
        "eval_count": 2,
    }
    assert list(map(str, losses)) == [
        "$.candidates[1] candidate dropped (the wire holds one answer)",
        "$.candidates[0] finish approximated (`stop_sequence` is written as `stop`)",
        "$.candidates[0].finish stop_sequence dropped (there is no field for it)",
        "$.usage reasoning dropped (the dialect has no such field)",
        "$.usage total dropped (the dialect has no such field)",
        "$.candidates[0] order approximated (reasoning comes first, then images, then words, and calls last)",
        "$ id dropped (an answer has no such field)",
        "$ service_tier dropped (an answer has no such field)",
    ]


def test_pictures_go_to_clients_of_this_server_alone() -> None:
    """Python's SDK fails on them, and with them the whole answer is lost."""
    own = piece("Here", done=True, images=["iVBORw0KGgoAAAAN"])
    answer, losses = OLLAMA.decode_response(own), Losses()
    assert OLLAMA.encode_response(answer, ASKED, losses) == own
    strange = OLLAMA.encode_response(replace(answer, extra=None), ASKED, losses)
    assert strange["message"] == {"role": "assistant", "content": "Here"}
    assert list(map(str, losses)) == ["$.candidates[0].content[0] image dropped (clients fail on one in an answer)"]


def test_the_other_endpoint_says_the_same_elsewhere() -> None:
    answer = Response(candidates=(Candidate(content=(Text(text="a"),), finish=Finish(reason="length")),))
    assert OLLAMA_GENERATE.encode_response(answer, ASKED, Losses()) == {
        "model": "asked",
        "created_at": "1970-01-01T00:00:00Z",
        "response": "a",
        "done": True,
        "done_reason": "length",
    }


@pytest.mark.parametrize("created", [None, 0, -5, 10**15])
def test_a_time_that_cannot_be_written_is_that_of_nobody(created: int | None) -> None:
    assert OLLAMA.encode_response(Response(created=created), ASKED, Losses())["created_at"] == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "yesterday", ""])
def test_a_time_of_nobody_is_none(text: str) -> None:
    assert OLLAMA.decode_response({**piece(done=True), "created_at": text}).created is None


def test_a_time_is_read_to_the_second() -> None:
    """Go writes nine digits of it."""
    answers = [OLLAMA.decode_response({**piece(done=True), "created_at": text}) for text in (AT, AT[:-1] + "123+00:00")]
    assert [answer.created for answer in answers] == [CREATED, CREATED]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"error": "no"}, "$.error"),
        ({"done": True}, "$.message"),
        ([], "$"),
        ({"message": {"content": "", "tool_calls": [{}]}}, "$.message.tool_calls[0].function"),
    ],
)
def test_what_is_no_answer(body: JSON, path: str) -> None:
    with pytest.raises(WireError) as caught:
        OLLAMA.decode_response(body)
    assert caught.value.path == path
    with pytest.raises(WireError):
        OLLAMA_GENERATE.decode_response(body)


def test_calls_without_ids_get_the_same_again_and_none_twice() -> None:
    """U30."""
    call = {"function": {"name": "f", "arguments": {}}}
    body = piece(done=True, tool_calls=[call, call])
    once, again = OLLAMA.decode_response(body), OLLAMA.decode_response(body)
    later = OLLAMA.decode_response({**body, "created_at": "2025-10-26T17:21:22Z"})
    ids = [part.id for answer in (once, later) for part in answer.candidates[0].content if isinstance(part, ToolCall)]
    assert once == again
    assert len(set(ids)) == 4
