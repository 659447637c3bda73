"""Python functions as backends: all four kinds, and what happens when they fail or their client leaves."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.callable import Callable, Said
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from xenoglot.model.events import Event

ASKED = Request(model="m", messages=(Message(role="user", content=(Text(text="one two"),)),))


def words(request: Request) -> list[str]:
    part = request.messages[0].content[0]
    assert isinstance(part, Text)
    return part.text.split()


def plain(request: Request) -> str:
    return " ".join(words(request))


async def coroutine(request: Request) -> str:
    return " ".join(words(request))


def generator(request: Request) -> Iterator[str]:
    one, two = words(request)
    yield one
    yield ""
    yield " " + two


async def async_generator(request: Request) -> AsyncIterator[str]:
    for piece in generator(request):
        yield piece


def talker(_request: Request) -> Iterator[Said]:
    yield Reasoning(text="hm")
    yield "Let me "
    yield "look."
    yield ToolCall(id="1", name="look", arguments="{}")
    yield Usage(input_tokens=3)
    yield Usage(output_tokens=9)
    yield Finish(reason="tool_calls")


def whole(_request: Request) -> Response:
    return WHOLE


def silent(_request: Request) -> Iterator[str]:
    yield from ()


WHOLE = Response(id="r", candidates=(Candidate(content=(Text(text="hi"),), finish=Finish(reason="length")),))
STOP = Finish(reason="stop")


async def events_of(backend: Callable) -> list[Event]:
    answer = await backend.answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        return [event async for batch in answer.batches for event in batch]


def said(*parts: object, finish: Finish = STOP, usage: Usage | None = None) -> Response:
    return Response(candidates=(Candidate(content=parts, finish=finish),), usage=usage)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "response"),
    [
        pytest.param(plain, said(Text(text="one two")), id="R-S1-function"),
        pytest.param(coroutine, said(Text(text="one two")), id="coroutine"),
        pytest.param(generator, said(Text(text="one two")), id="A5-generator"),
        pytest.param(async_generator, said(Text(text="one two")), id="async-generator"),
        pytest.param(whole, WHOLE, id="a-whole-response"),
        pytest.param(silent, said(), id="pitfall-73-nothing-said"),
        pytest.param(
            talker,
            said(
                Reasoning(text="hm"),
                Text(text="Let me look."),
                ToolCall(id="1", name="look", arguments="{}"),
                finish=Finish(reason="tool_calls"),
                usage=Usage(input_tokens=3, output_tokens=9),
            ),
            id="parts-usage-and-reason",
        ),
    ],
)
async def test_every_kind_of_function(function: object, response: Response) -> None:
    events = await events_of(Callable(function))  # type: ignore[arg-type]
    assert fold(through(events, Grammar())) == response


async def test_it_streams_as_it_speaks() -> None:
    """R-W1: the first word is out before the function has thought of the second."""
    go_on = threading.Event()

    def slow(_request: Request) -> Iterator[str]:
        yield "first"
        assert go_on.wait(20)
        yield "second"

    answer = await Callable(slow).answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        first = await anext(answer.batches)
        assert [getattr(event, "text", None) for event in first] == [None, None, "first"]
        go_on.set()
        rest = [getattr(event, "text", None) async for batch in answer.batches for event in batch]
    assert rest == ["second", None, None]


async def test_a_failure_is_its_requests_alone_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_request: Request) -> Iterator[str]:
        yield "so far"
        raise KeyError("secret")

    with caplog.at_level(logging.ERROR):
        events = await events_of(Callable(broken))
    assert fold(through(events, Grammar())) == Failure(kind="internal", message="the model function failed")
    assert caplog.records[0].getMessage().startswith("the function behind `broken` failed: builtins.KeyError at ")
    assert "secret" not in caplog.text


async def test_a_client_that_leaves_closes_the_generator() -> None:
    """A-W5: nothing goes on generating for nobody; the step under way is let end first."""
    stepping, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def endless(_request: Request) -> Iterator[str]:
        try:
            while True:
                yield "x"
                stepping.set()
                assert go_on.wait(20)
        finally:
            closed.set()

    answer = await Callable(endless).answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    batches = answer.batches
    await anext(batches)
    reading = asyncio.ensure_future(anext(batches))
    await asyncio.to_thread(stepping.wait, 20)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    go_on.set()
    assert await asyncio.to_thread(closed.wait, 20)
    await answer.aclose()


def test_its_name() -> None:
    assert [Callable(plain).name, Callable(plain, name="mine").name] == ["plain", "mine"]
