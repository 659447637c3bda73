"""What a person sees of an agent without a screen of its own, and what a program reads."""

from __future__ import annotations

import io
import json
import signal

import pytest

from xenoglot.agent.screen import MOST_LINES, JSONScreen, PlainScreen, event_json
from xenoglot.backends.redaction import Redactor
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import BlockEnded, BlockStarted, TextDelta
from xenoglot.tools.events import (
    ApprovalReceived,
    CallEnded,
    CallStarted,
    Compacted,
    ModelEvent,
    RoundStarted,
    RunEvent,
)
from xenoglot.tools.tool import Approval
from xenoglot.tools.tool_output import ToolOutput

ATTACK = "\x1b]0;title\x07\x1b[2J\rhidden\u202e"
CALL = ToolCall(id="1", name="run", arguments='{"command": "true"}')


def shown(*events: RunEvent) -> tuple[str, str]:
    output, notes = io.StringIO(), io.StringIO()
    screen = PlainScreen(output, notes, io.StringIO())
    for event in events:
        screen.feed(event)
    screen.flush()
    return output.getvalue(), notes.getvalue()


def ended(text: str, *, is_error: bool = False, data: object = None) -> CallEnded:
    return CallEnded(call=CALL, output=ToolOutput(content=(Text(text=text),), is_error=is_error, data=data))


def test_answers_and_notes_go_apart() -> None:
    events: list[RunEvent] = [
        ModelEvent(event=BlockStarted(part=Text(text=""))),
        ModelEvent(event=TextDelta("one\n\ttw")),
        ModelEvent(event=TextDelta("o")),
        ModelEvent(event=BlockEnded()),
        CallStarted(call=CALL, round=1),
        ended("out\nput", is_error=True),
        ended("changed", data={"diff": "-a\n+b"}),
        ApprovalReceived(call=CALL, approval=Approval(allowed=False)),
        Compacted(before=10, after=5, messages=()),
    ]
    assert shown(*events) == (
        "one\n    two\n",
        (
            '> run {"command": "true"}\n'
            "  failed:\n  out\n  put\n"
            "  -a\n  +b\n"
            "> run was not allowed\n"
            "[the conversation was shortened: about 10 tokens, now 5]\n"
        ),
    )


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(ModelEvent(event=TextDelta(ATTACK)), id="answer"),
        pytest.param(CallStarted(call=ToolCall(id="1", name=ATTACK, arguments=ATTACK), round=1), id="call"),
        pytest.param(ended(ATTACK), id="result"),
        pytest.param(ended("", data={"diff": ATTACK}), id="change"),
    ],
)
def test_a_terminal_obeys_nothing_that_a_model_wrote(event: RunEvent) -> None:
    assert not set("\x1b\x07\r\u202e") & set("".join(shown(event)))


def test_a_long_result_is_cut() -> None:
    lines = shown(ended("\n".join("x" * 100)))[1].splitlines()
    assert (len(lines), lines[-1]) == (MOST_LINES + 1, "  [60 more lines]")


def approval_prompt(call: ToolCall, *answers: str) -> tuple[list[bool | str], str]:
    notes = io.StringIO()
    screen = PlainScreen(io.StringIO(), notes, io.StringIO("".join(f"{answer}\n" for answer in answers)))
    return [screen.approve(call) for _ in range(2)], notes.getvalue()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["y", "no"], [True, False]),
        (["YES", ""], [True, False]),
        (["a"], [True, True]),
        (["never do that", "n"], ["never do that", False]),
        ([], [False, False]),
    ],
)
def test_a_person_says_yes_no_always_or_why_not(answers: list[str], expected: list[bool | str]) -> None:
    assert approval_prompt(CALL, *answers)[0] == expected


def test_all_of_a_call_is_shown_before_it_is_allowed() -> None:
    command = "echo fine\n" + "#" * 3000 + ATTACK + " && rm -rf ~"
    notes = approval_prompt(
        ToolCall(id="1", name="run", arguments=json.dumps({"command": command, "seconds": 3})), "n"
    )[1]
    assert "  command:\n  | echo fine\n  | ####" in notes
    assert "&& rm -rf ~\n  seconds:\n  | 3\n" in notes
    assert not set("\x1b\x07\r\u202e") & set(notes)
    assert "| not json" in approval_prompt(ToolCall(id="1", name="run", arguments="not json"), "n")[1]


class Interrupted(io.StringIO):
    """Somebody who presses Ctrl-C."""

    def readline(self, _: int = -1, /) -> str:  # type: ignore[override]  # what it is given does not matter
        signal.raise_signal(signal.SIGINT)
        return "y\n"


def test_an_interrupted_question_interrupts_the_work() -> None:
    screen = PlainScreen(io.StringIO(), io.StringIO(), Interrupted())
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))  # as an event loop does
    try:
        assert screen.approve(CALL) is False
        assert screen.approve(CALL) is False  # another call of the same answer: nobody is asked any more
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    screen.feed(RoundStarted(round=2))
    with pytest.raises(KeyboardInterrupt):
        screen.approve(CALL)
    assert screen.read_prompt() is None


def test_an_event_is_an_object_that_says_what_it_is() -> None:
    assert event_json(CallStarted(call=CALL, round=2)) == {
        "event": "call_started",
        "round": 2,
        "call": {
            "type": "ToolCall",
            "id": "1",
            "name": "run",
            "arguments": '{"command": "true"}',
            "kind": "function",
            "namespace": None,
            "item_id": None,
            "cache": None,
            "extra": None,
        },
    }
    told = event_json(ModelEvent(event=TextDelta("hi")))
    assert (told["event"], told["kind"], told["text"]) == ("model_event", "text_delta", "hi")


def test_json_has_no_secrets_and_asks_nobody() -> None:
    output = io.StringIO()
    screen = JSONScreen(Redactor(["hunter2hunter2"]), output)
    screen.feed(ended("it is hunter2hunter2"))
    screen.note("note")
    screen.problem("problem")
    assert screen.approve(CALL) == "`run` needs the user's approval, and there is no terminal"
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert lines[0]["output"]["content"][0]["text"] == "it is [redacted]"
    assert lines[1:] == [{"event": "note", "text": "note"}, {"event": "problem", "text": "problem"}]
