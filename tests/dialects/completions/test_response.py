"""Answers of other dialects, written for a client of legacy completions: whole, streamed, and with its prompt again."""

import pytest

from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.requests.prompt_echo import marked
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get
from xenoglot.model.content import (
    Audio,
    Citation,
    Extra,
    Image,
    Logprob,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Remote,
    Text,
    ToolCall,
)
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, Started, TextDelta
from xenoglot.model.fold import unfold
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Prompt, Request, Sampling
from xenoglot.model.response import Candidate, Finish, Response

COMPLETIONS = get("completions")
STOP = Finish(reason="stop")
ASKED = Request(model="m", stream=True)


def answer(*candidates: tuple[Part, ...], finish: Finish = STOP) -> Response:
    return Response(id="r", model="m", candidates=tuple(Candidate(content=one, finish=finish) for one in candidates))


def whole(response: Response, request: Request = ASKED) -> tuple[list[JSONObject], list[Loss]]:
    losses = Losses()
    choices: list[JSONObject] = COMPLETIONS.encode_response(response, request, losses)["choices"]
    return choices, list(losses)


def streamed(events: list[Event], request: Request = ASKED) -> list[JSONObject]:
    written = through(events, COMPLETIONS.stream_encoder(request, Losses()))
    return [choice for one in written if one.data != b"[DONE]" for choice in decode_json(one.data)["choices"]]


def pieces(response: Response, request: Request = ASKED) -> list[tuple[int, str]]:
    return [(choice["index"], choice["text"]) for choice in streamed(list(unfold(response)), request)]


@pytest.mark.parametrize(
    ("part", "words", "how"),
    [
        (Text(text="a"), "a", []),
        (Text(text="a", citations=(Citation(kind="url_citation"),)), "a", [("url_citation", "dropped")]),
        (Refusal(text="no"), "no", [("refusal", "approximated")]),
        (Audio(transcript="spoken"), "spoken", [("audio", "approximated")]),
        (Opaque(dialect="x", data={}, text="told"), "told", [("part", "approximated")]),
        (Opaque(dialect="x", data={}), "", [("part", "dropped")]),
        (Reasoning(text="hm"), "", [("reasoning", "dropped")]),
        (ToolCall(id="1", name="f", arguments="{}"), "", [("tool_call", "dropped")]),
        (Image(source=Remote(url="u")), "", [("image", "dropped")]),
    ],
    ids=["text", "citation", "refusal", "audio", "opaque", "wordless", "reasoning", "call", "image"],
)
def test_what_is_left_of_a_part(part: Part, words: str, how: list[tuple[str, str]]) -> None:
    response = answer((part,))
    choices, losses = whole(response)
    assert choices[0]["text"] == words
    assert [(loss.what, loss.how) for loss in losses] == how
    assert {loss.where for loss in losses} <= {"$.candidates[0].content[0]"}
    assert "".join(text for _, text in pieces(response)) == words


def test_a_refusal_is_told_by_its_end() -> None:
    assert whole(answer((Refusal(text="no"),)))[0][0]["finish_reason"] == "content_filter"
    assert streamed(list(unfold(answer((Refusal(text="no"),)))))[-1]["finish_reason"] == "content_filter"


def test_a_word_of_another_dialect_stays_readable() -> None:
    finish = Finish(reason="pause", raw="pause_turn", dialect="x", explanation="long")
    choices, losses = whole(answer((), finish=finish))
    assert (choices[0]["finish_reason"], choices[0]["native_finish_reason"]) == ("stop", "pause_turn")
    assert [(loss.where, loss.what) for loss in losses] == [
        ("$.candidates[0].finish", "reason"),
        ("$.candidates[0].finish", "explanation"),
    ]


ECHO = Request(model="m", prompt=Prompt(texts=("Ab", (1, 2), "Cd"), echo=True), sampling=Sampling(n=2), stream=True)


def test_the_prompt_comes_again_where_its_maker_left_it_out() -> None:
    response = answer(*[(Text(text=str(number)),) for number in range(6)])
    choices, losses = whole(response, ECHO)
    assert [choice["text"] for choice in choices] == ["Ab0", "Ab1", "2", "3", "Cd4", "Cd5"]
    assert losses == [Loss("$.prompt", "echo", "dropped", "only the model knows the text of its tokens")]
    said: dict[int, str] = {}
    for index, text in pieces(response, ECHO):
        said[index] = said.get(index, "") + text
    assert list(said.values()) == ["Ab0", "Ab1", "2", "3", "Cd4", "Cd5"]


def test_the_prompt_comes_again_before_an_answer_that_says_nothing() -> None:
    assert whole(answer(()), ECHO)[0][0]["text"] == "Ab"
    assert pieces(answer(()), ECHO) == [(0, "Ab"), (0, "")]


def test_a_prompt_that_is_there_does_not_come_twice() -> None:
    there = marked(Text(text="Ab"), "engine")
    for response in (
        answer((there, Text(text="0"))),
        Response(candidates=(Candidate(content=(Text(text="Ab0"),), finish=STOP),), extra=Extra(dialect="completions")),
    ):
        assert whole(response, ECHO)[0][0]["text"] == "Ab0"
        assert "".join(text for _, text in pieces(response, ECHO)) == "Ab0"


def test_the_first_token_of_a_prompt_that_was_weighed() -> None:
    weighed = Text(text="Abc", logprobs=(Logprob(token="bc", logprob=-1.0, top=()),))
    response = answer((marked(weighed, "engine", "A"), Text(text="0", logprobs=(Logprob(token="0", logprob=-2.0),))))
    columns = {
        "tokens": ["A", "bc", "0"],
        "token_logprobs": [None, -1.0, -2.0],
        "top_logprobs": [None, {}, None],
        "text_offset": [0, 1, 3],
    }
    assert whole(response)[0][0]["logprobs"] == columns
    chunks = [choice["logprobs"] for choice in streamed(list(unfold(response))) if choice["logprobs"]]
    assert chunks == [
        {"tokens": ["A", "bc"], "token_logprobs": [None, -1.0], "top_logprobs": [None, {}], "text_offset": [0, 1]},
        {"tokens": ["0"], "token_logprobs": [-2.0], "text_offset": [3]},
    ]
    alone = answer((marked(Text(text="A"), "engine", "A"),))
    assert whole(alone)[0][0]["logprobs"] == {
        "tokens": ["A"],
        "token_logprobs": [None],
        "text_offset": [0],
    }


def test_offsets_count_from_the_prompt() -> None:
    weighed = Logprob(token="0", logprob=-1.0, bytes=(48,), top=(Logprob(token="x", logprob=-1.5),) * 2)
    request = Request(model="m", prompt=Prompt(texts=("Abc",), echo=True), stream=True)
    response = answer((Text(text="0", logprobs=(weighed,)),))
    choices, losses = whole(response, request)
    assert choices[0]["logprobs"] == {
        "tokens": ["0"],
        "token_logprobs": [-1.0],
        "top_logprobs": [{"x": -1.5}],
        "text_offset": [3],
    }
    assert [(loss.where, loss.what) for loss in losses] == [
        ("$.candidates[0].content[0].logprobs", "bytes"),
        ("$.candidates[0].content[0].logprobs", "top"),
    ]
    assert streamed(list(unfold(response)), request)[1]["logprobs"] == choices[0]["logprobs"]


def test_words_of_a_block_that_tells_them_at_its_end() -> None:
    opaque = Opaque(dialect="x", data={})
    events: list[Event] = [
        Started(),
        BlockStarted(part=opaque),
        BlockEnded(part=Opaque(dialect="x", data={}, text="told")),
        BlockStarted(part=Text(text="")),
        TextDelta(text="!"),
        BlockEnded(),
        Finished(finish=STOP),
    ]
    assert [choice["text"] for choice in streamed(events)] == ["told", "!", ""]
