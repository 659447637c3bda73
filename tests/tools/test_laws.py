"""Laws of the tool loop: whatever the model and the tools do, the transcript can be sent again, in every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.scripted_runs import answer, run, run_blocking, timeless, unpaired
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.model.content import Image, Inline, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message, Request
from xenoglot.policy.token_estimate import estimate
from xenoglot.tools.budget import Budget
from xenoglot.tools.compaction import Compaction, shorten, units
from xenoglot.tools.tool import ToolError, ToolOutput, tool
from xenoglot.tools.transcript import distinct

if TYPE_CHECKING:
    from xenoglot.model.response import Response


@tool
def give(what: Any) -> object:  # noqa: ANN401  any JSON
    """Give back what was given."""
    return what


@tool
async def fail(how: str) -> None:
    """Fail."""
    raise {"exit": SystemExit, "told": ToolError}.get(how, ValueError)(how)


@tool
def quiet() -> ToolOutput:
    """Say nothing."""
    return ToolOutput()


@tool(needs_approval=True, exclusive=True)
def ask(path: str) -> object:
    """Do something that has to be allowed."""
    return Image(source=Inline(data="aGk=", media_type="image/png")) if path == "p" else path


ARGUMENTS = st.sampled_from(
    ['{"what": [1, null]}', '{"how": "told"}', '{"how": "exit"}', '{"path": "p"}', "", "{", "[1]", "null", '"x"']
)
CALLS = st.builds(
    ToolCall,
    id=st.sampled_from(["", "a", "b"]),
    name=st.sampled_from(["give", "fail", "ask", "none"]),
    arguments=ARGUMENTS,
)
PARTS = st.one_of(
    CALLS,
    st.builds(Text, text=st.sampled_from(["", "so", "Once upon a time"])),
    st.builds(Reasoning, text=st.just("hm")),
)
FINISHES = st.sampled_from(["stop", "tool_calls", "length", "pause", "refusal", "context", "unknown"])
ANSWERS = st.builds(lambda parts, finish: answer(*parts, finish=finish), st.lists(PARTS, max_size=4), FINISHES)
FAILURES = st.sampled_from(
    [Failure(kind="context_overflow", message="too long", limit=300), Failure(kind="permission", message="no")]
)
TURNS = st.lists(st.one_of(ANSWERS, ANSWERS, ANSWERS, FAILURES), min_size=1, max_size=5)
OPTIONS = st.fixed_dictionaries(
    {
        "max_rounds": st.integers(1, 6),
        "on_limit": st.sampled_from(["end", "answer"]),
        "order": st.sampled_from(["call", "result"]),
        "parallel": st.booleans(),
        "approve": st.sampled_from([None, lambda _: True, lambda _: "no"]),
        "budget": st.sampled_from([None, Budget(calls=2), Budget(total_tokens=900), Budget(output_tokens=12)]),
        "compaction": st.sampled_from([None, Compaction(window=400, keep_turns=1), Compaction(summarise=True)]),
    }
)


@given(turns=TURNS, options=OPTIONS)
@settings(max_examples=60)
async def test_each_call_has_one_result_in_order(turns: list[Response | Failure], options: dict[str, Any]) -> None:
    result, _ = await run(turns, [give, fail, ask], **options)
    assert unpaired(result.messages) == []
    assert result.messages[0].role == "user"
    assert all(message.content for message in result.messages)


@given(turns=TURNS, options=OPTIONS)
@settings(max_examples=20)
async def test_both_clients_come_to_the_same_end(turns: list[Response | Failure], options: dict[str, Any]) -> None:
    result, _ = await run(turns, [give, fail, ask], **options)
    blocking, _ = run_blocking(turns, [give, fail, ask], **options)
    assert timeless(blocking) == timeless(result)


def everything() -> list[Response]:
    """Return answers with all that a transcript can hold, right and wrong."""
    return [
        answer(Reasoning(text="hm"), "I look.", ToolCall(id="a", name="give", arguments='{"what": "x"}')),
        answer(ToolCall(id="a", name="give", arguments="{"), ToolCall(id="", name="nothing", arguments="[1]")),
        answer(ToolCall(id="b", name="ask", arguments='{"path": "p"}'), ToolCall(id="c", name="fail", arguments="")),
        answer(Text(text=""), ToolCall(id="d", name="quiet")),
        answer("Done."),
    ]


@pytest.mark.parametrize("dialect", [name for name in names() if name != "ollama_generate"])  # which takes one prompt
async def test_the_transcript_can_be_written_in_every_dialect(dialect: str) -> None:
    result, _ = await run(everything(), [give, fail, ask, quiet], approve=lambda _: True)
    assert result.outcome == "answered"
    request = Request(model="m", messages=result.messages)
    body = encode_json(get(dialect).encode_request(request, Losses(), Target()))
    assert b"Done." in body


TURN = st.one_of(
    st.just("user"), st.just("system"), st.just("assistant"), st.integers(1, 3).map(lambda count: f"calls:{count}")
)


def transcript(kinds: list[str]) -> tuple[Message, ...]:
    """Return turns of these kinds; of `calls:n` also the results, long ones."""
    made: list[Message] = []
    for at, kind in enumerate(kinds):
        if not kind.startswith("calls"):
            made.append(Message(role=kind, content=(Text(text=f"{kind} {at} " * 20),)))  # type: ignore[arg-type]  # a role
            continue
        calls = tuple(ToolCall(id=f"{at}_{number}", name="give") for number in range(int(kind[-1])))
        made.append(Message(role="assistant", content=(Reasoning(text="t", signature="s"), *calls)))
        made += [Message(role="tool", content=(_result(one, at),)) for one in calls]
    return tuple(made)


def _result(one: ToolCall, at: int) -> ToolResult:
    return ToolResult(call_id=one.id, content=(Text(text=f"{at} " * 400),), name="give")


def size(messages: tuple[Message, ...]) -> int:
    """Return about the tokens."""
    return estimate(Request(model="", messages=messages))


@given(kinds=st.lists(TURN, min_size=1, max_size=12), keep=st.integers(1, 5), target=st.integers(1, 5000))
def test_c_w14_compaction_parts_no_call_from_its_result(kinds: list[str], keep: int, target: int) -> None:
    messages = transcript(kinds)
    cut = shorten(messages, keep, target, size)
    made = cut.join()
    assert unpaired(made) == []
    assert [one for one in made if one.role == "system"] == [one for one in messages if one.role == "system"]
    assert units(made)[-1][0] == units(messages)[-1][0]
    first = next((one for one in messages if one.role == "user"), None)
    assert first is None or first in made
    sealed = [one for one in messages if one.role == "assistant"]
    assert [one for one in made if one.role == "assistant" and one not in sealed] == []
    if size(messages) <= target:
        assert made == messages


def test_k20_calls_without_end_under_one_id_are_told_apart_in_time() -> None:
    made = distinct([ToolCall(id="a", name="give")] * 20_000, set())
    ids = [part.id for part in made if isinstance(part, ToolCall)]
    assert (len(set(ids)), ids[:2], ids[-1]) == (20_000, ["a", "a_1"], "a_19999")
