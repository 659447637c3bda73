"""Weights whose chat template thinks: thoughts before words and values, bounded, told apart, and switched off."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.engine.shared_engine import SHAPE, Running, call_of, message_of, response
from xenoglot.backends.http.client import Transport
from xenoglot.codec.loss import Loss
from xenoglot.engine.backend import Engine
from xenoglot.engine.server.lifecycle import EngineProcess
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.request import OutputFormat, Sampling, Thinking, Tool, ToolChoice
from xenoglot.model.response import Finish, Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from xenoglot.engine.server.server_process import EngineEndpoint
    from xenoglot.engine.server.weights import Weights

THINKING = replace(SHAPE, template=(Path(__file__).parent / "prompting" / "thoughts.jinja").read_text("utf-8"))
SCHEMA = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
FORM = OutputFormat(kind="json_schema", schema=SCHEMA)
QUESTION = "Where is the Louvre?"
ON, OFF = Thinking(mode="enabled"), Thinking(mode="disabled")


@pytest.fixture(scope="module")
def running(weights: Weights) -> Generator[EngineEndpoint]:
    """Where the usual weights answer with a template that has them think."""
    process = EngineProcess(weights, THINKING)
    with asyncio.Runner() as runner:
        yield runner.run(process.ready())
        runner.run(process.stop())


@pytest.fixture
async def thinker(weights: Weights, running: EngineEndpoint) -> AsyncGenerator[Engine]:
    """A model that thinks."""
    transport = Transport()
    yield Engine(weights, THINKING, transport=transport, process=Running(running))
    await transport.aclose()


def kinds(answer: Response) -> list[type]:
    return [type(part) for part in answer.candidates[0].content]


def texts(answer: Response) -> list[str]:
    return [part.text or "" for part in answer.candidates[0].content if isinstance(part, Reasoning | Text)]


def finish(answer: Response) -> Finish | None:
    return answer.candidates[0].finish


async def test_a_value_comes_behind_a_bounded_thought(thinker: Engine) -> None:
    answer = await response(thinker, call_of(QUESTION, output=FORM, sampling=Sampling(max_tokens=120), thinking=ON))
    assert kinds(answer) == [Reasoning, Text]
    assert json.loads(texts(answer)[-1]) in ({"city": "Paris"}, {"city": "Rome"})
    assert finish(answer) == Finish(reason="stop")


async def test_a_thought_that_would_never_end_comes_to_its_end(thinker: Engine) -> None:
    forced = {"504": 100.0}  # the token `The`, for ever
    sampling = Sampling(max_tokens=300, logit_bias=forced)
    answer = await response(thinker, call_of(QUESTION, output=FORM, sampling=sampling, thinking=ON))
    assert kinds(answer) == [Reasoning, Text]
    thought, value = texts(answer)
    assert thought.startswith("TheTheThe")
    assert json.loads(value) in ({"city": "Paris"}, {"city": "Rome"})


async def test_thinking_that_is_off_is_over_before_it_begins(thinker: Engine) -> None:
    call = call_of(QUESTION, output=FORM, sampling=Sampling(max_tokens=60), thinking=OFF)
    answer = await response(thinker, call)
    assert kinds(answer) == [Text]
    assert json.loads(texts(answer)[0]) in ({"city": "Paris"}, {"city": "Rome"})
    assert list(call.losses) == []


async def test_the_prompt_closes_the_thought(thinker: Engine) -> None:
    asking = thinker._asking
    on, off = call_of(QUESTION, thinking=ON), call_of(QUESTION, thinking=Thinking(effort="none"))
    ends = [
        await thinker._runtime.text_of((await asking.asked(call.request, call.losses)).prompt[-12:])
        for call in (on, off)
    ]
    assert [end.endswith("<think>\n") for end in ends] == [True, False]
    assert ends[1].endswith("<think>\n\n</think>\n\n")


async def test_words_behind_a_thought_that_is_cut_are_none(thinker: Engine) -> None:
    call = call_of(QUESTION, sampling=Sampling(max_tokens=3), thinking=Thinking(mode="enabled", budget_tokens=1024))
    answer = await response(thinker, call)
    assert (kinds(answer), finish(answer)) == ([Reasoning], Finish(reason="length"))
    why = "the embedded model thinks, or does not; it has no measure for it"
    assert list(call.losses) == [Loss("$", "thinking", "approximated", why)]


async def test_an_answer_that_goes_on_is_no_thought(thinker: Engine) -> None:
    answer = await response(
        thinker, call_of(QUESTION, message_of("assistant", "It is in"), sampling=Sampling(max_tokens=3), thinking=ON)
    )
    assert kinds(answer) == [Text]


async def test_a_forced_call_comes_without_a_thought(thinker: Engine) -> None:
    tool = Tool(name="find", parameters=SCHEMA)
    forced = ToolChoice(mode="required", names=("find",))
    call = call_of(QUESTION, tools=(tool,), tool_choice=forced, sampling=Sampling(max_tokens=90), thinking=ON)
    answer = await response(thinker, call)
    prompt = (await thinker._asking.asked(call.request, call.losses)).prompt
    assert (await thinker._runtime.text_of(prompt[-12:])).endswith("<think>\n\n</think>\n\n")
    assert list(call.losses) == [Loss("$", "thinking", "dropped", "the answer is held to the form of a tool call")]
    assert set(kinds(answer)) == {ToolCall}
    assert finish(answer) == Finish(reason="tool_calls")
