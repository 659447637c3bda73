"""Assistant turns that follow each other are one turn: clients write one for each chunk, servers pair by turn."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.laws.strategies import CACHE_MARKS, EXTRAS, WORDS, maybe
from tests.laws.test_crossing import TARGET, misplaced
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import Part, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Message, Request

CHUNKS = WORDS.map("{}x".format)
SPOKEN: st.SearchStrategy[Part] = st.builds(Text, text=CHUNKS, cache=maybe(CACHE_MARKS)) | st.builds(
    Reasoning, text=WORDS
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Request, Request]:
    """A request whose assistant says everything in one turn, and the same in several turns."""
    ids = draw(st.lists(st.sampled_from(["a1", "b2", "c3", "d4"]), unique=True, max_size=3))
    spoken: list[Part] = draw(st.lists(SPOKEN, max_size=3))
    parts: list[Part] = [*spoken, *(ToolCall(id=call_id, name=f"f_{call_id}", arguments="{}") for call_id in ids)]
    cuts = sorted(draw(st.lists(st.integers(0, len(parts)), max_size=4)))
    pieces = [parts[start:end] for start, end in zip([0, *cuts], [*cuts, len(parts)], strict=True)]
    results = [ToolResult(call_id=call_id, content=(Text(text=f"of {call_id}"),)) for call_id in ids]
    before = Message(role="user", content=(Text(text="Hi"),))
    after = [Message(role="user", content=(result,)) for result in draw(st.permutations(results))]
    last = Message(role="user", content=(Text(text="Go on"),))
    whole = Message(role="assistant", content=tuple(parts), extra=draw(maybe(EXTRAS)))
    several = [Message(role="assistant", content=tuple(piece), extra=draw(maybe(EXTRAS))) for piece in pieces]
    request = Request(model="m")
    return (
        replace(request, messages=(before, whole, *after, last)),
        replace(request, messages=(before, *several, *after, last)),
    )


def written(request: Request, name: str, target: Target) -> tuple[JSONObject | str, Losses]:
    losses = Losses()
    try:
        return get(name).encode_request(request, losses, target), losses
    except WireError as error:
        return str(error), losses


@pytest.mark.parametrize("target", [Target(), TARGET], ids=["unknown", "able"])
@pytest.mark.parametrize("name", names())
@settings(max_examples=60)
@given(both=conversations())
def test_a_turn_in_pieces_is_written_as_the_whole(name: str, target: Target, both: tuple[Request, Request]) -> None:
    """findings-clients-1: however a turn is split, the server reads the same conversation."""
    whole, several = both
    body, losses = written(several, name, target)
    assert body == written(whole, name, target)[0]
    assert not [loss for loss in losses if "missing" in loss.why or "no call" in loss.why]
    assert misplaced(losses, several) == []


CALLS = (ToolCall(id="a1", name="f", arguments="{}"), ToolCall(id="b2", name="f", arguments="{}"))
RESULTS = [ToolResult(call_id=call.id, content=(Text(text=f"of {call.id}"),)) for call in CALLS]
USER = Message(role="user", content=(Text(text="Wait"),))


@pytest.mark.parametrize("between", [USER, replace(USER, role="system")], ids=["user", "system"])
@pytest.mark.parametrize("name", names())
def test_words_between_a_call_and_its_result_follow_the_result(name: str, between: Message) -> None:
    """findings-clients-1: a turn between calls and results, or between two results, makes no result missing."""
    said = Message(role="assistant", content=CALLS)
    one, other = (Message(role="user", content=(result,)) for result in RESULTS)
    for history in ([said, between, one, other], [said, one, between, other]):
        body, losses = written(Request(model="m", messages=(USER, *history)), name, Target())
        assert not [loss for loss in losses if "missing" in loss.why or "no call" in loss.why], body


def test_two_speakers_stay_apart_unless_the_first_calls() -> None:
    """A name tells two speakers apart; the results of calls come after both turns, so those are one."""
    anna = Message(role="assistant", name="anna", content=(Text(text="I am Anna."),))
    bert = Message(role="assistant", name="bert", content=(Text(text="I am Bert."),))
    losses = Losses()
    apart = get("chat").encode_request(Request(model="m", messages=(USER, anna, bert)), losses, Target())
    assert [message.get("name") for message in apart["messages"]] == [None, "anna", "bert"]
    calling = replace(anna, content=CALLS)
    body = get("chat").encode_request(Request(model="m", messages=(USER, calling, bert)), losses, Target())
    assert body["messages"][1]["content"] == "I am Bert."
    assert [str(loss) for loss in losses if loss.what in ("turn", "name")] == [
        "$.messages[1] turn approximated (joined with the assistant turns after it)",
        "$.messages[2] name dropped (the joined turn has one at most)",
    ]


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        pytest.param("Let me ", "see.", "Let me see.", id="chunks"),
        pytest.param("Hel", "lo", "Hello", id="word"),
        pytest.param("Yes.", " I do.", "Yes. I do.", id="sentences-of-chunks"),
        pytest.param("I look.", "Done.", "I look.\n\nDone.", id="turns"),
        pytest.param("I look.", "", "I look.", id="empty"),
    ],
)
def test_a_turn_after_a_whole_sentence_is_a_paragraph(one: str, other: str, joined: str) -> None:
    turns = (Message(role="assistant", content=(Text(text=text),)) for text in (one, other))
    body = get("chat").encode_request(Request(model="m", messages=(USER, *turns, USER)), Losses(), Target())
    assert body["messages"][1] == {"role": "assistant", "content": joined}


@pytest.mark.parametrize("count", [1000])
def test_the_work_grows_with_the_turns(count: int) -> None:
    """One part is placed once: the places of n turns are n."""
    turns = tuple(Message(role="assistant", content=(Text(text="x"),)) for _ in range(count))
    body = get("chat").encode_request(Request(model="m", messages=(USER, *turns, USER)), Losses(), Target())
    assert body["messages"][1] == {"role": "assistant", "content": "x" * count}
