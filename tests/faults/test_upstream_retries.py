"""Faults that pass: where it is allowed to try again, clients hear of none; where it is not, that is not done."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_aborted, assert_completed
from tests.faults.client_view import error_codes
from tests.faults.fault_cases import BOTH, mode_of, wait_until_disconnected
from tests.faults.harness import FIRST_BYTE, LISTENING, REFUSING, GatewayHarness
from tests.faults.manual_clock import advance
from tests.faults.upstream_steps import streamed_response, valid_response, whole_response
from tests.faults.wire_responses import ALL_DIALECTS, FIRST, HELLO, error_body
from xenoglot.testing.script import Close, Hang, Reset, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from xenoglot.testing.script import Step

    Made = Callable[[str], Sequence[Step]]

ATTEMPTS = 3
PAGE = b"<html></html>"


@pytest.fixture(scope="module")
def retrying() -> Generator[GatewayHarness]:
    """Give a harness that tries three times, and waits for nothing that it is not told to."""
    with ExitStack() as stack:
        yield GatewayHarness(retry={"attempts": ATTEMPTS, "base": 0.0, "cap": 0.0, "timeouts": True}).start(stack)


def page(status: int, **headers: str) -> Made:
    """Refuse with a page."""
    return lambda _: whole_response(PAGE, status, "text/html", **headers)


TRANSIENT: dict[str, Made] = {
    "U11-reset": lambda _: (Reset(),),
    "U11-closed": lambda _: (Close(),),
    "U24-page": page(200),
    "U24-ended-before-it-began": streamed_response,
    "U38-408": page(408),
    "U38-425": page(425),
    "U38-500": page(500),
    "U38-502": page(502),
    "U38-503": page(503),
    "U38-529": page(529),
}
PERMANENT: dict[str, Made] = {
    "U39-400": lambda upstream: whole_response(error_body(upstream, "no", "invalid_request_error"), 400),
    "U41-404": page(404),
    "U40-401": page(401),
    "U42-302": page(302, location="http://upstream.test/elsewhere"),
}
PLACES = [(client, "messages") for client in ALL_DIALECTS] + [
    ("chat", upstream) for upstream in ALL_DIALECTS if upstream != "messages"
]


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize(("client", "upstream"), PLACES, ids=[f"{client}-to-{upstream}" for client, upstream in PLACES])
@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_fault_that_passes(
    retrying: GatewayHarness, fault: str, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        rule = ScriptRule(steps=tuple(TRANSIENT[fault](upstream)), times=ATTEMPTS - 1)
        retrying.upstream.script(rule, valid_response(upstream, streamed=streamed))
        answer = await retrying.request(client, f"{upstream}-small", streamed=streamed)
        assert_completed(client, answer, streamed=streamed)
        assert (retrying.access_log_line()["tries"], len(retrying.upstream.requests)) == (ATTEMPTS, ATTEMPTS)

    retrying.run(scenario())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", ALL_DIALECTS, ids=[f"U01-{client}" for client in ALL_DIALECTS])
def test_an_upstream_that_comes_back(retrying: GatewayHarness, client: str, *, streamed: bool) -> None:
    """U01."""

    async def scenario() -> None:
        answers: list[Sequence[str]] = [(REFUSING,), (REFUSING,), (LISTENING,)]
        retrying.addresses = deque(answers)
        retrying.upstream.script(valid_response("chat", streamed=streamed))
        assert_completed(client, await retrying.request(client, "chat-small", streamed=streamed), streamed=streamed)
        assert retrying.access_log_line()["tries"] == ATTEMPTS

    retrying.run(scenario())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", ALL_DIALECTS, ids=[f"U07-{client}" for client in ALL_DIALECTS])
def test_an_upstream_that_says_nothing_once(retrying: GatewayHarness, client: str, *, streamed: bool) -> None:
    """U07, where it is set so."""

    async def scenario() -> None:
        retrying.upstream.script(ScriptRule(steps=(Hang(),), times=1), valid_response("chat", streamed=streamed))
        raw_client = await retrying.start_request(client, "chat-small", streamed=streamed)
        await retrying.wait_for_upstream_requests()
        await advance(FIRST_BYTE)
        assert_completed(client, await retrying.read_response(raw_client), streamed=streamed)
        assert retrying.access_log_line()["tries"] == 2

    retrying.run(scenario())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", ALL_DIALECTS, ids=[f"U37-{client}" for client in ALL_DIALECTS])
def test_a_rate_limit_that_is_over_soon(retrying: GatewayHarness, client: str, *, streamed: bool) -> None:
    """U37: it is waited for, for as long as it was said and no shorter."""

    async def scenario() -> None:
        rule = ScriptRule(steps=tuple(page(429, retry_after="3")("chat")), times=1)
        retrying.upstream.script(rule, valid_response("chat", streamed=streamed))
        raw_client = await retrying.start_request(client, "chat-small", streamed=streamed)
        await retrying.wait_for_upstream_requests()
        await advance(2.5)
        assert (raw_client.finished, len(retrying.upstream.requests)) == (False, 1)
        await advance(1)
        assert_completed(client, await retrying.read_response(raw_client), streamed=streamed)

    retrying.run(scenario())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", ALL_DIALECTS, ids=[f"U38-spent-{client}" for client in ALL_DIALECTS])
def test_a_fault_that_lasts(retrying: GatewayHarness, client: str, *, streamed: bool) -> None:
    """U38: what we have tried in vain, the client need not try as well."""

    async def scenario() -> None:
        retrying.upstream.script(tuple(page(503)("chat")))
        answer = await retrying.request(client, "chat-small", streamed=streamed)
        assert answer.status == (503 if client != "messages" else 529)
        assert answer.headers["x-should-retry"] == "false"
        assert (retrying.access_log_line()["tries"], len(retrying.upstream.requests)) == (ATTEMPTS, ATTEMPTS)

    retrying.run(scenario())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize(("client", "upstream"), PLACES, ids=[f"{client}-to-{upstream}" for client, upstream in PLACES])
@pytest.mark.parametrize("fault", PERMANENT)
def test_a_fault_that_is_not_tried_again(
    retrying: GatewayHarness, fault: str, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        retrying.upstream.script(tuple(PERMANENT[fault](upstream)))
        answer = await retrying.request(client, f"{upstream}-small", streamed=streamed)
        assert answer.status in (400, 404, 502)
        assert len(retrying.upstream.requests) == 1

    retrying.run(scenario())


@pytest.mark.parametrize("upstream", ALL_DIALECTS)
@pytest.mark.parametrize("client", ALL_DIALECTS, ids=[f"U13-{client}" for client in ALL_DIALECTS])
def test_nothing_is_tried_again_once_words_were_said(retrying: GatewayHarness, client: str, upstream: str) -> None:
    """U13: two beginnings make no answer."""

    async def scenario() -> None:
        retrying.upstream.script(streamed_response(upstream, *HELLO[upstream].first_frames, ending=(Reset(),)))
        answer = await retrying.request(client, f"{upstream}-small", streamed=True)
        assert_aborted(client, answer, error_codes(client, "upstream", streamed=True), FIRST)
        assert len(retrying.upstream.requests) == 1
        await wait_until_disconnected(retrying)

    retrying.run(scenario())
