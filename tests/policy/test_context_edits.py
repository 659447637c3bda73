"""Context edits: what is cleared, what is kept, when a compaction is due, and what is asked for a summary."""

from __future__ import annotations

import pytest

from xenoglot.errors import WireError
from xenoglot.model.content import CompactedHistory, Part, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.context import AppliedEdit, ClearThinking, ClearToolUses, Compact, ContextManagement
from xenoglot.model.request import Message, Request, Sampling, Thinking, Tool
from xenoglot.policy.context_edits import (
    CLEARED,
    COMPACT_TOKENS,
    INSTRUCTIONS,
    MOST_EDITS,
    NO_COST,
    SUMMARY_TOKENS,
    CompactionCost,
    compacted,
    compaction_cost,
    compaction_due,
    compaction_now,
    edited,
    summary_request,
)
from xenoglot.policy.token_estimate import estimate

LONG = "word " * 200


def turn(role: str, *parts: Part) -> Message:
    return Message(role=role, content=parts)  # type: ignore[arg-type]


def step(number: int, name: str = "ls") -> tuple[Message, Message]:
    """Return one call with reasoning before it, and its result."""
    call = ToolCall(id=f"c{number}", name=name, arguments='{"path": "/"}')
    return (
        turn("assistant", Reasoning(text="Which one?"), call),
        turn("tool", ToolResult(call_id=f"c{number}", content=(Text(text=LONG),))),
    )


def agent(steps: int, name: str = "ls") -> Request:
    """Return a request after so many calls."""
    turns = [message for number in range(steps) for message in step(number, name)]
    return Request(model="m", messages=(turn("system", Text(text="S")), turn("user", Text(text="Hi")), *turns))


def results(request: Request) -> list[str]:
    """Return the texts of the results."""
    parts = [part for message in request.messages for part in message.content if isinstance(part, ToolResult)]
    return [inner.text for part in parts for inner in part.content if isinstance(inner, Text)]


def cleared(request: Request, edit: ClearToolUses) -> tuple[list[bool], tuple[AppliedEdit, ...]]:
    """Return which results are cleared by an edit, and what it reports."""
    done = edited(request, ContextManagement(edits=(edit,)))
    return [text == CLEARED for text in results(done.request)], done.applied


def test_the_results_of_old_calls_are_cleared_and_counted() -> None:
    which, (applied,) = cleared(agent(5), ClearToolUses(trigger_calls=5))
    assert which == [True, True, False, False, False]
    assert (applied.kind, applied.count) == ("tool_uses", 2)
    assert applied.tokens > 2 * 150


@pytest.mark.parametrize(
    ("edit", "which"),
    [
        (ClearToolUses(trigger_calls=6), [False] * 5),
        (ClearToolUses(trigger_calls=5, keep=0), [True] * 5),
        (ClearToolUses(trigger_calls=1, keep=5), [False] * 5),
        (ClearToolUses(trigger_calls=1, keep=9), [False] * 5),
        (ClearToolUses(), [False] * 5),
        (ClearToolUses(trigger_tokens=100), [True, True, False, False, False]),
        (ClearToolUses(trigger_tokens=100, exclude=("ls",)), [False] * 5),
        (ClearToolUses(trigger_tokens=100, exclude=("rm",)), [True, True, False, False, False]),
        (ClearToolUses(trigger_calls=1, clear_at_least=10_000), [False] * 5),
        (ClearToolUses(trigger_calls=1, clear_at_least=100), [True, True, False, False, False]),
    ],
)
def test_what_an_edit_clears(edit: ClearToolUses, which: list[bool]) -> None:
    found, applied = cleared(agent(5), edit)
    assert found == which
    assert bool(applied) is any(which)


def test_the_trigger_is_reached_by_as_many_tokens() -> None:
    tokens = estimate(agent(5))
    assert any(cleared(agent(5), ClearToolUses(trigger_tokens=tokens))[0])
    assert not any(cleared(agent(5), ClearToolUses(trigger_tokens=tokens + 1))[0])


@pytest.mark.parametrize(
    ("inputs", "arguments"), [(None, '{"path": "/"}'), (True, "{}"), (("ls",), "{}"), (("rm",), '{"path": "/"}')]
)
def test_arguments_are_cleared_on_request(inputs: bool | tuple[str, ...] | None, arguments: str) -> None:  # noqa: FBT001
    done = edited(agent(2), ContextManagement(edits=(ClearToolUses(trigger_calls=1, keep=1, inputs=inputs),)))
    calls = [part for message in done.request.messages for part in message.content if isinstance(part, ToolCall)]
    assert [call.arguments for call in calls] == [arguments, '{"path": "/"}']


@pytest.mark.parametrize(("keep", "left"), [("all", 4), (None, 1), (0, 0), (3, 3), (4, 4), (9, 4)])
def test_reasoning_of_old_turns_is_removed(keep: int | str | None, left: int) -> None:
    done = edited(agent(4), ContextManagement(edits=(ClearThinking(keep=keep),)))  # type: ignore[arg-type]
    turns = [message for message in done.request.messages if message.role == "assistant"]
    assert [isinstance(message.content[0], Reasoning) for message in turns] == [False] * (4 - left) + [True] * left
    assert [edit.count for edit in done.applied] == ([4 - left] if left < 4 else [])


def test_a_turn_of_reasoning_alone_is_left_out() -> None:
    request = Request(
        model="m", messages=(turn("user", Text(text="Hi")), turn("assistant", Reasoning(text="a")), *step(1))
    )
    assert len(edited(request, ContextManagement(edits=(ClearThinking(),))).request.messages) == 3


def test_a_compaction_is_due_from_as_many_tokens_on_and_where_there_is_an_answer() -> None:
    request = agent(5)
    tokens = estimate(request)
    due, early = Compact(trigger_tokens=tokens), Compact(trigger_tokens=tokens + 1)
    assert compaction_due(request, ContextManagement(edits=(early, due))) is due
    assert compaction_due(request, ContextManagement(edits=(early,))) is None
    assert compaction_due(request, ContextManagement(edits=(Compact(),))) is None
    assert tokens < COMPACT_TOKENS
    assert compaction_due(agent(0), ContextManagement(edits=(Compact(trigger_tokens=1),))) is None
    now = Compact(now=True)
    assert compaction_due(request, ContextManagement(edits=(now,))) is None
    assert compaction_now(ContextManagement(edits=(due, now))) is now
    assert compaction_now(ContextManagement(edits=(due,))) is None


def test_a_summary_is_asked_of_the_same_model_after_the_same_turns() -> None:
    request = Request(
        model="m",
        messages=agent(1).messages,
        tools=(Tool(name="ls"),),
        sampling=Sampling(max_tokens=5, temperature=0),
        thinking=Thinking(effort="high"),
        stream=True,
        user="u",
    )
    asked = summary_request(request, Compact())
    assert asked.messages == (*request.messages, turn("user", Text(text=INSTRUCTIONS)))
    assert (asked.model, asked.user, asked.stream, asked.thinking) == ("m", "u", False, None)
    assert asked.sampling == Sampling(max_tokens=SUMMARY_TOKENS)
    assert asked.tool_choice is not None
    assert (asked.tools, asked.tool_choice.mode) == (request.tools, "none")
    assert summary_request(agent(1), Compact(instructions=" ")).messages[-1] == asked.messages[-1]
    assert summary_request(agent(1), Compact(instructions="Short.")).messages[-1] == turn("user", Text(text="Short."))
    assert summary_request(agent(1), Compact()).tool_choice is None


def test_a_call_that_waits_for_its_result_is_not_in_the_request_for_a_summary() -> None:
    call = ToolCall(id="c", name="ls")
    waiting = Request(model="m", messages=(turn("user", Text(text="Hi")), turn("assistant", Text(text="a"), call)))
    assert summary_request(waiting, Compact()).messages[1] == turn("assistant", Text(text="a"))
    alone = Request(model="m", messages=(turn("user", Text(text="Hi")), turn("assistant", call)))
    assert len(summary_request(alone, Compact()).messages) == 2


@pytest.mark.parametrize(
    ("request_", "tail"),
    [
        (Request(model="m", messages=(*agent(2).messages, turn("user", Text(text="Go on")))), 1),
        (agent(2), 2),
        (
            Request(
                model="m",
                messages=(*agent(1).messages, turn("user", Text(text="Q")), turn("assistant", Text(text="A"))),
            ),
            2,
        ),
    ],
    ids=["the user's", "results with their calls", "an answer that has begun"],
)
def test_the_last_turn_stays_after_the_summary(request_: Request, tail: int) -> None:
    summary = CompactedHistory(text="s")
    shorter = compacted(request_, summary)
    assert shorter.messages == (request_.messages[0], turn("assistant", summary), *request_.messages[-tail:])


@pytest.mark.parametrize(
    ("edits", "cost"),
    [
        pytest.param((), NO_COST, id="no-edits"),
        pytest.param((ClearThinking(),), NO_COST, id="nothing-to-compact"),
        pytest.param((Compact(trigger_tokens=101),), NO_COST, id="not-due"),
        pytest.param((Compact(trigger_tokens=100),), CompactionCost(100, SUMMARY_TOKENS), id="due"),
        pytest.param((Compact(),), NO_COST, id="usual-trigger"),
        pytest.param((Compact(now=True),), CompactionCost(0, SUMMARY_TOKENS), id="now"),
    ],
)
def test_what_a_compaction_costs_at_most(edits: tuple[ClearThinking | Compact, ...], cost: CompactionCost) -> None:
    """Budgets and limits reserve it: a compaction that is due is a second call."""
    assert compaction_cost(ContextManagement(edits=edits), 100) == cost


def test_edits_are_few_because_each_reads_the_whole_context() -> None:
    context = ContextManagement(edits=(ClearThinking(),) * (MOST_EDITS + 1))
    with pytest.raises(WireError) as caught:
        edited(agent(1), context)
    assert str(caught.value) == "$.context_management: expected at most 16 edits, got 17"


@pytest.mark.parametrize("field", ["exclude", "inputs"])
def test_names_of_tools_are_compared_in_linear_time(field: str) -> None:
    """Each name of the list is hashed once, and not compared with that of each call."""
    names = tuple(CountedName(f"tool-{number}") for number in range(1_000))
    CountedName.compared = 0
    edit = ClearToolUses(trigger_calls=0, keep=0, **{field: names})  # type: ignore[arg-type]
    edited(agent(1_000), ContextManagement(edits=(edit,)))
    assert CountedName.compared < 10_000


class CountedName(str):
    """A name that counts how often one is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__
