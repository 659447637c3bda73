"""Answers that end at a stop string, of functions and of servers that know nothing of it, over real connections."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.running_gateway import run_gateway
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.callable import Callable
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.wrappers.stop_strings import stop_answer, stop_stage, supported_stops
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import LossError, WireError
from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, Started, TextDelta, UsageReported
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, Prompt, Request, Sampling
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

ASKED = Request(
    model="m", messages=(Message(role="user", content=(Text(text="Hi"),)),), sampling=Sampling(stop=("END",))
)
MET = Candidate(content=(Text(text="Hello "),), finish=Finish(reason="stop_sequence", stop_sequence="END"))
DIALECTS = (
    "chat",
    "completions",
    "gemini",
    "llama_stack",
    "llama_stack_completion",
    "messages",
    "ollama",
    "ollama_generate",
    "responses",
)
TOLD = "$.sampling stop emulated (the answer is ended where the model writes one of the strings)"


class Endless:
    """A model that writes on for ever, unless somebody closes it."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def __call__(self, _request: Request) -> Iterator[str]:
        """Speak."""
        try:
            yield from ("Hel", "lo ", "E", "ND an", "d more")
            while True:
                yield " and more"
        finally:
            self.closed.set()


def words(response: object) -> list[tuple[list[object], Finish | None]]:
    """What each answer says, and why it ended; how its dialect spelled that is not told."""
    assert isinstance(response, Response)
    return [([getattr(part, "text", part) for part in one.content], one.finish) for one in response.candidates]


async def read(answer: object) -> list[Event]:
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        return [event async for batch in answer.batches for event in batch]


async def test_a_function_is_stopped() -> None:
    """A-W5: it is closed before the client hears that the answer is over."""
    model = Endless()

    def spoken(request: Request) -> Iterator[str]:
        yield from model(request)

    answer = await Callable(spoken).answer(Call(request=ASKED, losses=Losses()))
    assert isinstance(answer, EventAnswer)
    events: list[Event] = []
    async for batch in answer.batches:
        events += batch
        assert model.closed.is_set() is isinstance(batch[-1], Finished)
    await answer.aclose()
    assert fold(events) == Response(candidates=(MET,))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_server_that_knows_nothing_of_it_is_stopped(dialect: str, stream: bool) -> None:  # noqa: FBT001 a case
    """A-W3, A-W5: the server generates for ever; it is told of no string, and hears that nobody listens any more."""
    model = Endless()

    def spoken(request: Request) -> Iterator[str]:
        assert request.sampling.stop is None
        yield from model(request)

    losses = Losses()
    with run_gateway({"own": Callable(spoken)}) as running:
        async with aclosing(Transport()) as transport:
            server = Remote("up", get(dialect), running.url, transport=transport, target=Target(stops="ours"))
            answer = await server.answer(Call(request=replace(ASKED, stream=stream), losses=losses))
            response = fold(await read(answer))
            assert await asyncio.to_thread(model.closed.wait, 120)
    assert words(response) == words(Response(candidates=(MET,)))
    assert TOLD in [str(loss) for loss in losses]


async def test_each_of_several_answers_is_stopped() -> None:
    models = [Endless(), Endless()]
    waiting = iter(models)

    def spoken(request: Request) -> Iterator[str]:
        yield from next(waiting)(request)

    target = Target(stops="ours", fan_out=True)
    request = replace(ASKED, sampling=Sampling(stop=("END",), n=2))
    with run_gateway({"own": Callable(spoken)}) as running:
        async with aclosing(Transport()) as transport:
            server = Remote("up", get("chat"), running.url, transport=transport, target=target)
            response = fold(await read(await server.answer(Call(request=request, losses=Losses()))))
            for model in models:
                assert await asyncio.to_thread(model.closed.wait, 120)
    assert isinstance(response, Response)
    assert response.candidates == (MET, MET)


class Source:
    """An answer as batches, that notes when it was closed."""

    def __init__(self, *batches: Sequence[Event]) -> None:
        self.closed_after: int | None = None
        self._batches = batches
        self._given = 0
        self.answer = EventAnswer(batches=self._said(), aclose=self._aclose)

    async def _said(self) -> AsyncGenerator[Sequence[Event], None]:
        for batch in self._batches:
            self._given += 1
            yield batch

    async def _aclose(self) -> None:
        if self.closed_after is None:
            self.closed_after = self._given


BEGUN: tuple[Event, ...] = (Started(), BlockStarted(part=Text(text="")))
ENDED: tuple[Event, ...] = (BlockEnded(), Finished(finish=Finish(reason="stop_sequence", stop_sequence="END")))
USED = UsageReported(usage=Usage(output_tokens=3))


@pytest.mark.parametrize(
    ("batches", "made", "closed_after"),
    [
        pytest.param(
            [(*BEGUN, TextDelta(text="a EN")), (TextDelta(text="D."), USED), (TextDelta(text="more"),)],
            [(*BEGUN, TextDelta(text="a ")), (*ENDED, USED)],
            2,
            id="A-W5-counts-of-the-same-read-are-kept",
        ),
        pytest.param(
            [(*BEGUN, TextDelta(text="a EN"))],
            [(*BEGUN, TextDelta(text="a ")), (TextDelta(text="EN"),)],
            1,
            id="cut-off-with-a-beginning-held-back",
        ),
    ],
)
async def test_batches(batches: list[tuple[Event, ...]], made: list[tuple[Event, ...]], closed_after: int) -> None:
    source = Source(*batches)
    answer = stop_answer(source.answer, stop_stage(ASKED))
    assert [tuple(batch) async for batch in answer.batches] == made
    await answer.aclose()
    assert source.closed_after == closed_after


async def test_without_strings_the_answer_is_itself() -> None:
    source = Source(BEGUN)
    stage = stop_stage(replace(ASKED, sampling=Sampling(stop=("",))))
    assert stop_answer(source.answer, stage) is source.answer
    assert [batch async for batch in source.answer.batches] == [BEGUN]


def upstream_request(request: Request, dialect: str, target: Target | None = None) -> tuple[Request, list[str]]:
    """What a server is asked in place of a request, and what is told of it."""
    call = Call(request=request, losses=Losses(), dialect=dialect, body=b"{}")
    given = supported_stops(call, get(dialect), target or Target())
    assert (given.body is None) is (given is not call)
    return given.request, [str(loss) for loss in given.losses]


def test_what_the_server_is_told() -> None:
    six = replace(ASKED, sampling=Sampling(stop=("1", "2", "3", "4", "5", "6"), seed=1))
    four = replace(six, stream=True, sampling=Sampling(stop=("1", "2", "3", "4"), seed=1))
    assert upstream_request(ASKED, "chat") == (ASKED, [])
    assert upstream_request(six, "chat") == (four, [TOLD])
    assert upstream_request(ASKED, "responses") == (replace(ASKED, stream=True, sampling=Sampling()), [TOLD])


def test_the_best_of_several_comes_in_one_piece() -> None:
    request = replace(ASKED, messages=(), prompt=Prompt(texts=("Once",), best_of=3))
    whole = replace(request, sampling=Sampling())
    assert upstream_request(request, "completions", Target(stops="ours")) == (whole, [TOLD])


async def test_a_policy_against_losses_refuses() -> None:
    async with aclosing(Transport()) as transport:
        server = Remote("up", get("responses"), "http://127.0.0.1:9", transport=transport)
        with pytest.raises(LossError):
            await server.answer(Call(request=ASKED, losses=Losses(strict=True)))


async def test_strings_that_are_too_long_are_refused_before_anything_is_asked() -> None:
    request = replace(ASKED, sampling=Sampling(stop=("x" * 20_000,)))
    async with aclosing(Transport()) as transport:
        server = Remote("up", get("responses"), "http://127.0.0.1:9", transport=transport)
        for backend in (server, Callable(Endless())):
            with pytest.raises(WireError) as caught:
                await backend.answer(Call(request=request, losses=Losses()))
            assert caught.value.path == "$.stop"
