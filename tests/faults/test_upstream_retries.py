"""Faults that pass: where it is allowed to try again, clients hear of none; where it is not, that is not done."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.cases import BOTH, gone, mode_of
from tests.faults.heard import words_of
from tests.faults.house import FIRST_BYTE, HERE, NOWHERE, House, broken, fine, push, stream, well, whole
from tests.faults.wires import DIALECTS, FIRST, HELLO, error_body
from xenoglot.testing.script import Close, Hang, Reset, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from xenoglot.testing.script import Step

    Made = Callable[[str], Sequence[Step]]

ATTEMPTS = 3
PAGE = b"<html></html>"


@pytest.fixture(scope="module")
def trying() -> Generator[House]:
    """Give a house that tries three times, and waits for nothing that it is not told to."""
    with ExitStack() as stack:
        yield House(retry={"attempts": ATTEMPTS, "base": 0.0, "cap": 0.0, "timeouts": True}).start(stack)


def page(status: int, **headers: str) -> Made:
    """Refuse with a page."""
    return lambda _: whole(PAGE, status, "text/html", **headers)


PASSING: dict[str, Made] = {
    "U11-reset": lambda _: (Reset(),),
    "U11-closed": lambda _: (Close(),),
    "U24-page": page(200),
    "U24-ended-before-it-began": stream,
    "U38-408": page(408),
    "U38-425": page(425),
    "U38-500": page(500),
    "U38-502": page(502),
    "U38-503": page(503),
    "U38-529": page(529),
}
LASTING: dict[str, Made] = {
    "U39-400": lambda upstream: whole(error_body(upstream, "no", "invalid_request_error"), 400),
    "U41-404": page(404),
    "U40-401": page(401),
    "U42-302": page(302, location="http://upstream.test/elsewhere"),
}
PLACES = [(client, "messages") for client in DIALECTS] + [
    ("chat", upstream) for upstream in DIALECTS if upstream != "messages"
]


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize(("client", "upstream"), PLACES, ids=[f"{client}-to-{upstream}" for client, upstream in PLACES])
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes(trying: House, fault: str, client: str, upstream: str, *, streamed: bool) -> None:
    async def scene() -> None:
        rule = ScriptRule(steps=tuple(PASSING[fault](upstream)), times=ATTEMPTS - 1)
        trying.upstream.script(rule, well(upstream, streamed=streamed))
        answer = await trying.ask(client, f"{upstream}-small", streamed=streamed)
        fine(client, answer, streamed=streamed)
        assert (trying.line()["tries"], len(trying.upstream.requests)) == (ATTEMPTS, ATTEMPTS)

    trying.play(scene())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U01-{client}" for client in DIALECTS])
def test_an_upstream_that_comes_back(trying: House, client: str, *, streamed: bool) -> None:
    """U01."""

    async def scene() -> None:
        answers: list[Sequence[str]] = [(NOWHERE,), (NOWHERE,), (HERE,)]
        trying.addresses = deque(answers)
        trying.upstream.script(well("chat", streamed=streamed))
        fine(client, await trying.ask(client, "chat-small", streamed=streamed), streamed=streamed)
        assert trying.line()["tries"] == ATTEMPTS

    trying.play(scene())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U07-{client}" for client in DIALECTS])
def test_an_upstream_that_says_nothing_once(trying: House, client: str, *, streamed: bool) -> None:
    """U07, where it is set so."""

    async def scene() -> None:
        trying.upstream.script(ScriptRule(steps=(Hang(),), times=1), well("chat", streamed=streamed))
        caller = await trying.call(client, "chat-small", streamed=streamed)
        await trying.asked()
        await push(FIRST_BYTE)
        fine(client, await trying.finish(caller), streamed=streamed)
        assert trying.line()["tries"] == 2

    trying.play(scene())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U37-{client}" for client in DIALECTS])
def test_a_rate_limit_that_is_over_soon(trying: House, client: str, *, streamed: bool) -> None:
    """U37: it is waited for, for as long as it was said and no shorter."""

    async def scene() -> None:
        rule = ScriptRule(steps=tuple(page(429, retry_after="3")("chat")), times=1)
        trying.upstream.script(rule, well("chat", streamed=streamed))
        caller = await trying.call(client, "chat-small", streamed=streamed)
        await trying.asked()
        await push(2.5)
        assert (caller.over, len(trying.upstream.requests)) == (False, 1)
        await push(1)
        fine(client, await trying.finish(caller), streamed=streamed)

    trying.play(scene())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U38-spent-{client}" for client in DIALECTS])
def test_a_fault_that_lasts(trying: House, client: str, *, streamed: bool) -> None:
    """U38: what we have tried in vain, the client need not try as well."""

    async def scene() -> None:
        trying.upstream.script(tuple(page(503)("chat")))
        answer = await trying.ask(client, "chat-small", streamed=streamed)
        assert answer.status == (503 if client != "messages" else 529)
        assert answer.headers["x-should-retry"] == "false"
        assert (trying.line()["tries"], len(trying.upstream.requests)) == (ATTEMPTS, ATTEMPTS)

    trying.play(scene())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize(("client", "upstream"), PLACES, ids=[f"{client}-to-{upstream}" for client, upstream in PLACES])
@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_is_not_tried_again(
    trying: House, fault: str, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scene() -> None:
        trying.upstream.script(tuple(LASTING[fault](upstream)))
        answer = await trying.ask(client, f"{upstream}-small", streamed=streamed)
        assert answer.status in (400, 404, 502)
        assert len(trying.upstream.requests) == 1

    trying.play(scene())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U13-{client}" for client in DIALECTS])
def test_nothing_is_tried_again_once_words_were_said(trying: House, client: str, upstream: str) -> None:
    """U13: two beginnings make no answer."""

    async def scene() -> None:
        trying.upstream.script(stream(upstream, *HELLO[upstream].begun, ending=(Reset(),)))
        answer = await trying.ask(client, f"{upstream}-small", streamed=True)
        broken(client, answer, words_of(client, "upstream", streamed=True), FIRST)
        assert len(trying.upstream.requests) == 1
        await gone(trying)

    trying.play(scene())
