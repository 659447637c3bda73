"""The tool loop with the embedded model, from the first question to the last word."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.engine.shared_engine import SHAPE, Running
from tests.tools.scripted_runs import results, steps, unpaired
from xenoglot.backends.http.client import Transport
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.sync import Client
from xenoglot.engine.backend import Engine
from xenoglot.tools.budget import Budget
from xenoglot.tools.tool import tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from xenoglot.engine.server.server_process import EngineEndpoint
    from xenoglot.engine.server.weights import Weights
    from xenoglot.tools.events import RunEvent

OPTIONS: dict[str, Any] = {
    "tool_choice": "weather",
    "max_tokens": 64,
    "max_rounds": 2,
    "on_limit": "answer",
    "seed": 1,
    "temperature": 0,
}
"""The model is so small that it would call again and again: after two rounds it has to answer."""


@tool
def weather(city: Literal["Oslo"], days: Literal[1] = 1) -> str:
    """Tell the weather of a city."""
    return f"rain in {city} for {days} day"


async def test_it_calls_a_tool_reads_the_result_and_answers(engine: Engine) -> None:
    events: list[RunEvent] = []
    async with AsyncClient(engine) as client:
        result = await client.run("How is the weather in Oslo?", [weather], on_event=events.append, **OPTIONS)
    assert result.outcome in ("answered", "limit")
    assert result.text
    assert results(result.messages)[0][1] == "rain in Oslo for 1 day"
    assert unpaired(result.messages) == []
    assert steps(events)[:5] == ["RoundStarted", "RoundEnded", "CallStarted", "CallEnded", "MessagesAdded"]
    assert result.usage.input_tokens is not None
    assert result.usage.input_tokens > 0


@asynccontextmanager
async def opened(weights: Weights, endpoint: EngineEndpoint) -> AsyncGenerator[Engine]:
    """Give the engine of this session, in another event loop."""
    transport = Transport()
    yield Engine(weights, SHAPE, transport=transport, process=Running(endpoint))
    await transport.aclose()


def test_it_does_so_for_the_blocking_client(weights: Weights, running_engine: EngineEndpoint) -> None:
    with Client(partial(opened, weights, running_engine)) as client:
        result = client.run("How is the weather in Oslo?", [weather], **OPTIONS)
    assert results(result.messages)[0][1] == "rain in Oslo for 1 day"
    assert result.text


@pytest.mark.parametrize(
    ("budget", "rounds"), [(Budget(model_calls=1), 1), (Budget(total_tokens=20), 0)], ids=["calls", "tokens"]
)
async def test_a_budget_stops_it(engine: Engine, budget: Budget, rounds: int) -> None:
    async with AsyncClient(engine) as client:
        result = await client.run("How is the weather in Oslo?", [weather], budget=budget, **OPTIONS)
    assert (result.outcome, result.rounds, result.calls) == ("budget", rounds, 0)
    assert unpaired(result.messages) == []
