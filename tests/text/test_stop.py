"""Stop strings: where an answer ends, what is given out before, and that no cutting of the words changes it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.laws.strategies import TEXTS
from tests.laws.streams import MORE_HEADERS, streams
from tests.text.parser.test_automaton import naive
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.requests.prompt_echo import marked
from xenoglot.codec.stage import Pipeline, through
from xenoglot.errors import WireError
from xenoglot.model.content import Citation, Logprob, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold, unfold
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.text.stop import MOST_CHARACTERS, StopStage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.model.content import Part

STARTED = Started(id="r")
TEXT = BlockStarted(part=Text(text=""))
ENDED = BlockEnded()
USED = UsageReported(usage=Usage(output_tokens=7))
OVER = Finished(finish=Finish(reason="stop", raw="stop", dialect="chat"))
LENGTH = Finished(finish=Finish(reason="length"))
FAILED = Failed(failure=Failure(kind="upstream", message="gone"))
SOURCE = CitationDelta(citation=Citation(kind="url_citation", url="https://example.com"))
THOUGHT = Reasoning(text="to END or not")
CALL = ToolCall(id="c", name="look", arguments='{"END":1}')


def text_events(*texts: str, candidate: int = 0) -> list[Event]:
    return [TextDelta(text=text, candidate=candidate) for text in texts]


def stopped(by: str, candidate: int = 0) -> Finished:
    return Finished(finish=Finish(reason="stop_sequence", stop_sequence=by), candidate=candidate)


def fed(stage: StopStage, events: Iterable[Event]) -> list[list[Event]]:
    """What each event made, and then the end."""
    lawful = Pipeline(stage, Grammar())
    return [list(lawful.feed(event)) for event in events]


@pytest.mark.parametrize(
    ("stops", "events", "made"),
    [
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("Hello", " world"), ENDED, USED, OVER],
            [[STARTED], [], [TEXT, *text_events("Hello")], text_events(" world"), [ENDED], [USED], [OVER]],
            id="none-met-whole-deltas-pass",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("Hello E", "N", "D and", " more"), ENDED, USED, OVER],
            [[STARTED], [], [TEXT, *text_events("Hello ")], [], [ENDED, stopped("END")], [], [], [USED], []],
            id="A11-A-W4-across-deltas",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("Hello E", "N", "d."), ENDED, OVER],
            [[STARTED], [], [TEXT, *text_events("Hello ")], [], text_events("E", "N", "d."), [ENDED], [OVER]],
            id="A-W4-held-back-and-given",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("EN"), ENDED, TEXT, *text_events("D"), ENDED, OVER],
            [[STARTED], [], [], [TEXT, *text_events("EN"), ENDED], [], [TEXT, *text_events("D")], [ENDED], [OVER]],
            id="not-across-blocks",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("END"), ENDED, OVER],
            [[STARTED], [], [stopped("END")], [], []],
            id="at-once-no-empty-block",
        ),
        pytest.param(
            ["b", "", "ab", "abc"],
            [STARTED, TEXT, *text_events("xabc")],
            [[STARTED], [], [TEXT, *text_events("x"), ENDED, stopped("ab")]],
            id="A3-A-W4-the-first-complete-the-longest",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("a E"), Ping(), USED, SOURCE, *text_events("ND"), SOURCE],
            [[STARTED], [], [TEXT, *text_events("a ")], [Ping()], [USED], [SOURCE], [ENDED, stopped("END")], []],
            id="what-has-no-words-passes",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("E"), SOURCE, *text_events("x"), ENDED, LENGTH],
            [[STARTED], [], [], [TEXT, SOURCE], text_events("E", "x"), [ENDED], [LENGTH]],
            id="citation-opens-a-block",
        ),
        pytest.param(
            ["END"],
            [STARTED, BlockStarted(part=Text(text="an E")), *text_events("ND")],
            [[STARTED], [TEXT, *text_events("an ")], [ENDED, stopped("END")]],
            id="words-of-the-header",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, ENDED, OVER],
            [[STARTED], [], [TEXT, ENDED], [OVER]],
            id="an-empty-block-stays",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, BlockEnded(part=Text(text="then END it")), OVER],
            [[STARTED], [], [TEXT, BlockEnded(part=Text(text="then ")), stopped("END")], []],
            id="told-once-more-at-the-end",
        ),
        pytest.param(
            ["END"],
            [STARTED, BlockStarted(part=CALL), ArgumentsDelta(text="END"), ENDED, TEXT, *text_events("END")],
            [
                [STARTED],
                [BlockStarted(part=CALL)],
                [ArgumentsDelta(text="END")],
                [ENDED],
                [],
                [Finished(finish=Finish(reason="tool_calls", stop_sequence="END"))],
            ],
            id="pitfall-70-calls-are-not-looked-at-and-wait",
        ),
        pytest.param(
            ["END"],
            [STARTED, BlockStarted(part=marked(Text(text="the END"), "e")), *text_events("END"), ENDED, OVER],
            [[STARTED], [BlockStarted(part=marked(Text(text="the END"), "e"))], text_events("END"), [ENDED], [OVER]],
            id="the-prompt-s-own-text",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("EN"), FAILED],
            [[STARTED], [], [], [TEXT, *text_events("EN"), FAILED]],
            id="a-failure-gives-out-what-came",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, *text_events("END"), FAILED],
            [[STARTED], [], [stopped("END")], []],
            id="a-failure-behind-the-end",
        ),
        pytest.param(
            ["END"],
            [STARTED, TEXT, OpaqueDelta(dialect="x", data=1), *text_events("", "E"), ENDED, OVER],
            [
                [STARTED],
                [],
                [TEXT, OpaqueDelta(dialect="x", data=1)],
                text_events(""),
                [],
                [*text_events("E"), ENDED],
                [OVER],
            ],
            id="unknown-events",
        ),
    ],
)
def test_what_is_given_out(stops: list[str], events: list[Event], made: list[list[Event]]) -> None:
    assert fed(StopStage(stops), events) == made


def test_candidates_stop_on_their_own() -> None:
    stage = StopStage(["END"], candidates=2)
    second = replace(TEXT, candidate=1)
    events = [STARTED, TEXT, second, *text_events("a E"), *text_events("b E", candidate=1), *text_events("ND", "more")]
    assert fed(stage, events) == [
        [STARTED],
        [],
        [],
        [TEXT, *text_events("a ")],
        [second, *text_events("b ", candidate=1)],
        [ENDED, stopped("END")],
        [],
    ]
    assert not stage.stopped
    rest = [*text_events("ND", candidate=1), FAILED, USED]
    assert [list(stage.feed(event)) for event in rest] == [
        [BlockEnded(candidate=1), stopped("END", candidate=1)],
        [],
        [USED],
    ]
    assert stage.stopped


def test_an_answer_that_ends_by_itself_is_read_to_its_end() -> None:
    """Its counts may stand behind its end."""
    stage = StopStage(["END"])
    fed(stage, [STARTED, TEXT, ENDED, OVER])
    assert not stage.stopped


def test_whole_deltas_are_the_same_objects() -> None:
    stage = StopStage(["END"])
    weighed = TextDelta(text="Hello", logprobs=(Logprob(token="Hello", logprob=-1.0),))
    (_, _, made, again) = fed(stage, [STARTED, TEXT, weighed, weighed])
    assert (made[1] is weighed, again[0] is weighed) == (True, True)


def tokens(*texts: str) -> tuple[Logprob, ...]:
    return tuple(Logprob(token=text, logprob=-1.0) for text in texts)


@pytest.mark.parametrize(
    ("deltas", "kept"),
    [
        pytest.param([("a END", ("a", " END"))], ("a", " END"), id="a-token-is-weighed-where-it-begins"),
        pytest.param([("a END", ("a ", "END"))], ("a ",), id="cut-with-its-text"),
        pytest.param([("a E", ("a", " E")), ("", ("",)), ("ND", ("ND",))], ("a", " E"), id="held-back"),
        pytest.param([("a", ("a",)), ("", ("?",)), ("END", ("END",))], ("a", "?"), id="without-a-text"),
        pytest.param([("a END", ())], (), id="none"),
        pytest.param([("a END", ("something", "else"))], ("something", "else"), id="of-other-words"),
    ],
)
def test_logprobs_stay_with_their_text(deltas: list[tuple[str, tuple[str, ...]]], kept: tuple[str, ...]) -> None:
    events: list[Event] = [TextDelta(text=text, logprobs=tokens(*weighed)) for text, weighed in deltas]
    given_out = fold(through([STARTED, TEXT, *events], StopStage(["END"])))
    text = "".join(text for text, _ in deltas).partition("END")[0]
    assert given_out == fold([STARTED, TEXT, TextDelta(text=text, logprobs=tokens(*kept)), ENDED, stopped("END")])


def test_deltas_without_words_are_not_held_for_ever() -> None:
    stage = StopStage(["END"])
    fed(stage, [STARTED, TEXT, *text_events("E")])
    weighed = TextDelta(text="", logprobs=tokens(""))
    passed = [bool(stage.feed(weighed)) for _ in range(3 * MOST_CHARACTERS)]
    assert (passed[0], passed[-1]) == (False, True)


def test_strings_that_are_too_long_are_refused() -> None:
    with pytest.raises(WireError) as caught:
        StopStage(["a" * MOST_CHARACTERS, "b"])
    assert str(caught.value) == "$.stop: found 16385 characters in all, expected at most 16384"


LETTERS = st.text("abc", max_size=16)
STOPS = st.lists(st.text("abc", max_size=5), max_size=4)
PARTS: st.SearchStrategy[Part] = (
    st.builds(Text, text=LETTERS)
    | st.builds(Reasoning, text=LETTERS)
    | st.builds(Refusal, text=LETTERS)
    | st.builds(ToolCall, id=st.just("c"), name=st.just("f"), arguments=LETTERS)
)
CONTENTS = st.lists(PARTS, max_size=4).map(tuple)


def ended(content: Sequence[Part], stops: list[str]) -> Candidate:
    """The answer as it is to be: up to the first stop string that is complete in a text."""
    words = [stop for stop in stops if stop]
    given_out: list[Part] = []
    for part in content:
        found = naive(words, part.text) if isinstance(part, Text) else None
        if found is None or not isinstance(part, Text):
            given_out.append(part)
            continue
        end, word = found
        cut = replace(part, text=part.text[: end - len(word)])
        called = any(isinstance(before, ToolCall) for before in given_out)
        finish = Finish(reason="tool_calls" if called else "stop_sequence", stop_sequence=word)
        return Candidate(content=(*given_out, *((cut,) if cut.text else ())), finish=finish)
    return Candidate(content=tuple(given_out), finish=OVER.finish)


def cut_up(events: Iterable[Event], cuts: st.DataObject) -> list[Event]:
    """The same events, the deltas cut anywhere."""
    made: list[Event] = []
    for event in events:
        if not isinstance(event, TextDelta):
            made.append(event)
            continue
        inner = cuts.draw(st.lists(st.integers(0, len(event.text)), max_size=6))
        places = sorted([0, *inner, len(event.text)])
        made += [replace(event, text=event.text[begin:end]) for begin, end in pairwise(places)]
    return made


def merged(events: Iterable[Event]) -> list[Event]:
    """The same events, deltas of one block joined."""
    made: list[Event] = []
    for event in events:
        last = made[-1] if made else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            made[-1] = replace(last, text=last.text + event.text)
        else:
            made.append(event)
    return made


@given(CONTENTS, STOPS, st.data())
def test_any_cutting_gives_the_same(content: tuple[Part, ...], stops: list[str], data: st.DataObject) -> None:
    """A-W4: what is given out is the text up to the first match, however it comes."""
    response = Response(id="r", candidates=(Candidate(content=content, finish=OVER.finish),))
    whole = list(through(unfold(response), Pipeline(StopStage(stops), Grammar())))
    pieces = list(through(cut_up(unfold(response), data), Pipeline(StopStage(stops), Grammar())))
    assert merged(pieces) == merged(whole)
    assert fold(pieces) == replace(response, candidates=(ended(content, stops),))


@given(LETTERS, STOPS)
def test_no_more_is_held_back_than_may_become_a_stop_string(text: str, stops: list[str]) -> None:
    stage = StopStage(stops)
    longest = max((len(stop) for stop in stops), default=0)
    fed(stage, [STARTED, TEXT])
    out = 0
    for read, character in enumerate(text, 1):
        events = stage.feed(TextDelta(text=character))
        if any(isinstance(event, Finished) for event in events):
            return
        out += sum(len(event.text) for event in events if isinstance(event, TextDelta))
        assert read - out <= max(longest - 1, 0)


@given(streams(MORE_HEADERS, most=2), st.lists(TEXTS, max_size=3))
def test_a_lawful_stream_stays_lawful(events: list[Event], stops: list[str]) -> None:
    list(through(events, Pipeline(StopStage(stops, candidates=2), Grammar())))


@given(streams(MORE_HEADERS, most=2), st.lists(st.just("\0 never \0"), max_size=1))
def test_a_stream_that_meets_none_says_the_same(events: list[Event], stops: list[str]) -> None:
    assert fold(through(events, StopStage(stops, candidates=2))) == fold(events)
