"""The tool loop against servers of every dialect that has tools, over real connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tools.scripted_runs import results, unpaired
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.call.retry import ClientEnvironment
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialect_registry import get, names
from xenoglot.model.content import Image, Inline, Text, ToolCall
from xenoglot.policy.target_health import Retry
from xenoglot.testing import CUT, END, Body, ResponseHead, Upstream, answers
from xenoglot.testing.script import ScriptRule
from xenoglot.tools.budget import Budget
from xenoglot.tools.events import AnswerAborted, RoundStarted
from xenoglot.tools.tool import tool

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject
    from xenoglot.tools.events import RunEvent

TOOLLESS = {"completions", "llama_stack_completion", "ollama_generate"}


@tool
def look(city: str) -> object:
    """Look at the sky.

    Args:
        city: Where.
    """
    return [Text(text=f"the sky over {city}:"), Image(source=Inline(data="aGk=", media_type="image/png"))]


@pytest.mark.parametrize("dialect", [name for name in names() if name not in TOOLLESS])
async def test_a_run_over_the_wire(dialect: str) -> None:
    calling = answers(dialect, text="", reasoning="Hm.", tool=("look", '{"city": "Oslo"}'))
    telling = answers(dialect, text="Grey.")
    rules = (ScriptRule(steps=calling.streamed(), times=1), ScriptRule(steps=telling.streamed()))
    async with (
        Upstream(*rules) as server,
        AsyncClient(server.url, dialect=dialect, model="scripted", key="k", proxy=None, on_loss="ignore") as client,
    ):
        result = await client.run("How is the sky?", [look], system="Be brief.")
    assert (result.outcome, result.text, result.calls, result.rounds) == ("answered", "Grey.", 1, 2)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (14, 6)
    assert unpaired(result.messages) == []
    spoken = get(dialect)
    body = server.requests[-1].json
    sent = spoken.decode_request(body if "model" in body else {**body, "model": "scripted"})
    assert unpaired(sent.messages) == []
    assert results(sent.messages)[0][1].startswith("the sky over Oslo:")


def at_once(waits: list[float]) -> ClientEnvironment:
    """Return a world in which waits take no time, and are noted."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return ClientEnvironment(sleep=sleep, chance=lambda: 1.0)


CALLING = answers("chat", text="I look", tool=("look", '{"city": "Oslo"}'))
BREAKING = CALLING.streamed(upto=-2, then=CUT)


@pytest.mark.parametrize("breaks", [1, 2])
async def test_an_answer_that_breaks_off_is_asked_for_again(breaks: int) -> None:
    telling = answers("chat", text="Grey.")
    rules = (
        ScriptRule(steps=BREAKING, times=breaks),
        ScriptRule(steps=CALLING.streamed(), times=1),
        ScriptRule(steps=telling.streamed()),
    )
    waits: list[float] = []
    events: list[RunEvent] = []
    async with (
        Upstream(*rules) as server,
        AsyncClient(server.url, dialect="chat", model="m", key="k", proxy=None, world=at_once(waits)) as client,
    ):
        result = await client.run("How is the sky?", [look], on_event=events.append)
    assert (result.outcome, result.text, result.calls, result.rounds) == ("answered", "Grey.", 1, 2)
    assert [event.round for event in events if isinstance(event, AnswerAborted)] == [1] * breaks
    assert [event.round for event in events if isinstance(event, RoundStarted)] == [1] * (breaks + 1) + [2]
    assert waits == [0.5, 1.0][:breaks]
    assert result.spent.model_calls == 2 + breaks
    assert server.requests[breaks].json == server.requests[0].json


@pytest.mark.parametrize(
    ("retry", "budget", "outcome", "asked"),
    [
        pytest.param(None, Budget(), "failed", 3, id="as-often-as-the-client-tries"),
        pytest.param(Retry(attempts=1), Budget(), "failed", 1, id="a-client-that-tries-once"),
        pytest.param(Retry(resend=False), Budget(), "failed", 1, id="nothing-is-sent-twice"),
        pytest.param(None, Budget(model_calls=2), "budget", 2, id="c-s4-what-broke-off-is-spent"),
        pytest.param(None, Budget(output_tokens=3), "budget", 1, id="c-s4-its-words-too"),
    ],
)
async def test_a_stream_that_breaks_off_calls_nothing(
    retry: Retry | None, budget: Budget, outcome: str, asked: int
) -> None:
    async with (
        Upstream(ScriptRule(steps=BREAKING)) as server,
        AsyncClient(
            server.url, dialect="chat", model="m", key="k", proxy=None, retry=retry, world=at_once([])
        ) as client,
    ):
        result = await client.run("How is the sky?", [look], budget=budget)
    assert (result.outcome, result.calls, len(result.messages)) == (outcome, 0, 1)
    assert (result.failure is not None) is (outcome == "failed")
    assert len(server.requests) == asked


async def test_c_s2_calls_that_are_streamed_in_pieces_are_whole() -> None:
    """Of two calls the pieces come in turns, the names at first; the usage comes last, in a chunk of its own."""
    pieces: list[JSONObject] = [
        {"index": 0, "id": "a", "function": {"name": "look", "arguments": ""}},
        {"index": 1, "id": "b", "function": {"name": "look", "arguments": '{"ci'}},
        {"index": 0, "function": {"arguments": '{"city": "Os'}},
        {"index": 1, "function": {"arguments": 'ty": "Rome"}'}},
        {"index": 0, "function": {"arguments": 'lo"}'}},
    ]
    chunks: list[JSONObject] = [
        *[{"choices": [{"index": 0, "delta": {"content": word}}]} for word in ("I ", "look.")],
        *[{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces],
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
    ]
    frames = [Body(b"data: " + encode_json(chunk) + b"\n\n") for chunk in chunks]
    steps = (ResponseHead(headers=(("content-type", "text/event-stream"),)), *frames, Body(b"data: [DONE]\n\n"), *END)
    rules = (ScriptRule(steps=steps, times=1), ScriptRule(steps=answers("chat", text="Grey.").streamed()))
    async with (
        Upstream(*rules) as server,
        AsyncClient(server.url, dialect="chat", model="m", key="k", proxy=None, on_loss="ignore") as client,
    ):
        result = await client.run("How is the sky?", [look])
    said = result.messages[1].content
    assert said == (
        Text(text="I look."),
        ToolCall(id="a", name="look", arguments='{"city": "Oslo"}'),
        ToolCall(id="b", name="look", arguments='{"city": "Rome"}'),
    )
    assert [words for _, words in results(result.messages)] == ["the sky over Oslo:", "the sky over Rome:"]
    assert result.usage.input_tokens == 14
