"""Requests that bring an `Idempotency-Key`: answered once, told again, refused, or freed (C29)."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_aborted, assert_completed, assert_refused
from tests.faults.client_requests import client_request
from tests.faults.client_view import error_codes, read_error
from tests.faults.fault_cases import BOTH, mode_of, wait_until_disconnected
from tests.faults.harness import GatewayHarness
from tests.faults.manual_clock import wait_until
from tests.faults.upstream_steps import streamed_response, valid_response, whole_response
from tests.faults.wire_responses import DIALECTS, FIRST, HELLO, error_body
from xenoglot.gateway.api import idempotency
from xenoglot.gateway.api.idempotency import COMES_SOON, UNSURE
from xenoglot.store.records import IDEMPOTENCY, IDEMPOTENCY_SECONDS, StoreError
from xenoglot.testing.script import Hang, Reset, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tests.faults.raw_client import RawClient, RawResponse
    from xenoglot.gateway.store_service import StoreService
    from xenoglot.testing.script import Step

GO_ON = "go on"
KEY, OTHER_KEY = "order-1", "order-2"
STRANGER = "key-of-a-stranger"
NEVER = 1e9

every_client = pytest.mark.parametrize("client", DIALECTS)
each_mode = pytest.mark.parametrize("streamed", BOTH, ids=mode_of)


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    """Give a harness that keeps things, and lets a second client in."""
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("OTHER_KEY", STRANGER)
        yield GatewayHarness(more={"store": {"url": "memory"}, "keys": {"env": ["CLIENT_KEY", "OTHER_KEY"]}}).start(
            stack
        )


@pytest.fixture(autouse=True)
def keeper(harness: GatewayHarness) -> StoreService:
    """Give what keeps things, on a clock that stands; nothing is there at first."""
    keeper = harness.gateway.keeper
    assert keeper is not None
    keeper.now = lambda: 1000.0
    harness.run(_empty(harness))
    return keeper


async def _empty(harness: GatewayHarness) -> None:
    """Forget everything, and be done with the opening of the store."""
    keeper = harness.gateway.keeper
    assert keeper is not None
    for owner, key in await stored_count(keeper):
        await keeper.store.swap(
            (owner, key, IDEMPOTENCY), await keeper.store.get_cached(owner, key, IDEMPOTENCY), None, 0.0
        )


async def stored_count(keeper: StoreService) -> list[tuple[str, str]]:
    """The owners and keys of all that is there."""
    store = keeper.store
    connection = await store._in_thread(store._open)  # type: ignore[attr-defined]
    return await store._in_thread(lambda: connection.execute("SELECT owner, name FROM vault").fetchall())  # type: ignore[attr-defined, no-any-return]


async def post(  # noqa: PLR0913  what a request is made of
    harness: GatewayHarness,
    client: str,
    *,
    streamed: bool,
    key: str = KEY,
    prompt: str = "",
    headers: Sequence[str] = (),
) -> RawClient:
    """Send a request with a key."""
    path, body = client_request(client, "chat-small", prompt or harness.canaries.prompt, streamed=streamed)
    return await harness.post(path, json.dumps(body).encode(), f"Idempotency-Key: {key}", *headers)


async def ask(harness: GatewayHarness, client: str, *, streamed: bool, key: str = KEY, prompt: str = "") -> RawResponse:
    """The same, and wait for the answer."""
    return await harness.read_response(await post(harness, client, streamed=streamed, key=key, prompt=prompt))


def upstream_request_count(harness: GatewayHarness) -> int:
    """How often the upstream was asked."""
    return len(harness.upstream.requests)


def script(harness: GatewayHarness, *steps: Sequence[Step], streamed: bool) -> None:
    """Have the upstream do these steps at its first requests, and answer well from then on."""
    answers = iter(steps)
    harness.upstream.script(ScriptRule(steps=lambda _: next(answers, valid_response("chat", streamed=streamed))))


@every_client
@each_mode
def test_c29_the_same_request_has_the_same_answer(harness: GatewayHarness, client: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        script(harness, streamed=streamed)
        first, again = [await ask(harness, client, streamed=streamed) for _ in range(2)]
        assert_completed(client, first, streamed=streamed)
        assert (again.status, again.body, again.complete) == (first.status, first.body, first.complete)
        assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
        assert again.headers["content-type"] == first.headers["content-type"]
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
        assert upstream_request_count(harness) == 1
        told = [(line["status"], line["tries"], line["usage"] is None) for line in harness.access_log.lines]
        assert told == [(200, 1, False), (200, 0, True)]

    harness.run(scenario())


@every_client
@each_mode
def test_c29_another_request_under_the_key_is_refused(harness: GatewayHarness, client: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        script(harness, streamed=streamed)
        await ask(harness, client, streamed=streamed)
        other = await ask(harness, client, streamed=streamed, prompt="something else")
        assert (other.status, other.headers["x-should-retry"]) == (422, "false")
        assert "another request" in read_error(client, other.body).message
        assert_completed(client, await ask(harness, client, streamed=streamed, key=OTHER_KEY), streamed=streamed)
        assert upstream_request_count(harness) == 2

    harness.run(scenario())


@every_client
@each_mode
def test_c29_one_at_a_time(harness: GatewayHarness, client: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        wire = HELLO["chat"]
        slow = (
            streamed_response(
                "chat",
                *wire.first_frames,
                ending=(
                    WaitEvent(GO_ON),
                    *streamed_response("chat", *wire.middle_frames, *wire.last_frames, *wire.end_mark)[1:],
                ),
            )
            if streamed
            else (WaitEvent(GO_ON), *whole_response(wire.whole))
        )
        script(harness, slow, streamed=streamed)
        first = await post(harness, client, streamed=streamed)
        await harness.wait_for_upstream_requests()
        second = await ask(harness, client, streamed=streamed)
        assert_refused(client, second, error_codes(client, "conflict"), 409)
        assert (second.headers["retry-after"], "x-should-retry" in second.headers) == (f"{COMES_SOON:.0f}", False)
        harness.upstream.release(GO_ON)
        answer = await harness.read_response(first)
        assert_completed(client, answer, streamed=streamed)
        assert (await ask(harness, client, streamed=streamed)).body == answer.body
        assert upstream_request_count(harness) == 1

    harness.run(scenario())


def test_c29_k24_of_a_stampede_one_is_answered(harness: GatewayHarness) -> None:
    async def scenario() -> None:
        script(harness, (WaitEvent(GO_ON), *whole_response(HELLO["chat"].whole)), streamed=False)
        raw_clients = [await post(harness, "chat", streamed=False) for _ in range(20)]
        await wait_until(
            lambda: sum(raw_client.finished for raw_client in raw_clients) == 19, "all but one are refused"
        )
        harness.upstream.release(GO_ON)
        answers = [await harness.read_response(raw_client) for raw_client in raw_clients]
        assert sorted(answer.status for answer in answers) == [200, *[409] * 19]
        assert upstream_request_count(harness) == 1

    harness.run(scenario())


@every_client
def test_c29_k24_s09_another_client_is_another_matter(harness: GatewayHarness, client: str) -> None:
    async def scenario() -> None:
        script(harness, streamed=False)
        await ask(harness, client, streamed=False)
        theirs = await harness.read_response(
            await post(harness, client, streamed=False, headers=[f"x-api-key: {STRANGER}"])
        )
        assert_completed(client, theirs, streamed=False)
        assert "idempotent-replayed" not in theirs.headers
        assert upstream_request_count(harness) == 2

    harness.run(scenario())


@every_client
@each_mode
def test_c29_after_a_crash_nobody_pays_twice(
    harness: GatewayHarness, keeper: StoreService, client: str, *, streamed: bool
) -> None:
    """What a process that was killed leaves: the mark of a request of which nobody knows how it ended."""

    async def scenario() -> None:
        script(harness, (Hang(),), streamed=streamed)
        raw_client = await post(harness, client, streamed=streamed)
        await harness.wait_for_upstream_requests()
        ((owner, key),) = await stored_count(keeper)
        mark = await keeper.store.get_cached(owner, key, IDEMPOTENCY)
        raw_client.transport.abort()
        await wait_until_disconnected(harness)
        await wait_until(lambda: not harness.gateway.requests.tasks, "the request is over")
        assert await keeper.store.swap((owner, key, IDEMPOTENCY), None, mark, 1000.0)

        keeper.now = lambda: 1000.0 + UNSURE - 1
        assert_refused(client, await ask(harness, client, streamed=streamed), error_codes(client, "conflict"), 409)
        assert upstream_request_count(harness) == 1
        keeper.now = lambda: 1000.0 + UNSURE
        assert_completed(client, await ask(harness, client, streamed=streamed), streamed=streamed)
        assert upstream_request_count(harness) == 2

    harness.run(scenario())


@every_client
@pytest.mark.parametrize(
    ("steps", "streamed"),
    [
        pytest.param(whole_response(error_body("chat", "down"), 503), False, id="refused"),
        pytest.param(whole_response(error_body("chat", "slow down"), 429), True, id="limited"),
        pytest.param(streamed_response("chat", *HELLO["chat"].first_frames, ending=(Reset(),)), True, id="broken"),
        pytest.param(streamed_response("chat", *HELLO["chat"].first_frames, HELLO["chat"].error), True, id="failed"),
    ],
)
def test_c29_k24_what_failed_can_be_asked_again(
    harness: GatewayHarness, keeper: StoreService, client: str, steps: Sequence[Step], *, streamed: bool
) -> None:
    async def scenario() -> None:
        script(harness, steps, streamed=streamed)
        first = await ask(harness, client, streamed=streamed)
        if first.status == 200:
            words = "overloaded" if HELLO["chat"].error in steps_bytes(steps) else "upstream"
            assert_aborted(client, first, error_codes(client, words, streamed=True), FIRST)
        assert await stored_count(keeper) == []
        assert_completed(client, await ask(harness, client, streamed=streamed), streamed=streamed)
        assert upstream_request_count(harness) == 2

    harness.run(scenario())


def steps_bytes(steps: Sequence[Step]) -> list[bytes]:
    """What is sent by steps."""
    return [step.data for step in steps if hasattr(step, "data")]


@every_client
def test_c29_a_client_that_leaves_frees_its_key(harness: GatewayHarness, keeper: StoreService, client: str) -> None:
    """C02 holds: what nobody reads is stopped, not finished; so it cannot be told again."""

    async def scenario() -> None:
        script(harness, streamed_response("chat", *HELLO["chat"].first_frames, ending=(Hang(),)), streamed=True)
        raw_client = await post(harness, client, streamed=True)
        await wait_until(lambda: FIRST.encode() in raw_client.reader.raw, "the first word comes")
        raw_client.transport.abort()
        await wait_until_disconnected(harness)
        await wait_until(lambda: not harness.gateway.requests.tasks, "the request is over")
        assert await stored_count(keeper) == []
        assert_completed(client, await ask(harness, client, streamed=True), streamed=True)

    harness.run(scenario())


def test_c29_an_answer_is_told_for_a_day(harness: GatewayHarness, keeper: StoreService) -> None:
    async def scenario() -> None:
        script(harness, streamed=False)
        counts = []
        for later in (0.0, UNSURE + 1, IDEMPOTENCY_SECONDS - 1, IDEMPOTENCY_SECONDS, IDEMPOTENCY_SECONDS + 1):
            keeper.now = lambda later=later: 1000.0 + later  # type: ignore[misc]
            await ask(harness, "chat", streamed=False)
            counts.append(upstream_request_count(harness))
        assert counts == [1, 1, 1, 2, 2]

    harness.run(scenario())


def test_c29_of_an_answer_too_large_only_that_it_was_given(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MOST_BYTES", 100)

    async def scenario() -> None:
        script(harness, streamed=True)
        assert_completed("chat", await ask(harness, "chat", streamed=True), streamed=True)
        again = await ask(harness, "chat", streamed=True)
        assert (again.status, again.headers["x-should-retry"]) == (409, "false")
        assert upstream_request_count(harness) == 1

    harness.run(scenario())


@pytest.mark.parametrize("key", ["", "k" * 256, "schlüssel", "a\tb"])
def test_c29_what_is_no_key_is_refused(harness: GatewayHarness, key: str) -> None:
    async def scenario() -> None:
        assert_refused(
            "chat", await ask(harness, "chat", streamed=False, key=key), error_codes("chat", "invalid_request"), 400
        )
        assert upstream_request_count(harness) == 0

    harness.run(scenario())


def test_c29_two_keys_are_refused(harness: GatewayHarness) -> None:
    async def scenario() -> None:
        raw_client = await post(harness, "messages", streamed=False, headers=["idempotency-key: second"])
        assert_refused(
            "messages", await harness.read_response(raw_client), error_codes("messages", "invalid_request"), 400
        )
        assert upstream_request_count(harness) == 0

    harness.run(scenario())


def test_c29_a_key_that_a_client_makes_up_anew_hinders_nobody(harness: GatewayHarness) -> None:
    """What OpenAI's library sends where it is told to: a key for each call, the same for its retries."""

    async def scenario() -> None:
        script(harness, whole_response(error_body("chat", "down"), 500), streamed=False)
        key = "stainless-python-retry-7b0c4a4e-5b0e-4a63-9d6b-7c7f0d8e2f11"
        assert (await ask(harness, "chat", streamed=False, key=key)).status == 500
        assert_completed("chat", await ask(harness, "chat", streamed=False, key=key), streamed=False)

    harness.run(scenario())


@each_mode
@pytest.mark.parametrize("fails", ["at-first", "in-the-end"])
def test_c29_k19_a_store_that_fails_costs_nobody_an_answer(
    harness: GatewayHarness, keeper: StoreService, monkeypatch: pytest.MonkeyPatch, fails: str, *, streamed: bool
) -> None:
    good, count = keeper.store.swap, 0

    async def swap(*arguments: object) -> bool:
        nonlocal count
        count += 1
        if fails == "at-first" or count == 2:
            raise StoreError("the store failed: TEST")
        return await good(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(keeper.store, "swap", swap)

    async def scenario() -> None:
        script(harness, streamed=streamed)
        answer = await ask(harness, "messages", streamed=streamed)
        assert_completed("messages", answer, streamed=streamed)
        told = answer.headers.get("x-xenoglot-idempotency")
        again = await ask(harness, "messages", streamed=streamed)
        statuses = (answer.status, told, again.status, upstream_request_count(harness))
        assert statuses == ((200, "not kept", 200, 2) if fails == "at-first" else (200, None, 409, 1))

    harness.run(scenario())


def test_c29_where_nothing_is_kept_the_client_is_told(harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.gateway.idempotency, "keeper", None)

    async def scenario() -> None:
        script(harness, streamed=False)
        answers = [await ask(harness, "chat", streamed=False) for _ in range(2)]
        assert [answer.headers["x-xenoglot-idempotency"] for answer in answers] == ["not kept"] * 2
        assert upstream_request_count(harness) == 2

    harness.run(scenario())


def test_c29_a_kept_answer_keeps_its_id(harness: GatewayHarness) -> None:
    async def scenario() -> None:
        script(harness, streamed=False)
        body = json.dumps({"model": "chat-small", "input": "Hi"}).encode()
        answers = [
            await harness.read_response(await harness.post("/v1/responses", body, f"idempotency-key: {KEY}"))
            for _ in range(2)
        ]
        assert json.loads(answers[0].body)["id"] == json.loads(answers[1].body)["id"]
        assert upstream_request_count(harness) == 1

    harness.run(scenario())
