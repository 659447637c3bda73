"""Upstreams that take their time: signs of life while they may, an error when not; on a clock that never jumps.

U09, U10, U35 and U50.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.faults.cases import BOTH, gone, mode_of
from tests.faults.heard import heard, words_of
from tests.faults.house import IDLE, PING, TOTAL, House, broken, fine, push, stream, well, within_reason
from tests.faults.wires import DIALECTS, FIRST, HELLO, SECOND
from xenoglot.dialect_registry import get
from xenoglot.testing.script import Body, End, Hang, Pause, Repeat, WaitEvent

if TYPE_CHECKING:
    from tests.faults.house import Caller

GO_ON = "go on"
LONG = 300.0
YEARS = 2e8
"""Seconds by which a wall clock may jump."""


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("where", ["U09-before-the-head", "U09-behind-the-head"])
def test_a_long_think(house: House, where: str, client: str, upstream: str, *, streamed: bool) -> None:
    async def scene() -> None:
        steps = well(upstream, streamed=streamed)
        head = 1 if where == "U09-behind-the-head" and streamed else 0
        house.upstream.script((*steps[:head], WaitEvent(GO_ON), *steps[head:]))
        caller = await house.call(client, f"patient-{upstream}-small", streamed=streamed)
        await house.asked()
        for _ in range(2):
            before = len(caller.reader.raw)
            await push(PING)
            await lives(caller, before) if streamed else None
        await push(LONG)
        house.upstream.release(GO_ON)
        answer = await house.finish(caller)
        fine(client, answer, streamed=streamed)
        line = house.line()
        assert (line["finish"], line["failure"]) == ("stop", None)

    house.play(scene())


async def lives(caller: Caller, before: int) -> None:
    """Wait until more has come than before."""
    await within_reason(lambda: len(caller.reader.raw) > before, "a sign of life comes")
    assert not caller.over


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U10-{client}" for client in DIALECTS])
def test_a_long_pause_between_words(house: House, client: str, upstream: str) -> None:
    """U10: no deadline but that of the silence, and signs of life in it: events, where comments are none (Codex)."""

    async def scene() -> None:
        wire = HELLO[upstream]
        rest = [Body(frame) for frame in (*wire.more, *wire.ended, *wire.done)]
        house.upstream.script(stream(upstream, *wire.begun, ending=(WaitEvent(GO_ON), *rest, End())))
        caller = await begun(house, client, f"patient-{upstream}-small")
        before = len(caller.reader.raw)
        await push(PING)
        await lives(caller, before)
        assert b"\ndata: " in caller.reader.raw[before:] or not get(client).begins_early
        await push(LONG)
        house.upstream.release(GO_ON)
        fine(client, await house.finish(caller), streamed=True)

    house.play(scene())


async def begun(house: House, client: str, model: str) -> Caller:
    """Ask for a stream, and wait for its first word."""
    caller = await house.call(client, model, streamed=True)
    await within_reason(lambda: FIRST.encode() in caller.reader.body or caller.over, "the first word is heard")
    return caller


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U10-too-long-{client}" for client in DIALECTS])
def test_too_long_a_pause_between_words(house: House, client: str, upstream: str) -> None:
    """U10: the deadline of the silence is an error, and the upstream is let go."""

    async def scene() -> None:
        house.upstream.script(stream(upstream, *HELLO[upstream].begun, ending=(Hang(),)))
        caller = await begun(house, client, f"{upstream}-small")
        await push(IDLE - 1)
        assert not caller.over
        await push(1)
        answer = await house.finish(caller)
        broken(client, answer, words_of(client, "timeout", streamed=True), FIRST)
        assert house.line()["failure"] == "timeout"
        await gone(house)

    house.play(scene())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U35-{client}" for client in DIALECTS])
def test_an_endless_stream(house: House, client: str, upstream: str) -> None:
    """U35: whoever never falls silent is stopped all the same."""

    async def scene() -> None:
        wire = HELLO[upstream]
        more = Repeat((Pause(IDLE - 4), *(Body(frame) for frame in wire.more)))
        house.upstream.script(stream(upstream, *wire.begun, ending=(more,)))
        caller = await begun(house, client, f"{upstream}-small")
        said = FIRST
        for _ in range(int(TOTAL / (IDLE - 4))):
            assert not caller.over
            await push(IDLE - 4)
            said += SECOND
            await within_reason(partial(has_heard, client, caller, said), "words go on")
        await push(IDLE - 4)
        answer = await house.finish(caller)
        broken(client, answer, words_of(client, "timeout", streamed=True), said)
        await gone(house)

    house.play(scene())


def has_heard(client: str, caller: Caller, text: str) -> bool:
    """Whether these are the words so far."""
    return heard(client, caller.reader.body).text == text


@pytest.mark.parametrize("jump", [YEARS, -YEARS], ids=["U50-forward", "U50-back"])
@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_wall_clock_that_jumps(
    house: House, client: str, jump: float, monkeypatch: pytest.MonkeyPatch, *, streamed: bool
) -> None:
    """U50: no deadline moves with it."""

    async def scene() -> None:
        real = time.time
        steps = well("messages", streamed=streamed)
        house.upstream.script((WaitEvent(GO_ON), *steps))
        caller = await house.call(client, "messages-small", streamed=streamed)
        await house.asked()
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        await push(1)
        house.upstream.release(GO_ON)
        fine(client, await house.finish(caller), streamed=streamed)
        house.upstream.script((Hang(),))
        caller = await house.call(client, "messages-small", streamed=streamed)
        await house.asked(2)
        await push(9)
        assert not caller.over
        monkeypatch.undo()
        await push(1)
        assert (await house.finish(caller)).status == 504

    house.play(scene())
