"""Who may run, and who waits: in the order of arrival, never more than there is room for."""

import asyncio

import pytest

from xenoglot.engine.admission import Admission, QueueCounts, Ticket
from xenoglot.errors import FailureError

CAPACITY = 100


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


class Line:
    """Requests by their names, and who of them has come in."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.inside: list[str] = []
        self.tickets: dict[str, Ticket] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, slots: int, tokens: int) -> None:
        async def enter() -> None:
            self.tickets[name] = await self.admission.enter(slots, tokens, CAPACITY)
            self.inside.append(name)

        self.tasks[name] = asyncio.create_task(enter())
        await settle()

    async def leave(self, name: str) -> None:
        self.tickets[name].release()
        await settle()

    async def give_up(self, name: str) -> None:
        self.tasks[name].cancel()
        await settle()


@pytest.fixture
async def line() -> Line:
    return Line(Admission(slots=2, longest_line=3))


async def test_tokens_bound_who_runs(line: Line) -> None:
    await line.come("a", 1, 60)
    await line.come("b", 1, 41)
    assert line.inside == ["a"]
    await line.leave("a")
    assert line.inside == ["a", "b"]


async def test_slots_bound_who_runs(line: Line) -> None:
    await line.come("a", 1, 1)
    await line.come("b", 2, 1)
    await line.come("c", 1, 1)
    assert line.inside == ["a"]
    await line.leave("a")
    assert line.inside == ["a", "b"]
    await line.leave("b")
    assert line.inside == ["a", "b", "c"]


async def test_a_small_one_does_not_overtake(line: Line) -> None:
    await line.come("a", 1, 60)
    await line.come("large", 1, 90)
    await line.come("small", 1, 5)
    assert line.inside == ["a"]
    await line.leave("a")
    assert line.inside == ["a", "large", "small"]


async def test_who_gives_up_holds_up_nobody(line: Line) -> None:
    await line.come("a", 1, 60)
    await line.come("large", 1, 90)
    await line.come("small", 1, 5)
    await line.give_up("large")
    assert line.inside == ["a", "small"]


async def test_who_gives_up_as_its_turn_comes_gives_the_turn_on(line: Line) -> None:
    await line.come("a", 1, 60)
    await line.come("b", 1, 60)
    await line.come("c", 1, 60)
    line.tickets["a"].release()
    await line.give_up("b")
    assert line.inside == ["a", "c"]


async def test_k21_the_line_has_an_end(line: Line) -> None:
    await line.come("a", 2, 60)
    for name in "bcd":
        await line.come(name, 1, 1)
    await line.come("e", 1, 1)
    error = line.tasks["e"].exception()
    assert isinstance(error, FailureError)
    assert error.failure.kind == "rate_limit"
    assert line.admission.queue == QueueCounts(running=1, waiting=3, refused=1)
    for name in "bcd":
        line.tasks[name].cancel()


async def test_who_waits_too_long_is_refused_and_holds_up_nobody() -> None:
    line = Line(Admission(slots=2, longest_wait=0.01))
    await line.come("a", 1, 60)
    await line.come("large", 1, 90)
    with pytest.raises(FailureError) as refused:
        await line.tasks["large"]
    assert refused.value.failure.kind == "rate_limit"
    assert line.admission.queue == QueueCounts(running=1, waiting=0, refused=1)
    await line.come("small", 1, 5)
    assert line.inside == ["a", "small"]


async def test_a_line_of_no_length_makes_nobody_wait() -> None:
    line = Line(Admission(slots=1, longest_line=0))
    await line.come("a", 1, 1)
    await line.come("b", 1, 1)
    assert isinstance(line.tasks["b"].exception(), FailureError)
    assert line.inside == ["a"]


@pytest.mark.parametrize(("seconds", "told"), [(0.01, 1.0), (10.0, 10.0), (10_000.0, 60.0)])
async def test_who_is_refused_is_told_the_pace(seconds: float, told: float) -> None:
    clock = Clock()
    line = Line(Admission(slots=2, longest_line=2, clock=clock))
    for turn in range(100):  # that many runs make their length the mean
        await line.come(f"{turn}", 1, 1)
        clock.now += seconds
        await line.leave(f"{turn}")
    for name in "abcd":
        await line.come(name, 1, 1)
    assert line.inside[-2:] == ["a", "b"]
    assert line.admission.patience() == pytest.approx(told, rel=0.01)
    for name in "cd":
        line.tasks[name].cancel()


async def test_who_gives_up_and_is_called_then_is_gone(line: Line) -> None:
    await line.come("a", 1, 60)
    await line.come("b", 1, 60)
    line.tasks["b"].cancel()
    line.tickets["a"].release()
    await settle()
    assert line.tasks["b"].cancelled()
    await line.come("c", 1, 60)
    assert line.inside == ["a", "c"]


async def test_a_ticket_counts_once(line: Line) -> None:
    await line.come("a", 1, 90)
    await line.leave("a")
    await line.leave("a")
    await line.come("b", 1, 90)
    await line.come("c", 1, 90)
    assert line.inside == ["a", "b"]
    line.tasks["c"].cancel()


async def test_one_that_was_broken_off_keeps_its_room_for_a_while(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xenoglot.engine.admission.LINGER_SECONDS", 0.01)
    await line.come("a", 1, 90)
    await line.come("b", 1, 90)
    line.tickets["a"].release_soon()
    await settle()
    assert line.inside == ["a"]
    await line.tasks["b"]
    assert line.inside == ["a", "b"]


async def test_who_comes_again_is_not_refused_for_those_who_came_meanwhile() -> None:
    line = Line(Admission(slots=1, longest_line=1))
    await line.come("runs", 1, 1)
    await line.come("waits", 1, 1)
    again = asyncio.create_task(line.admission.enter(1, 1, CAPACITY, again=True))
    await settle()
    with pytest.raises(FailureError):
        await line.admission.enter(1, 1, CAPACITY)
    for name in ("runs", "waits"):
        await line.leave(name)
    (await again).release()
    assert line.admission.queue == QueueCounts(running=0, waiting=0, refused=1)
