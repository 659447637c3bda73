"""What is drawn of an answer."""

from __future__ import annotations

import io

import pytest

from tests.terminal.drawn import Clock, Drawn
from xenoglot.model.content import Citation, Image, Inline, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import ReasoningDelta
from xenoglot.model.fold import unfold
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.terminal.display.renderer import PlainRenderer
from xenoglot.terminal.display.screen import AnswerView, format_seconds, renderer_of

STOP = Finish(reason="stop")


def drawing(*parts: object, finish: Finish = STOP, unfolded: bool = False) -> tuple[Drawn, AnswerView]:
    drawn = Drawn()
    answer = AnswerView(drawn, Clock())
    answer.show_reasoning = unfolded
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    candidates = (Candidate(content=content, finish=finish), Candidate(content=(Text(text="other"),), finish=STOP))  # type: ignore[arg-type]
    for event in unfold(Response(candidates=candidates)):
        answer.feed(event)
    answer.stop()
    return drawn, answer


CASES = [
    pytest.param(["Hello."], [("words", "Hello.")], id="words"),
    pytest.param(["One.", "Two."], [("words", "One."), ("words", "Two.")], id="two-parts"),
    pytest.param([Refusal(text="No.")], [("words", "No.")], id="refusal"),
    pytest.param(
        [Reasoning(text="Hm."), "So."], [("quiet", "thought for 1 s"), ("words", "So.")], id="thought-is-folded"
    ),
    pytest.param([Reasoning(summary=("A.", "B."))], [("quiet", "thought for 1 s")], id="summary-is-folded"),
    pytest.param(
        [Reasoning(encrypted="x", redacted=True)], [("quiet", "thought, and keeps it to itself")], id="sealed-thought"
    ),
    pytest.param(
        [ToolCall(id="1", name="look\x1b", arguments='{"a":\n1}')], [("call", 'calls look� {"a": 1}')], id="call"
    ),
    pytest.param(
        [Image(source=Inline(data="AAAA"))], [("quiet", "[image: cannot be shown here]")], id="what-cannot-be-shown"
    ),
    pytest.param(
        [Text(text="It.", citations=(Citation(kind="u", url="http://a"), Citation(kind="u", url="http://a")))],
        [("words", "It."), ("quiet", "[1] http://a")],
        id="sources",
    ),
]


@pytest.mark.parametrize(("parts", "lines"), CASES)
def test_an_answer_is_drawn(parts: list[object], lines: list[tuple[str, str]]) -> None:
    assert drawing(*parts)[0].lines == lines


@pytest.mark.parametrize(
    ("finish", "line"),
    [
        pytest.param(Finish(reason="length"), "cut off: the longest answer is reached", id="length"),
        pytest.param(
            Finish(reason="refusal", explanation="bad\nwords"), "the model declined (bad words)", id="refusal"
        ),
        pytest.param(Finish(reason="unknown", raw="odd"), "ended for a reason that is not known here (odd)", id="odd"),
    ],
)
def test_an_odd_ending_is_told(finish: Finish, line: str) -> None:
    assert drawing("Hello", finish=finish)[0].lines == [("words", "Hello"), ("quiet", line)]


def test_thoughts_are_kept_and_shown_while_they_come() -> None:
    drawn, answer = drawing(Reasoning(text="Hm."), "So.", Reasoning(summary=("A.",)))
    assert answer.reasoning == ["Hm.", "A."]
    assert drawn.passed[1] == "thinking …\nHm."


def test_thoughts_can_be_unfolded() -> None:
    lines = drawing(Reasoning(text="Hm."), "So.", unfolded=True)[0].lines
    assert lines == [("thought", "Hm."), ("quiet", "thought for 1 s"), ("words", "So.")]


def test_a_thought_that_is_broken_off_is_folded() -> None:
    drawn = Drawn()
    answer = AnswerView(drawn, Clock(61.4))
    answer.feed(ReasoningDelta(text="of another kind of server"))
    answer.stop()
    assert drawn.lines == [("quiet", "thought for 1 min 1 s")]
    assert answer.reasoning == ["of another kind of server"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param(0.2, "under 1 s", id="short"),
        pytest.param(3.4, "3 s", id="seconds"),
        pytest.param(125, "2 min 5 s", id="minutes"),
    ],
)
def test_seconds_are_said(seconds: float, said: str) -> None:
    assert format_seconds(seconds) == said


@pytest.mark.parametrize("raw", [True, False])
def test_lines_are_plain(raw: bool) -> None:  # noqa: FBT001  a case
    output = io.StringIO()
    canvas = PlainRenderer(output, raw=raw)
    canvas.status("nothing of this")
    for text in ("One ", "\x1b[1mtwo", ""):
        canvas.write(text)
    canvas.line("note\x1b", "quiet")
    canvas.write("three\n")
    canvas.end_text()
    said = "One \x1b[1mtwo" if raw else "One �[1mtwo"
    assert output.getvalue() == f"{said}\nnote�\nthree\n"


@pytest.mark.parametrize("size", [1, 3, 100])
def test_thoughts_are_ruled_in_lines_too(size: int) -> None:
    output = io.StringIO()
    canvas = PlainRenderer(output)
    thought = "One\n\ntwo\n"
    for at in range(0, len(thought), size):
        canvas.write(thought[at : at + size], "thought")
    canvas.end_text()
    canvas.write("So.")
    assert output.getvalue() == "│ One\n│ \n│ two\nSo."


def test_what_is_no_terminal_gets_lines() -> None:
    assert isinstance(renderer_of(io.StringIO()), PlainRenderer)
