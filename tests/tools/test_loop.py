"""The tool loop: how a run goes, how it ends, and what it leaves, under both clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.tools.scripted_runs import answer, call, results, run, run_blocking, steps, timeless, trace, unpaired
from xenoglot.model.content import Image, Inline, Refusal, Text, ToolCall
from xenoglot.model.failure import Failure
from xenoglot.model.response import Response
from xenoglot.tools.budget import Budget, RunSpend
from xenoglot.tools.tool import Approval, ToolError, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.scripted import Turn
    from xenoglot.tools.result import Outcome


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool
def failing_tool(how: str) -> object:
    """Fail in some way."""
    if how == "silent":
        raise ValueError
    if how == "exit":
        raise SystemExit(3)
    if how == "told":
        raise ToolError("the disk is full", data={"free": 0})
    if how == "nan":
        return {"value": float("nan")}
    if how == "circle":
        circle: list[object] = []
        circle.append(circle)
        return circle
    if how == "object":
        return object()
    raise KeyError(how)


@tool
def picture() -> object:
    """Draw."""
    return [Text(text="here:"), Image(source=Inline(data="aGk=", media_type="image/png"))]


@tool
def flood() -> str:
    """Say very much."""
    return "a" * 90_000 + "b" * 90_000


@tool(needs_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


ADD = '{"a": 1, "b": 2}'
TOOLS = [add, echo, failing_tool, picture, flood, delete]

PLAYS: dict[str, tuple[list[Turn], dict[str, Any], Outcome, list[tuple[str, str]]]] = {
    "an-answer": ([answer("Hello")], {}, "answered", []),
    "one-call": ([answer(call("add", ADD)), answer("3")], {}, "answered", [("call_add", "3")]),
    "c-s1-several-rounds": (
        [answer(call("add", ADD)), answer("now", call("add", ADD)), answer(call("echo", '{"text": "x"}')), answer("3")],
        {},
        "answered",
        [("call_add", "3"), ("call_add_1", "3"), ("call_echo", "x")],
    ),
    "calls-that-end-with-stop": (
        [answer(call("add", ADD), finish="stop"), answer("3")],
        {},
        "answered",
        [("call_add", "3")],
    ),
    "results-in-the-order-of-the-calls": (
        [
            answer(call("add", ADD, "x"), call("echo", '{"text": "y"}', "y"), call("add", '{"a":4,"b":4}', "z")),
            answer("."),
        ],
        {},
        "answered",
        [("x", "3"), ("y", "y"), ("z", "8")],
    ),
    "ids-that-are-the-same": (
        [answer(call("add", ADD, "a"), call("add", ADD, "a")), answer(".")],
        {},
        "answered",
        [("a", "3"), ("a_1", "3")],
    ),
    "r-w7-the-last-calls-do-not-run": (
        [answer(call("add", ADD)), answer(call("add", ADD))],
        {"max_rounds": 2},
        "limit",
        [("call_add", "3"), ("call_add_1", "not run: the limit of 2 rounds is reached")],
    ),
    "r-w7-a-last-answer": (
        [answer(call("add", ADD)), answer("I have nothing.")],
        {"max_rounds": 1, "on_limit": "answer"},
        "limit",
        [("call_add", "not run: the limit of 1 rounds is reached")],
    ),
    "k20-endless-calls": (
        [answer(call("echo", '{"text": "x"}'))],
        {"max_rounds": 3},
        "limit",
        [("call_echo", "x"), ("call_echo_1", "x"), ("call_echo_2", "not run: the limit of 3 rounds is reached")],
    ),
    "r11-an-unknown-tool": (
        [answer(call("rm", "{}")), answer(".")],
        {},
        "answered",
        [
            (
                "call_rm",
                "there is no tool `rm`; there are: `add`, `echo`, `failing_tool`, `picture`, `flood`, `delete`",
            )
        ],
    ),
    "c-w12-arguments-that-are-no-json": (
        [answer(call("add", '{"a": 1,')), answer(".")],
        {},
        "answered",
        [("call_add", "bad arguments: not valid JSON: Input data was truncated; write one JSON object")],
    ),
    "c-w12-arguments-of-another-type": (
        [answer(call("add", '{"a": 1, "b": "two"}')), answer(".")],
        {},
        "answered",
        [("call_add", "bad arguments: `b`: Expected `int`, got `str`")],
    ),
    "c-w12-arguments-that-are-missing": (
        [answer(call("add", "")), answer(".")],
        {},
        "answered",
        [("call_add", "bad arguments: Object missing required field `a`")],
    ),
    "r-w9-an-error-without-words": (
        [answer(call("failing_tool", '{"how": "silent"}')), answer(".")],
        {},
        "answered",
        [("call_failing_tool", "ValueError")],
    ),
    "r-w9-a-result-that-is-no-json": (
        [answer(call("failing_tool", '{"how": "object"}')), answer(".")],
        {},
        "answered",
        [
            (
                "call_failing_tool",
                "the result of the tool, a `object`, cannot be written as JSON: a `object` is no JSON",
            )
        ],
    ),
    "r-w9-a-result-that-holds-itself": (
        [answer(call("failing_tool", '{"how": "circle"}')), answer(".")],
        {},
        "answered",
        [
            (
                "call_failing_tool",
                "the result of the tool, a `list`, cannot be written as JSON: it is nested too deeply, or holds itself",
            )
        ],
    ),
    "r-w9-a-result-with-nan": (
        [answer(call("failing_tool", '{"how": "nan"}')), answer(".")],
        {},
        "answered",
        [
            (
                "call_failing_tool",
                (
                    "the result of the tool, a `dict`, cannot be written as JSON: Out of range float values are not "
                    "JSON compliant"
                ),
            )
        ],
    ),
    "c-w16-a-tool-that-exits": (
        [answer(call("failing_tool", '{"how": "exit"}')), answer(".")],
        {},
        "answered",
        [("call_failing_tool", "SystemExit: 3")],
    ),
    "c-w16-any-exception": (
        [answer(call("failing_tool", '{"how": "x"}')), answer(".")],
        {},
        "answered",
        [("call_failing_tool", "KeyError: 'x'")],
    ),
    "an-error-that-is-told": (
        [answer(call("failing_tool", '{"how": "told"}')), answer(".")],
        {},
        "answered",
        [("call_failing_tool", "the disk is full")],
    ),
    "k20-floods-output": (
        [answer(call("flood")), answer(".")],
        {"result_limit": 9},
        "answered",
        [("call_flood", "aaaaaa\n[... 179991 characters left out ...]\nbbb")],
    ),
    "pictures": ([answer(call("picture")), answer("nice")], {}, "answered", [("call_picture", "here:")]),
    "nobody-to-approve": (
        [answer(call("delete", '{"path": "x"}')), answer(".")],
        {},
        "answered",
        [("call_delete", "not run: the user did not allow this call: the program does not approve calls")],
    ),
    "approved": (
        [answer(call("delete", '{"path": "x"}')), answer(".")],
        {"approve": lambda _: True},
        "answered",
        [("call_delete", "deleted x")],
    ),
    "denied-with-a-reason": (
        [answer(call("delete", '{"path": "x"}')), answer(".")],
        {"approve": lambda _: "keep it"},
        "answered",
        [("call_delete", "not run: the user did not allow this call: keep it")],
    ),
    "approved-with-other-arguments": (
        [answer(call("delete", '{"path": "x"}')), answer(".")],
        {"approve": lambda _: Approval(allowed=True, arguments={"path": "y"})},
        "answered",
        [("call_delete", '[the user changed the arguments to {"path":"y"}]\ndeleted y')],
    ),
    "nobody-is-asked-about-bad-arguments": (
        [answer(call("delete", '{"pth": "x"}')), answer(".")],
        {"approve": lambda _: pytest.fail("asked")},
        "answered",
        [("call_delete", "bad arguments: there is no `pth`; the tool takes `path`")],
    ),
    "c-s4-the-budget-of-calls": (
        [answer(call("add", ADD, "a"), call("add", ADD, "b"))],
        {"budget": Budget(calls=1)},
        "budget",
        [("a", "3"), ("b", "not run: the budget of 1 tool calls is spent")],
    ),
    "c-s4-the-budget-of-model-calls": (
        [answer(call("add", ADD))],
        {"budget": Budget(model_calls=1)},
        "budget",
        [("call_add", "not run: the budget of 1 calls of the model is spent")],
    ),
    "c-s4-the-budget-of-tokens": (
        [answer(call("add", ADD))],
        {"budget": Budget(total_tokens=100)},
        "budget",
        [],
    ),
    "c-s4-the-budget-of-output-tokens": (
        [answer(call("add", ADD))],
        {"budget": Budget(output_tokens=8)},
        "budget",
        [("call_add", "3"), ("call_add_1", "not run: the budget of 8 tokens of answers is spent")],
    ),
    "c-s4-what-was-spent-before": (
        [answer("never")],
        {"budget": Budget(model_calls=3), "spent": RunSpend(model_calls=3)},
        "budget",
        [],
    ),
    "c-s4-a-cost-that-nobody-knows": (
        [answer(call("add", ADD))],
        {"budget": Budget(cost=1.0)},
        "budget",
        [],
    ),
    "refused": ([answer(Refusal(text="No."), finish="refusal")], {}, "refused", []),
    "refused-with-a-call": (
        [answer(call("add", ADD), finish="refusal")],
        {},
        "refused",
        [("call_add", "not run: the model, or a filter, declined")],
    ),
    "failed": ([Failure(kind="authentication", message="the key is wrong")], {}, "failed", []),
    "failed-behind-a-call": (
        [answer(call("add", ADD)), Failure(kind="authentication", message="the key is wrong")],
        {},
        "failed",
        [("call_add", "3")],
    ),
    "an-empty-answer": ([answer()], {}, "answered", []),
    "c-s3-cut-off": ([answer("Once upon", finish="length"), answer(" a time.")], {}, "answered", []),
    "c-s3-cut-off-for-ever": ([answer("again ", finish="length")], {"max_rounds": 3}, "limit", []),
    "c-s3-cut-off-before-a-word": ([answer(finish="length")], {}, "limit", []),
    "c-s3-not-gone-on-with": ([answer("Once", finish="length")], {"continue_length": False}, "limit", []),
    "a-call-that-was-cut-off": (
        [answer(call("add", '{"a": 1, '), finish="length"), answer(".")],
        {},
        "answered",
        [("call_add", "not run: your answer was cut off in the middle of this call; write a shorter one")],
    ),
    "a-call-before-the-cut": (
        [answer(call("add", ADD, "a"), call("echo", "", "b"), finish="length"), answer(".")],
        {},
        "answered",
        [("a", "3"), ("b", "not run: your answer was cut off in the middle of this call; write a shorter one")],
    ),
    "paused": ([answer("Searching", finish="pause"), answer(" done.")], {}, "answered", []),
    "the-window-is-full": ([answer("Once", finish="context")], {}, "failed", []),
}


@pytest.mark.parametrize("play", PLAYS, ids=list(PLAYS))
async def test_a_run_ends_as_it_should_under_both_clients(play: str) -> None:
    turns, options, outcome, expected = PLAYS[play]
    result, events = await run(turns, TOOLS, **options)
    assert (result.outcome, results(result.messages), unpaired(result.messages)) == (outcome, expected, [])
    blocking, heard = run_blocking(turns, TOOLS, **options)
    assert timeless(blocking) == timeless(result)
    assert sorted(steps(heard)) == sorted(steps(events))


def _alone(turns: Sequence[Turn]) -> bool:
    """Whether no two calls of these turns run beside each other: then there is one order of events alone."""
    contents = [turn.candidates[0].content for turn in turns if isinstance(turn, Response)]
    return all(sum(isinstance(part, ToolCall) for part in content) < 2 for content in contents)


@pytest.mark.parametrize("play", [name for name, (turns, *_) in PLAYS.items() if _alone(turns)])
async def test_both_clients_tell_the_same_trace(play: str) -> None:
    turns, options, _, _ = PLAYS[play]
    _, events = await run(turns, TOOLS, **options)
    _, heard = run_blocking(turns, TOOLS, **options)
    assert trace(heard) == trace(events)
