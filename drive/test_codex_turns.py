"""Codex over a WebSocket whose turns do not just end: interrupted, steered, cut off, in front of each dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from drive.codex_app_server import CodexAppServer
from drive.conftest import TURNS, Place, furnished
from drive.cut_proxy import CutProxy
from drive.held_answers import PIECES, WHOLE, HeldAnswers, held_answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUTE = "/v1/responses"
HELD = 3
"""How often Codex asks over a WebSocket, as it is configured: once, and two retries."""

OPENED = ("GET", 101, None)
SERVED = ("POST", 200, None)
"""The first of a connection that Codex begins with generates nothing."""
CANCELLED = ("POST", 200, "cancelled")


class TurnSetup(Struct, frozen=True):
    """A server of one dialect behind a gateway, and a proxy that Codex reaches it through."""

    held: HeldAnswers
    proxy: CutProxy
    place: Place

    def codex(self) -> CodexAppServer:
        """Return Codex, which is not running yet."""
        return CodexAppServer(self.place, self.proxy.url)


@pytest.fixture(params=TURNS)
def turns(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TurnSetup]:
    """Give a setup for each dialect."""
    with held_answers(tmp_path, request.param) as held, CutProxy(held.served.url) as proxy:
        home, work = furnished(tmp_path)
        yield TurnSetup(held=held, proxy=proxy, place=Place(url=proxy.url, home=home, work=work))


def test_an_interrupted_turn_stops_the_upstream_and_the_next_goes_on(turns: TurnSetup) -> None:
    turns.held.hold()
    with turns.codex() as codex:
        turn = codex.begin("tell me much")
        codex.until("item/agentMessage/delta")
        codex.call("turn/interrupt", threadId=codex.thread_id, turnId=turn)
        assert codex.end()[0] == "interrupted"
        turns.held.wait_for_disconnect()
        codex.begin("go on then")
        assert codex.end() == ("completed", [WHOLE])
        _, last = turns.held.bodies()
        assert b"tell me much" in last
        assert b"go on then" in last
    assert turns.held.lines(ROUTE) == [OPENED, SERVED, CANCELLED, OPENED, SERVED]


def test_what_the_user_adds_to_a_turn_is_asked_next(turns: TurnSetup) -> None:
    """Codex keeps it until the answer has ended, and continues that answer with it."""
    turns.held.hold()
    with turns.codex() as codex:
        turn = codex.begin("tell me much")
        codex.until("item/agentMessage/delta")
        said = [{"type": "text", "text": "no, tell me little"}]
        codex.call("turn/steer", threadId=codex.thread_id, expectedTurnId=turn, input=said)
        turns.held.go_on()
        assert codex.end() == ("completed", [WHOLE, WHOLE])
    first, second = turns.held.bodies()
    assert b"no, tell me little" not in first
    assert second.index(b"tell me much") < second.index(WHOLE.encode()) < second.index(b"no, tell me little")
    assert turns.held.lines(ROUTE) == [OPENED, SERVED, SERVED, SERVED]


def test_a_connection_that_is_cut_in_an_answer_is_made_again(turns: TurnSetup) -> None:
    """The gateway stops the upstream; Codex connects again, and sends the whole conversation."""
    turns.held.hold()
    with turns.codex() as codex:
        codex.begin("tell me much")
        codex.until("item/agentMessage/delta")
        turns.proxy.cut()
        turns.held.wait_for_disconnect()
        assert codex.end() == ("completed", [WHOLE])
        codex.begin("go on then")
        assert codex.end() == ("completed", [WHOLE])
    _, second, third = turns.held.bodies()
    assert b"tell me much" in second
    assert b"go on then" in third
    assert turns.held.lines(ROUTE) == [OPENED, SERVED, CANCELLED, OPENED, SERVED, SERVED]


def test_one_that_is_cut_between_two_turns_is_made_again(turns: TurnSetup) -> None:
    with turns.codex() as codex:
        codex.begin("tell me much")
        assert codex.end() == ("completed", [WHOLE])
        turns.proxy.cut()
        codex.begin("go on then")
        assert codex.end() == ("completed", [WHOLE])
    _, second = turns.held.bodies()
    assert second.index(b"tell me much") < second.index(WHOLE.encode()) < second.index(b"go on then")
    assert turns.held.lines(ROUTE) == [OPENED, SERVED, SERVED, OPENED, SERVED]


def test_where_each_connection_is_cut_codex_posts(turns: TurnSetup) -> None:
    turns.held.hold(HELD)
    with turns.codex() as codex:
        codex.begin("tell me much")
        for _ in range(HELD):
            while codex.until("item/agentMessage/delta")["delta"] != PIECES[0]:
                pass
            turns.proxy.cut()
        assert codex.end() == ("completed", [WHOLE])
    assert turns.held.lines(ROUTE) == [OPENED, SERVED, CANCELLED, *[OPENED, CANCELLED] * (HELD - 1), SERVED]
