"""A stream of text made into blocks: whole traces, with everything that can stand beside the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.text.vectors import Declaration, declared
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.model.content import Citation, Logprob, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    Ping,
    ReasoningDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.request import Tool
from xenoglot.model.response import Finish, FinishReason, Usage
from xenoglot.text import registry
from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.stage import TextStage, ToolCallIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON

CALL: Final = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
BROKEN: Final = '<tool_call>\n{"name": "get_weather", "arguments": {"ci'
FAILED: Final = Failed(failure=Failure(kind="upstream", message="gone"))
CITED: Final = CitationDelta(citation=Citation(kind="url_citation", url="https://a.example"))
NATIVE: Final = ToolCall(id="theirs", name="now", arguments="")


def start(part: Part | None = None, candidate: int = 0) -> BlockStarted:
    """Return the beginning of a block, of text if nothing else is said."""
    return BlockStarted(part=Text(text="") if part is None else part, candidate=candidate)


def text_delta(text: str, *logprobs: float, candidate: int = 0) -> TextDelta:
    """Return text, with the likelihoods of its tokens."""
    chosen = tuple(Logprob(token=text, logprob=one) for one in logprobs)
    return TextDelta(text=text, logprobs=chosen, candidate=candidate)


def end(candidate: int = 0) -> BlockEnded:
    """Return the end of a block."""
    return BlockEnded(candidate=candidate)


def finished(reason: FinishReason = "stop", candidate: int = 0) -> Finished:
    """Return the end of an answer, in the words of its dialect."""
    return Finished(finish=Finish(reason=reason, raw=reason, dialect="chat"), candidate=candidate)


def waiting(candidate: int = 0) -> Finished:
    """Return the end of an answer that waits for results."""
    return Finished(finish=Finish(reason="tool_calls"), candidate=candidate)


def called(arguments: str = '{"city": "Paris"}', candidate: int = 0, number: int = 0) -> list[Event]:
    """Return the block of a call."""
    call = ToolCall(id=f"call_{candidate}_{number}", name="get_weather", arguments="")
    return [start(call, candidate), ArgumentsDelta(text=arguments, candidate=candidate), end(candidate)]


def run(*events: Event, row: str = "hermes", **policy: object) -> tuple[list[Event], list[str]]:
    """Return what the stage makes of a stream, behind its start, and what that cost."""
    losses = Losses()
    known = declared()
    found, ids = registry.get(row), lambda candidate, number: f"call_{candidate}_{number}"
    stage = TextStage(found, known, ids, losses, **policy)  # type: ignore[arg-type]
    traced = list(through([Started(), *events], Pipeline(Grammar(), stage, Grammar())))
    return traced[1:], [f"{loss.what} {loss.how}" for loss in losses]


SAME: Final[dict[str, list[Event]]] = {
    "words": [start(), text_delta("Hello"), text_delta(" you"), end(), finished()],
    "empty-text": [start(), end(), finished()],
    "nothing": [finished()],
    "logprobs": [start(), text_delta("Hello", -0.5), end(), finished()],
    "a-refusal": [start(Refusal(text="")), text_delta(CALL), end(), finished("refusal")],
    "a-thought": [start(Reasoning()), ReasoningDelta(text=CALL), end(), start(), text_delta("Hi"), end(), finished()],
    "a-call-of-the-dialect": [start(NATIVE), ArgumentsDelta(text="{}"), end(), finished("tool_calls")],
    "a-citation": [start(), text_delta("As said."), CITED, end(), finished()],
    "cited-without-words": [start(), CITED, end(), finished()],
    "a-ping": [
        start(),
        text_delta("a"),
        Ping(),
        text_delta("b"),
        end(),
        UsageReported(usage=Usage(output_tokens=2)),
        finished(),
    ],
    "failed-at-once": [FAILED],
}


@pytest.mark.parametrize("events", SAME.values(), ids=SAME.keys())
def test_what_is_no_markup_leaves_as_it_came(events: list[Event]) -> None:
    assert run(*events) == (events, [])


MADE: Final[dict[str, tuple[Sequence[Event], Sequence[Event], Sequence[str]]]] = {
    "a-call": ([start(), text_delta(CALL[:30]), text_delta(CALL[30:]), end(), finished()], [*called(), waiting()], []),
    "a-call-in-the-header": ([start(Text(text=CALL)), end(), finished()], [*called(), waiting()], []),
    "a-call-at-the-end-of-its-block": (
        [start(), BlockEnded(part=Text(text=CALL)), finished()],
        [*called(), waiting()],
        [],
    ),
    "words-in-the-header": (
        [start(Text(text="Hello <tool")), text_delta("box"), end(), finished()],
        [start(), text_delta("Hello "), text_delta("<toolbox"), end(), finished()],
        [],
    ),
    "a-call-over-two-blocks": (
        [start(), text_delta(CALL[:30]), end(), start(), text_delta(CALL[30:]), end(), finished()],
        [*called(), waiting()],
        [],
    ),
    "words-call-words": (
        [start(), text_delta(f"a{CALL}b"), end(), finished()],
        [start(), text_delta("a"), end(), *called(), start(), text_delta("b"), end(), waiting()],
        [],
    ),
    "two-calls": (
        [start(), text_delta(CALL), text_delta(CALL), end(), finished()],
        [*called(), *called(number=1), waiting()],
        [],
    ),
    "a-thought": (
        [start(), text_delta("<think>\nh"), text_delta("m</think>\n\nHi"), end(), finished()],
        [
            *(start(Reasoning()), ReasoningDelta(text="h"), ReasoningDelta(text="m"), end()),
            *(start(), text_delta("Hi"), end(), finished()),
        ],
        [],
    ),
    "held-at-the-end": (
        [start(), text_delta("a <tool"), end(), finished()],
        [start(), text_delta("a "), text_delta("<tool"), end(), finished()],
        [],
    ),
    "held-before-a-call-of-the-dialect": (
        [start(), text_delta("a <tool"), end(), start(NATIVE), end(), finished("tool_calls")],
        [start(), text_delta("a "), text_delta("<tool"), end(), start(NATIVE), end(), finished("tool_calls")],
        [],
    ),
    "held-beside-a-citation": (
        [start(), text_delta("a <tool"), CITED, text_delta("box"), end(), finished()],
        [start(), text_delta("a "), CITED, text_delta("<toolbox"), end(), finished()],
        [],
    ),
    "a-thought-of-the-dialect-before-a-call": (
        [start(Reasoning()), ReasoningDelta(text="hm"), end(), start(), text_delta(CALL), end(), finished()],
        [start(Reasoning()), ReasoningDelta(text="hm"), end(), *called(), waiting()],
        [],
    ),
    "two-candidates": (
        [
            *(
                start(),
                text_delta("Hi <tool"),
                start(candidate=1),
                text_delta(CALL, candidate=1),
                text_delta("box"),
                end(),
            ),
            *(end(1), finished(candidate=1), finished()),
        ],
        [
            *(start(), text_delta("Hi "), *called(candidate=1), text_delta("<toolbox")),
            *(waiting(1), end(), finished()),
        ],
        [],
    ),
    "cited-in-a-call": (
        [start(), text_delta(CALL[:60]), CITED, text_delta(CALL[60:]), text_delta(" b"), end(), finished()],
        [
            *(called()[0], ArgumentsDelta(text='{"city": "P'), ArgumentsDelta(text='aris"}')),
            *(end(), start(), CITED, text_delta(" b"), end(), waiting()),
        ],
        [],
    ),
    "cited-in-a-call-and-no-words": (
        [start(), text_delta(BROKEN), CITED, end(), finished("length")],
        [*called('{"ci'), finished("length")],
        ["citations dropped"],
    ),
    "a-call-over-two-blocks-of-which-one-comes-whole": (
        [start(), text_delta(BROKEN), end(), start(), BlockEnded(part=Text(text='ty": "Paris"}}')), finished()],
        [*called('{"ci')[:2], ArgumentsDelta(text='ty": "Paris"}'), end(), waiting()],
        [],
    ),
    "an-empty-block-in-a-call": (
        [start(), text_delta(BROKEN), end(), start(), end(), start(), text_delta('ty": "Paris"}}'), end(), finished()],
        [*called('{"ci')[:2], ArgumentsDelta(text='ty": "Paris"}'), end(), waiting()],
        [],
    ),
    "failed-while-holding": (
        [start(), text_delta("a <tool_ca"), FAILED],
        [start(), text_delta("a "), text_delta("<tool_ca"), end(), FAILED],
        [],
    ),
    "failed-in-a-call": ([start(), text_delta(BROKEN), FAILED], [*called('{"ci'), FAILED], []),
    "cut-off": ([start(), text_delta(BROKEN), end(), finished("length")], [*called('{"ci'), finished("length")], []),
    "stopped-in-a-call": (
        [start(), text_delta(BROKEN), end(), finished()],
        [*called('{"ci'), waiting()],
        ["tool_call approximated"],
    ),
    "a-call-and-a-call-of-the-dialect": (
        [start(), text_delta(CALL), end(), start(NATIVE), end(), finished("tool_calls")],
        [*called(), start(NATIVE), end(), finished("tool_calls")],
        [],
    ),
    "filtered-behind-a-call": (
        [start(), text_delta(CALL), end(), finished("refusal")],
        [*called(), finished("refusal")],
        [],
    ),
    "a-field-too-many": (
        [start(), text_delta(CALL.replace("}}", '}, "mood": 1}')), end(), finished()],
        [*called(), waiting()],
        ["mood dropped"],
    ),
    "logprobs-held": (
        [start(), text_delta("<tool", -0.5), text_delta("box", -0.25), end(), finished()],
        [
            start(),
            TextDelta(
                text="<toolbox",
                logprobs=(Logprob(token="<tool", logprob=-0.5), Logprob(token="box", logprob=-0.25)),
            ),
            *(end(), finished()),
        ],
        [],
    ),
    "logprobs-of-a-call": (
        [start(), text_delta("a", -0.5), text_delta(CALL, -0.25), text_delta(" b", -0.75), end(), finished()],
        [start(), text_delta("a", -0.5), end(), *called(), start(), text_delta(" b", -0.75), end(), waiting()],
        ["logprobs dropped"],
    ),
    "logprobs-of-a-marker": (
        [start(), text_delta(CALL[:-12]), text_delta(CALL[-12:], -0.25), text_delta(" b", -0.75), end(), finished()],
        [*called(), start(), text_delta(" b"), end(), waiting()],
        ["logprobs dropped"],
    ),
    "logprobs-of-the-last-marker": (
        [start(), text_delta(CALL[:-12]), text_delta(CALL[-12:], -0.25), end(), finished()],
        [*called(), waiting()],
        ["logprobs dropped"],
    ),
}


@pytest.mark.parametrize(("events", "trace", "losses"), MADE.values(), ids=MADE.keys())
def test_text_becomes_blocks(events: Sequence[Event], trace: Sequence[Event], losses: Sequence[str]) -> None:
    assert run(*events) == (list(trace), list(losses))


def test_what_nobody_finished_is_given_out_at_the_close() -> None:
    stage = TextStage(registry.get("hermes"), declared(), lambda *_: "id", Losses())
    fed = [event for one in (start(), text_delta("a <tool")) for event in stage.feed(one)]
    assert [*fed, *stage.close()] == [start(), text_delta("a "), text_delta("<tool"), end()]


def test_arguments_are_held_where_they_may_be_mended() -> None:
    def mend(text: str, _schema: JSON) -> str:
        return text + '": "Rome"}'

    assert run(start(), text_delta(BROKEN + "ty"), end(), finished(), repair=mend) == (
        [*called('{"city": "Rome"}'), waiting()],
        ["arguments approximated", "tool_call approximated"],
    )


def test_a_tool_is_called_by_its_own_name_and_in_its_namespace() -> None:
    tool = Tool(name="get_weather", namespace="geo", parameters={"type": "object"})
    known = DeclaredTools.of([tool])
    (name,) = dict.fromkeys(known)
    stage = TextStage(registry.get("hermes"), known, lambda *_: "id", Losses())
    text = CALL.replace("get_weather", name)
    events: list[Event] = [start(), text_delta(text)]
    (begun,) = [event for event in through(events, stage) if isinstance(event, BlockStarted)]
    assert begun.part == ToolCall(id="id", name="get_weather", namespace="geo", arguments="")


def test_a_tool_that_the_request_does_not_allow_is_not_called() -> None:
    stage = TextStage(registry.get("hermes"), declared([Declaration(name="now")]), lambda *_: "id", Losses())
    assert [*stage.feed(start()), *stage.feed(text_delta(CALL)), *stage.feed(end()), *stage.feed(finished())] == [
        *(start(), text_delta(CALL), end(), finished())
    ]


def ids(taken: Iterable[str], *written: str) -> list[str]:
    """Return the ids of calls of which the model wrote the ids `written`."""
    made = ToolCallIds(lambda candidate, number: f"made_{candidate}_{number}", taken)
    return [made.of(0, number, one) for number, one in enumerate(written)]


@pytest.mark.parametrize(
    ("taken", "written", "given"),
    [
        pytest.param([], ["functions.f:0", "functions.f:1"], ["functions.f:0", "functions.f:1"], id="as-written"),
        pytest.param([], ["", "VvvODy9mT"], ["made_0_0", "VvvODy9mT"], id="made-where-none-is-written"),
        pytest.param([], ["f:0", "f:0", "f:0"], ["f:0", "f:1", "f:2"], id="the-same-number-again"),
        pytest.param(["f:0", "f:1"], ["f:0", "f:1"], ["f:2", "f:3"], id="numbers-of-earlier-turns"),
        pytest.param(["f:1"], ["f:0", "f:1", "f:2"], ["f:0", "f:2", "f:3"], id="numbers-between"),
        pytest.param(["VvvODy9mT"], ["VvvODy9mT"], ["made_0_0"], id="an-earlier-id-without-number"),
        pytest.param([], ["a b", "<x>", "x" * 200], ["made_0_0", "made_0_1", "made_0_2"], id="no-ids"),
    ],
)
def test_ids_are_those_that_the_model_wrote_each_once(taken: list[str], written: list[str], given: list[str]) -> None:
    assert ids(taken, *written) == given


def test_many_calls_with_one_id_cost_a_step_each() -> None:
    looked: list[object] = []

    class Watched(set[str]):
        def __contains__(self, item: object) -> bool:
            looked.append(item)
            return super().__contains__(item)

    def steps(count: int) -> int:
        made = ToolCallIds(lambda _candidate, number: str(number))
        made._taken = Watched(f"f:{number}" for number in range(count))
        looked.clear()
        given = [made.of(0, number, "f:0") for number in range(count)]
        assert len(set(given)) == count
        return len(looked)

    assert steps(2_000) <= 2.5 * steps(1_000)
