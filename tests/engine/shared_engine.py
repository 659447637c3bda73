"""One running engine for the whole test session, and a backend on it for each test's own event loop."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing

import pytest

from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.http.client import Transport
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Losses
from xenoglot.engine.backend import Engine
from xenoglot.engine.server.lifecycle import EngineProcess
from xenoglot.engine.server.server_process import EngineEndpoint, Settings
from xenoglot.engine.server.weights import Weights, fetch
from xenoglot.model.content import Part, Text
from xenoglot.model.events import Event
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, Request, Role
from xenoglot.model.response import Response

SHAPE = Settings(slots=4, context=512)


class Running:
    """A process that somebody else started, and will end."""

    def __init__(self, endpoint: EngineEndpoint) -> None:
        self._endpoint = endpoint

    async def ready(self) -> EngineEndpoint:
        """It is there."""
        return self._endpoint

    async def lost(self, endpoint: EngineEndpoint) -> None:
        """Nobody kills it."""

    def hung(self) -> None:
        """It is not."""

    async def stop(self) -> None:
        """Others need it still."""


@pytest.fixture(scope="session")
def weights() -> Weights:
    """The embedded model's own file, fetched where this machine has not got it yet."""
    return fetch()


@pytest.fixture(scope="session")
def running_engine(weights: Weights) -> Generator[EngineEndpoint, None, None]:
    """Where the engine of this session answers."""
    process = EngineProcess(weights, SHAPE)
    with asyncio.Runner() as runner:
        yield runner.run(process.ready())
        runner.run(process.stop())


@pytest.fixture
async def engine(weights: Weights, running_engine: EngineEndpoint) -> AsyncGenerator[Engine, None]:
    """The embedded model as a backend, in this test's event loop."""
    transport = Transport()
    yield Engine(weights, SHAPE, transport=transport, process=Running(running_engine))
    await transport.aclose()


def message_of(role: Role, *parts: Part | str) -> Message:
    """One message; a string is a text."""
    return Message(role=role, content=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def call_of(*messages: Message | str, **fields: object) -> Call:
    """A call; a string is what the user says."""
    turns = tuple(message_of("user", message) if isinstance(message, str) else message for message in messages)
    return Call(request=Request(model="any", messages=turns, **fields), losses=Losses())  # type: ignore[arg-type]


async def events(engine: Engine, call: Call) -> list[Event]:
    """All events of an answer, which have to be lawful."""
    answer = await engine.answer(call)
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        batches = [batch async for batch in answer.batches]
    return assert_valid([event for batch in batches for event in batch])


def assert_valid(found: Sequence[Event]) -> list[Event]:
    """The same events, if they are in a lawful order."""
    grammar = Grammar()
    passed = [item for event in found for item in grammar.feed(event)]
    return [*passed, *grammar.close()]


async def response(engine: Engine, call: Call) -> Response:
    """A whole answer."""
    found = fold(await events(engine, call))
    assert isinstance(found, Response), found
    return found
