"""Python functions as backends: all four kinds, and what happens when they fail or their client leaves."""

from __future__ import annotations

import asyncio
import logging
import threading
import typing
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.callable import Callable, Output, OutputFunction
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


def talker(_request: Request) -> Iterator[Output]:
    yield Reasoning(text="hm")
    yield "Let me "
    yield "look."
    yield ToolCall(id="1", name="look", arguments="{}")
    yield Usage(input_tokens=3)
    yield Usage(output_tokens=9)
    yield Finish(reason="tool_calls")


def whole_response(_request: Request) -> Response:
    return WHOLE


def iterator(_request: Request) -> Iterator[str]:
    return iter(["one", " ", "two"])


class Later:
    """An asynchronous iterator that is no generator, as streamers and the streams of SDKs are."""

    def __init__(self) -> None:
        self._words = iter(["one", " ", "two"])

    def __aiter__(self) -> Later:
        return self

    async def __anext__(self) -> str:
        for word in self._words:
            return word
        raise StopAsyncIteration


def later(_request: Request) -> Later:
    return Later()


async def in_time(request: Request) -> Iterator[str]:
    return generator(request)


def half_a_character(_request: Request) -> Iterator[str]:
    yield "a\ud800"
    yield "\ud83d\ude00"


def silent(_request: Request) -> Iterator[str]:
    yield from ()


WHOLE = Response(id="r", candidates=(Candidate(content=(Text(text="hi"),), finish=Finish(reason="length")),))
STOP = Finish(reason="stop")
FAILED = Failure(kind="internal", message="internal error: the model function failed")


async def events_of(backend: Callable) -> list[Event]:
    answer = await backend.answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        return [event async for batch in answer.batches for event in batch]


def response_of(*parts: object, finish: Finish = STOP, usage: Usage | None = None) -> Response:
    return Response(candidates=(Candidate(content=parts, finish=finish),), usage=usage)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "response"),
    [
        pytest.param(plain, response_of(Text(text="one two")), id="R-S1-function"),
        pytest.param(coroutine, response_of(Text(text="one two")), id="coroutine"),
        pytest.param(generator, response_of(Text(text="one two")), id="A5-generator"),
        pytest.param(async_generator, response_of(Text(text="one two")), id="async-generator"),
        pytest.param(iterator, response_of(Text(text="one two")), id="iterator"),
        pytest.param(later, response_of(Text(text="one two")), id="asynchronous-iterator"),
        pytest.param(in_time, response_of(Text(text="one two")), id="coroutine-that-gives-a-generator"),
        pytest.param(half_a_character, response_of(Text(text="a\ufffd\U0001f600")), id="half-a-character"),
        pytest.param(whole_response, WHOLE, id="a-whole-response"),
        pytest.param(silent, response_of(), id="pitfall-73-nothing-said"),
        pytest.param(
            talker,
            response_of(
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
        assert go_on.wait(120)
        yield "second"

    answer = await Callable(slow).answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        first = await anext(answer.batches)
        assert [getattr(event, "text", None) for event in first] == [None, None, "first"]
        go_on.set()
        rest = [getattr(event, "text", None) async for batch in answer.batches for event in batch]
    assert rest == ["second", None, None]


async def test_a_failure_is_its_requests_alone_and_has_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_request: Request) -> Iterator[str]:
        yield "so far"
        raise KeyError("secret")

    with caplog.at_level(logging.ERROR):
        events = await events_of(Callable(broken))
    assert fold(through(events, Grammar())) == Failure(
        kind="internal", message="internal error: the model function failed"
    )
    head, *lines = caplog.records[0].getMessage().split("\n")
    assert head == "the function of `broken` failed:"
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{__file__}", line ')
    assert lines[-1] == "KeyError: 'secret'"


def gives(*things: object) -> OutputFunction:
    """A generator of `things` behind a word."""

    def giver(_request: Request) -> Iterator[object]:
        yield "a"
        yield from things
        yield "z"

    return giver


def gives_later(thing: object) -> OutputFunction:
    async def giver(_request: Request) -> AsyncIterator[object]:
        yield "a"
        yield thing

    return giver


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        pytest.param(None, "a `NoneType`; expected a `str`, a part, `Usage`, `Finish` or `Response`", id="none"),
        pytest.param(b"secret", "a `bytes`; expected a `str`, a part, `Usage`, `Finish` or `Response`", id="bytes"),
        pytest.param(7, "a `int`; expected a `str`, a part, `Usage`, `Finish` or `Response`", id="number"),
        pytest.param(["secret"], "a `list`; expected a `str`, a part, `Usage`, `Finish` or `Response`", id="list"),
        pytest.param(WHOLE, "more than a `Response`, which must be the only output", id="response-behind-a-word"),
    ],
)
@pytest.mark.parametrize("giver", [gives, gives_later])
async def test_what_means_nothing_is_no_end_and_no_word(
    caplog: pytest.LogCaptureFixture, giver: typing.Callable[[object], OutputFunction], thing: object, told: str
) -> None:
    """A stream that says nonsense has failed: it neither ends as if it were whole, nor passes that on."""
    with caplog.at_level(logging.ERROR):
        events = await events_of(Callable(giver(thing)))
    assert fold(through(events, Grammar())) == FAILED
    assert caplog.messages == [f"the function of `giver` returned {told}"]


@pytest.mark.parametrize(
    "error", [StopIteration(), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), TimeoutError()], ids=repr
)
@pytest.mark.parametrize("kind", ["function", "generator"])
async def test_whatever_is_raised_fails_the_answer_and_not_the_process(kind: str, error: BaseException) -> None:
    """`StopIteration` in a thread would never be told by asyncio, and an exit would end the loop."""

    def function(_request: Request) -> str:
        raise error

    def stepped(request: Request) -> Iterator[str]:
        yield "so far"
        yield function(request)

    events = await asyncio.wait_for(events_of(Callable(function if kind == "function" else stepped)), 120)
    assert fold(through(events, Grammar())) == FAILED


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(1), asyncio.CancelledError()], ids=repr)
async def test_whatever_is_raised_in_the_loop_fails_the_answer_too(error: BaseException) -> None:
    async def function(_request: Request) -> str:
        raise error

    assert fold(through(await events_of(Callable(function)), Grammar())) == FAILED


async def test_an_answer_has_one_thread_from_its_first_step_to_its_last() -> None:
    """What a generator holds open may belong to its thread: the mode of a library, a connection to a database."""
    seen: list[int] = []
    closed = threading.Event()

    def threaded(_request: Request) -> Iterator[str]:
        try:
            for _ in range(20):
                seen.append(threading.get_ident())
                yield "x"
        finally:
            seen.append(threading.get_ident())
            closed.set()

    await asyncio.gather(*(events_of(Callable(generator)) for _ in range(4)), events_of(Callable(threaded)))
    assert await asyncio.to_thread(closed.wait, 120)
    assert seen == [seen[0]] * 21
    assert seen[0] != threading.get_ident()


async def test_what_runs_in_the_loop_keeps_no_thread() -> None:
    """There are only so many: an engine that only gives an asynchronous generator needs one for no longer than that."""
    ended = asyncio.Event()

    async def words() -> AsyncIterator[str]:
        yield "x"
        await ended.wait()

    answer = await Callable(lambda _request: words()).answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        await anext(answer.batches)
        await asyncio.to_thread(_threads_are_over)
        assert [thread for thread in threading.enumerate() if thread.name.startswith("xenoglot-model-")] == []


async def test_a_generator_that_fails_when_it_is_closed_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    told = threading.Event()

    def stubborn(_request: Request) -> Iterator[str]:
        try:
            yield "x"
            yield "y"
        finally:
            told.set()
            raise KeyError("secret")

    answer = await Callable(stubborn).answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    with caplog.at_level(logging.ERROR):
        await anext(answer.batches)
        await answer.aclose()
        assert await asyncio.to_thread(told.wait, 120)
        await asyncio.to_thread(_threads_are_over)
    assert [message.partition(":\n")[0] for message in caplog.messages] == [
        "the function of `stubborn` failed when it was closed"
    ]


def _threads_are_over() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("xenoglot-model-"):
            thread.join(120)


async def test_a_client_that_leaves_closes_the_generator() -> None:
    """A-W5: nothing goes on generating for nobody; the step under way is let end first."""
    stepping, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def endless(_request: Request) -> Iterator[str]:
        try:
            while True:
                yield "x"
                stepping.set()
                assert go_on.wait(120)
        finally:
            closed.set()

    answer = await Callable(endless).answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    batches = answer.batches
    await anext(batches)
    reading = asyncio.ensure_future(anext(batches))
    await asyncio.to_thread(stepping.wait, 120)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    go_on.set()
    assert await asyncio.to_thread(closed.wait, 120)
    await answer.aclose()


def test_its_name() -> None:
    assert [Callable(plain).name, Callable(plain, name="mine").name] == ["plain", "mine"]
