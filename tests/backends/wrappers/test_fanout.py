"""One request as several: what each part asks, how the answers become one, and that nothing is left behind."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, Call, EventAnswer, Piece
from xenoglot.backends.scripted import Scripted
from xenoglot.backends.wrappers.fanout import AT_ONCE, fan_out, shares_of
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.stage import through
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Extra, Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.request import Prompt, Request, Sampling
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer

REFUSED = Failure(kind="rate_limit", message="slow down")
STOP = Finish(reason="stop")


def call_of(*texts: str | tuple[int, ...], **sampling: int) -> Call:
    prompt = Prompt(texts=texts or ("a",))
    request = Request(model="m", prompt=prompt, sampling=Sampling(**sampling))  # type: ignore[arg-type]
    return Call(request=request, losses=Losses(), dialect="d", body=b"{}", headers=(("x", "1"),))


def response_of(*words: str, usage: Usage | None = None) -> Response:
    candidates = tuple(Candidate(content=(Text(text=word),), finish=STOP) for word in words)
    return Response(id="r", model="m", candidates=candidates, usage=usage)


class SteppedBackend:
    """Answers by the text of the prompt, a step at a time; knows what is open."""

    def __init__(self, *events: Event) -> None:
        self.events = events
        self.open = 0
        self.most = 0
        self.asked: list[str] = []
        self.go = asyncio.Event()
        self.refuses: dict[str, Exception] = {}

    async def ask(self, call: Call) -> Answer:
        assert call.request.prompt is not None
        (text,) = call.request.prompt.texts
        self.asked.append(str(text))
        if str(text) in self.refuses:
            raise self.refuses[str(text)]
        self.open += 1
        self.most = max(self.most, self.open)
        batches = self._batches(str(text))
        closed = False

        async def aclose() -> None:
            nonlocal closed
            self.open -= not closed
            closed = True
            await batches.aclose()

        return EventAnswer(batches=batches, aclose=aclose)

    async def _batches(self, text: str) -> AsyncGenerator[Sequence[Event], None]:
        yield (Started(id=text), BlockStarted(part=Text(text="")), TextDelta(text=text))
        await self.go.wait()
        for event in self.events:
            yield (event,)
        yield (BlockEnded(), Finished(finish=STOP))


async def everything(answer: EventAnswer) -> list[Event]:
    async with aclosing(answer):
        batches = [batch async for batch in answer.batches]
    return list(through([event for batch in batches for event in batch], Grammar()))


async def folded_answer(
    backend: Scripted, call: Call, *, texts: bool = True, candidates: bool = False
) -> Response | Failure:
    shares = shares_of(call, texts=texts, candidates=candidates)
    return fold(await everything(await fan_out(shares, backend.answer)))


def words(response: Response | Failure) -> list[str]:
    assert isinstance(response, Response)
    return [part.text for candidate in response.candidates for part in candidate.content if isinstance(part, Text)]


def test_what_needs_no_parts_stays_whole() -> None:
    call = call_of("a", n=3)
    (share,) = shares_of(call, texts=True, candidates=False)
    assert share.call is call
    (share,) = shares_of(call_of("a", "b"), texts=False, candidates=False)
    assert share.call.body == b"{}"
    assert list(call.losses) == []


def test_a_part_for_each_text() -> None:
    call = call_of("a", (1, 2), n=2)
    shares = shares_of(call, texts=True, candidates=False)
    assert [(share.first, share.call.request.prompt, share.call.request.sampling.n) for share in shares] == [
        (0, Prompt(texts=("a",)), 2),
        (2, Prompt(texts=((1, 2),)), 2),
    ]
    assert {(share.call.body, share.call.dialect, share.call.headers) for share in shares} == {
        (None, "d", (("x", "1"),))
    }
    assert list(call.losses) == []


def test_a_part_for_each_candidate_with_a_seed_of_its_own() -> None:
    call = call_of("a", "b", n=2, seed=7)
    shares = shares_of(call, texts=True, candidates=True)
    told = [(one.first, one.call.request.prompt, one.call.request.sampling) for one in shares]
    assert told == [
        (0, Prompt(texts=("a",)), Sampling(seed=7)),
        (1, Prompt(texts=("a",)), Sampling(seed=8)),
        (2, Prompt(texts=("b",)), Sampling(seed=7)),
        (3, Prompt(texts=("b",)), Sampling(seed=8)),
    ]
    assert list(call.losses) == [
        Loss("$.sampling", "n", "emulated", "the server makes one answer at a time: one request for each")
    ]


@pytest.mark.parametrize(
    ("call", "texts", "candidates", "problem"),
    [
        pytest.param(call_of("a", n=10**9), True, True, "$.n: 1000000000 answers are requested", id="candidates"),
        pytest.param(call_of("a", "b", n=10**9), True, False, "$.n: 2000000000 answers are requested", id="of-texts"),
        pytest.param(call_of(*("a",) * 3000), True, False, "$.prompt: found 3000 texts", id="texts"),
    ],
)
def test_parts_are_bounded(call: Call, problem: str, *, texts: bool, candidates: bool) -> None:
    """One small request must not cost any number of calls, nor room for any number of answers."""
    with pytest.raises(WireError) as refusal:
        shares_of(call, texts=texts, candidates=candidates)
    assert str(refusal.value) == f"{problem}, expected at most 2048"


async def test_answers_become_one_in_the_order_of_the_texts() -> None:
    backend = Scripted(response_of("1", "2"), response_of("3", "4"), response_of("5", "6"))
    response = await folded_answer(backend, call_of("a", "b", "c", n=2))
    assert words(response) == ["1", "2", "3", "4", "5", "6"]
    assert isinstance(response, Response)
    assert (response.id, [candidate.finish for candidate in response.candidates]) == ("r", [STOP] * 6)


async def test_several_candidates_of_a_server_that_makes_one() -> None:
    assert words(
        await folded_answer(Scripted(response_of("1"), response_of("2")), call_of("a", n=2), candidates=True)
    ) == ["1", "2"]


async def test_more_parts_than_run_at_a_time() -> None:
    stage = SteppedBackend()
    stage.go.set()
    texts = [str(number) for number in range(3 * AT_ONCE + 1)]
    shares = shares_of(call_of(*texts), texts=True, candidates=False)
    response = fold(await everything(await fan_out(shares, stage.ask)))
    assert words(response) == texts
    assert (stage.most, stage.open, stage.asked) == (AT_ONCE, 0, texts)


async def test_counts_are_added_and_what_nobody_said_is_not() -> None:
    first = Usage(input_tokens=3, output_tokens=2, cache_read=1, total=9)
    second = Usage(input_tokens=4, output_tokens=5, estimated=True)
    response = await folded_answer(
        Scripted(response_of("1", usage=first), response_of("2", usage=second)), call_of("a", "b")
    )
    assert isinstance(response, Response)
    assert response.usage == Usage(input_tokens=7, output_tokens=7, cache_read=1, total=18, estimated=True)


async def test_a_later_snapshot_replaces_what_it_says_of_the_part_s_earlier_one() -> None:
    counted = [UsageReported(usage=Usage(input_tokens=3, output_tokens=1)), UsageReported(usage=Usage(output_tokens=2))]
    stage = SteppedBackend(*counted)
    stage.go.set()
    shares = shares_of(call_of("a", "b"), texts=True, candidates=False)
    response = fold(await everything(await fan_out(shares, stage.ask)))
    assert isinstance(response, Response)
    assert response.usage == Usage(input_tokens=6, output_tokens=4)


async def test_what_only_a_dialect_counts_is_lost_among_several() -> None:
    own = Usage(input_tokens=1, extra=Extra(dialect="x", fields={"joules": 5}))
    call = call_of("a", "b")
    response = await folded_answer(Scripted(response_of("1", usage=own), response_of("2", usage=own)), call)
    assert isinstance(response, Response)
    assert response.usage == Usage(input_tokens=2)
    assert list(call.losses) == [Loss("$.usage", "joules", "dropped", "it belongs to one answer of several")]


async def test_signs_of_life_pass_and_events_that_name_a_candidate_of_their_own_do_not() -> None:
    stage = SteppedBackend(Ping(), OpaqueDelta(dialect="x", data={}, name="new"))
    stage.go.set()
    call = call_of("a", "b")
    events = await everything(await fan_out(shares_of(call, texts=True, candidates=False), stage.ask))
    assert [type(event) for event in events].count(Ping) == 2
    assert [event for event in events if isinstance(event, OpaqueDelta)] == [
        OpaqueDelta(dialect="x", data={}, name="new")
    ]
    assert Loss("$", "new", "dropped", "it belongs to one answer of several") in list(call.losses)


@pytest.mark.parametrize("error", [FailureError(REFUSED), WireError("$.prompt", "no")], ids=["failure", "wire"])
async def test_one_that_is_refused_at_the_start_refuses_all(error: Exception) -> None:
    stage = SteppedBackend()
    stage.refuses["b"] = error
    with pytest.raises(type(error)) as caught:
        await fan_out(shares_of(call_of("a", "b", "c"), texts=True, candidates=False), stage.ask)
    assert caught.value is error
    assert stage.open == 0


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (FailureError(REFUSED), REFUSED),
        (
            WireError("$.prompt", "no"),
            Failure(kind="invalid_request", message="$.prompt: no", param="$.prompt"),
        ),
    ],
    ids=["failure", "wire"],
)
async def test_one_that_is_refused_later_fails_all(error: Exception, failure: Failure) -> None:
    stage = SteppedBackend()
    stage.go.set()
    texts = [str(number) for number in range(AT_ONCE + 1)]
    stage.refuses[texts[-1]] = error
    events = await everything(await fan_out(shares_of(call_of(*texts), texts=True, candidates=False), stage.ask))
    assert events[-1] == Failed(failure=failure)
    assert stage.open == 0


async def test_one_that_fails_on_the_way_ends_all() -> None:
    stage = SteppedBackend(Failed(failure=REFUSED))
    stage.go.set()
    events = await everything(await fan_out(shares_of(call_of("a", "b"), texts=True, candidates=False), stage.ask))
    assert events[-1] == Failed(failure=REFUSED)
    assert stage.open == 0


async def test_what_is_no_refusal_is_raised() -> None:
    stage = SteppedBackend()
    stage.go.set()
    texts = [str(number) for number in range(AT_ONCE + 1)]
    stage.refuses[texts[-1]] = ZeroDivisionError("a bug")
    answer = await fan_out(shares_of(call_of(*texts), texts=True, candidates=False), stage.ask)
    with pytest.raises(ZeroDivisionError):
        await everything(answer)
    assert stage.open == 0


async def test_closing_closes_all_read_or_unread() -> None:
    stage = SteppedBackend()
    answer = await fan_out(shares_of(call_of("a", "b"), texts=True, candidates=False), stage.ask)
    assert stage.open == 2
    await answer.aclose()
    await answer.aclose()
    assert stage.open == 0
    answer = await fan_out(shares_of(call_of("a", "b"), texts=True, candidates=False), stage.ask)
    async with aclosing(answer):
        async for _ in answer.batches:
            break
    assert stage.open == 0


async def test_a_client_that_leaves_before_anything_began_leaves_nothing() -> None:
    begun = SteppedBackend()
    stuck = asyncio.Event()

    async def ask(call: Call) -> Answer:
        if call.request.prompt == Prompt(texts=("b",)):
            stuck.set()
            await asyncio.Event().wait()
        return await begun.ask(call)

    task = asyncio.create_task(fan_out(shares_of(call_of("a", "b"), texts=True, candidates=False), ask))
    await stuck.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert begun.open == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_answers_that_wait_for_each_other_are_read_meanwhile() -> None:
    """Two at a time hold all the places of a small machine; the others begin when these are done."""
    stage = SteppedBackend(*[TextDelta(text=".")] * AT_ONCE)
    stage.go.set()
    places = asyncio.Semaphore(2)

    async def ask(call: Call) -> Answer:
        await places.acquire()
        answer = await stage.ask(call)
        assert isinstance(answer, EventAnswer)

        async def aclose() -> None:
            await answer.aclose()
            places.release()

        return EventAnswer(batches=answer.batches, aclose=aclose)

    texts = [str(number) for number in range(AT_ONCE)]
    answers = [await fan_out(shares_of(call_of(*texts), texts=True, candidates=False), ask)]
    assert words(fold(await everything(answers[0]))) == [text + "." * AT_ONCE for text in texts]
    assert stage.most == 2


async def test_bytes_are_not_merged() -> None:
    closed: list[bool] = []

    async def aclose() -> None:
        closed.append(True)

    async def pieces() -> AsyncGenerator[Piece, None]:
        yield Piece(b"", ())

    async def ask(_call: Call) -> Answer:
        return ByteAnswer(pieces=pieces(), aclose=aclose, media_type="x")

    with pytest.raises(TypeError, match="bytes cannot be merged"):
        await fan_out(shares_of(replace(call_of("a", "b")), texts=True, candidates=False), ask)
    assert closed[:1] == [True]
