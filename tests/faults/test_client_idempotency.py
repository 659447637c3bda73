"""Requests that bring an `Idempotency-Key`: answered once, told again, refused, or freed (C29)."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.cases import BOTH, gone, mode_of
from tests.faults.heard import envelope, words_of
from tests.faults.house import House, asking, broken, fine, refused, stream, well, whole, within_reason
from tests.faults.wires import DIALECTS, FIRST, HELLO, error_body
from xenoglot.gateway.api import idempotency
from xenoglot.gateway.api.idempotency import COMES_SOON, UNSURE
from xenoglot.store.records import ONCE, ONCE_SECONDS, StoreError
from xenoglot.testing.script import Hang, Reset, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tests.faults.house import Answer, Caller
    from xenoglot.gateway.store_service import StoreService
    from xenoglot.testing.script import Step

GO_ON = "go on"
KEY, OTHER_KEY = "order-1", "order-2"
STRANGER = "key-of-a-stranger"
NEVER = 1e9

every_client = pytest.mark.parametrize("client", DIALECTS)
each_mode = pytest.mark.parametrize("streamed", BOTH, ids=mode_of)


@pytest.fixture(scope="module")
def house() -> Generator[House]:
    """Give a house that keeps things, and lets a second client in."""
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("OTHER_KEY", STRANGER)
        yield House(more={"store": {"url": "memory"}, "keys": {"env": ["CLIENT_KEY", "OTHER_KEY"]}}).start(stack)


@pytest.fixture(autouse=True)
def keeper(house: House) -> StoreService:
    """Give what keeps things, on a clock that stands; nothing is there at first."""
    keeper = house.gateway.keeper
    assert keeper is not None
    keeper.now = lambda: 1000.0
    house.play(_empty(house))
    return keeper


async def _empty(house: House) -> None:
    """Forget everything, and be done with the opening of the store."""
    keeper = house.gateway.keeper
    assert keeper is not None
    for owner, key in await kept(keeper):
        await keeper.store.swap((owner, key, ONCE), await keeper.store.recall(owner, key, ONCE), None, 0.0)


async def kept(keeper: StoreService) -> list[tuple[str, str]]:
    """The owners and keys of all that is there."""
    store = keeper.store
    connection = await store._in_thread(store._open)  # type: ignore[attr-defined]
    return await store._in_thread(lambda: connection.execute("SELECT owner, name FROM vault").fetchall())  # type: ignore[attr-defined, no-any-return]


async def post(  # noqa: PLR0913  what a request is made of
    house: House, client: str, *, streamed: bool, key: str = KEY, prompt: str = "", headers: Sequence[str] = ()
) -> Caller:
    """Send a request with a key."""
    path, body = asking(client, "chat-small", prompt or house.canaries.prompt, streamed=streamed)
    return await house.send(path, json.dumps(body).encode(), f"Idempotency-Key: {key}", *headers)


async def ask(house: House, client: str, *, streamed: bool, key: str = KEY, prompt: str = "") -> Answer:
    """The same, and wait for the answer."""
    return await house.finish(await post(house, client, streamed=streamed, key=key, prompt=prompt))


def asked(house: House) -> int:
    """How often the upstream was asked."""
    return len(house.upstream.requests)


def script(house: House, *steps: Sequence[Step], streamed: bool) -> None:
    """Have the upstream do these steps at its first requests, and answer well from then on."""
    answers = iter(steps)
    house.upstream.script(ScriptRule(steps=lambda _: next(answers, well("chat", streamed=streamed))))


@every_client
@each_mode
def test_c29_the_same_request_has_the_same_answer(house: House, client: str, *, streamed: bool) -> None:
    async def scene() -> None:
        script(house, streamed=streamed)
        first, again = [await ask(house, client, streamed=streamed) for _ in range(2)]
        fine(client, first, streamed=streamed)
        assert (again.status, again.body, again.complete) == (first.status, first.body, first.complete)
        assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
        assert again.headers["content-type"] == first.headers["content-type"]
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
        assert asked(house) == 1
        told = [(line["status"], line["tries"], line["usage"] is None) for line in house.lines.lines]
        assert told == [(200, 1, False), (200, 0, True)]

    house.play(scene())


@every_client
@each_mode
def test_c29_another_request_under_the_key_is_refused(house: House, client: str, *, streamed: bool) -> None:
    async def scene() -> None:
        script(house, streamed=streamed)
        await ask(house, client, streamed=streamed)
        other = await ask(house, client, streamed=streamed, prompt="something else")
        assert (other.status, other.headers["x-should-retry"]) == (422, "false")
        assert "another request" in envelope(client, other.body).message
        fine(client, await ask(house, client, streamed=streamed, key=OTHER_KEY), streamed=streamed)
        assert asked(house) == 2

    house.play(scene())


@every_client
@each_mode
def test_c29_one_at_a_time(house: House, client: str, *, streamed: bool) -> None:
    async def scene() -> None:
        wire = HELLO["chat"]
        slow = (
            stream(
                "chat", *wire.begun, ending=(WaitEvent(GO_ON), *stream("chat", *wire.more, *wire.ended, *wire.done)[1:])
            )
            if streamed
            else (WaitEvent(GO_ON), *whole(wire.whole))
        )
        script(house, slow, streamed=streamed)
        first = await post(house, client, streamed=streamed)
        await house.asked()
        second = await ask(house, client, streamed=streamed)
        refused(client, second, words_of(client, "conflict"), 409)
        assert (second.headers["retry-after"], "x-should-retry" in second.headers) == (f"{COMES_SOON:.0f}", False)
        house.upstream.release(GO_ON)
        answer = await house.finish(first)
        fine(client, answer, streamed=streamed)
        assert (await ask(house, client, streamed=streamed)).body == answer.body
        assert asked(house) == 1

    house.play(scene())


def test_c29_k24_of_a_stampede_one_is_answered(house: House) -> None:
    async def scene() -> None:
        script(house, (WaitEvent(GO_ON), *whole(HELLO["chat"].whole)), streamed=False)
        callers = [await post(house, "chat", streamed=False) for _ in range(20)]
        await within_reason(lambda: sum(caller.over for caller in callers) == 19, "all but one are refused")
        house.upstream.release(GO_ON)
        answers = [await house.finish(caller) for caller in callers]
        assert sorted(answer.status for answer in answers) == [200, *[409] * 19]
        assert asked(house) == 1

    house.play(scene())


@every_client
def test_c29_k24_s09_another_client_is_another_matter(house: House, client: str) -> None:
    async def scene() -> None:
        script(house, streamed=False)
        await ask(house, client, streamed=False)
        theirs = await house.finish(await post(house, client, streamed=False, headers=[f"x-api-key: {STRANGER}"]))
        fine(client, theirs, streamed=False)
        assert "idempotent-replayed" not in theirs.headers
        assert asked(house) == 2

    house.play(scene())


@every_client
@each_mode
def test_c29_after_a_crash_nobody_pays_twice(
    house: House, keeper: StoreService, client: str, *, streamed: bool
) -> None:
    """What a process that was killed leaves: the mark of a request of which nobody knows how it ended."""

    async def scene() -> None:
        script(house, (Hang(),), streamed=streamed)
        caller = await post(house, client, streamed=streamed)
        await house.asked()
        ((owner, key),) = await kept(keeper)
        mark = await keeper.store.recall(owner, key, ONCE)
        caller.transport.abort()
        await gone(house)
        await within_reason(lambda: not house.gateway.requests.tasks, "the request is over")
        assert await keeper.store.swap((owner, key, ONCE), None, mark, 1000.0)

        keeper.now = lambda: 1000.0 + UNSURE - 1
        refused(client, await ask(house, client, streamed=streamed), words_of(client, "conflict"), 409)
        assert asked(house) == 1
        keeper.now = lambda: 1000.0 + UNSURE
        fine(client, await ask(house, client, streamed=streamed), streamed=streamed)
        assert asked(house) == 2

    house.play(scene())


@every_client
@pytest.mark.parametrize(
    ("steps", "streamed"),
    [
        pytest.param(whole(error_body("chat", "down"), 503), False, id="refused"),
        pytest.param(whole(error_body("chat", "slow down"), 429), True, id="limited"),
        pytest.param(stream("chat", *HELLO["chat"].begun, ending=(Reset(),)), True, id="broken"),
        pytest.param(stream("chat", *HELLO["chat"].begun, HELLO["chat"].error), True, id="failed"),
    ],
)
def test_c29_k24_what_failed_can_be_asked_again(
    house: House, keeper: StoreService, client: str, steps: Sequence[Step], *, streamed: bool
) -> None:
    async def scene() -> None:
        script(house, steps, streamed=streamed)
        first = await ask(house, client, streamed=streamed)
        if first.status == 200:
            words = "overloaded" if HELLO["chat"].error in steps_bytes(steps) else "upstream"
            broken(client, first, words_of(client, words, streamed=True), FIRST)
        assert await kept(keeper) == []
        fine(client, await ask(house, client, streamed=streamed), streamed=streamed)
        assert asked(house) == 2

    house.play(scene())


def steps_bytes(steps: Sequence[Step]) -> list[bytes]:
    """What is sent by steps."""
    return [step.data for step in steps if hasattr(step, "data")]


@every_client
def test_c29_a_client_that_leaves_frees_its_key(house: House, keeper: StoreService, client: str) -> None:
    """C02 holds: what nobody reads is stopped, not finished; so it cannot be told again."""

    async def scene() -> None:
        script(house, stream("chat", *HELLO["chat"].begun, ending=(Hang(),)), streamed=True)
        caller = await post(house, client, streamed=True)
        await within_reason(lambda: FIRST.encode() in caller.reader.raw, "the first word comes")
        caller.transport.abort()
        await gone(house)
        await within_reason(lambda: not house.gateway.requests.tasks, "the request is over")
        assert await kept(keeper) == []
        fine(client, await ask(house, client, streamed=True), streamed=True)

    house.play(scene())


def test_c29_an_answer_is_told_for_a_day(house: House, keeper: StoreService) -> None:
    async def scene() -> None:
        script(house, streamed=False)
        counts = []
        for later in (0.0, UNSURE + 1, ONCE_SECONDS - 1, ONCE_SECONDS, ONCE_SECONDS + 1):
            keeper.now = lambda later=later: 1000.0 + later  # type: ignore[misc]
            await ask(house, "chat", streamed=False)
            counts.append(asked(house))
        assert counts == [1, 1, 1, 2, 2]

    house.play(scene())


def test_c29_of_an_answer_too_large_only_that_it_was_given(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MOST_BYTES", 100)

    async def scene() -> None:
        script(house, streamed=True)
        fine("chat", await ask(house, "chat", streamed=True), streamed=True)
        again = await ask(house, "chat", streamed=True)
        assert (again.status, again.headers["x-should-retry"]) == (409, "false")
        assert asked(house) == 1

    house.play(scene())


@pytest.mark.parametrize("key", ["", "k" * 256, "schlüssel", "a\tb"])
def test_c29_what_is_no_key_is_refused(house: House, key: str) -> None:
    async def scene() -> None:
        refused("chat", await ask(house, "chat", streamed=False, key=key), words_of("chat", "invalid_request"), 400)
        assert asked(house) == 0

    house.play(scene())


def test_c29_two_keys_are_refused(house: House) -> None:
    async def scene() -> None:
        caller = await post(house, "messages", streamed=False, headers=["idempotency-key: second"])
        refused("messages", await house.finish(caller), words_of("messages", "invalid_request"), 400)
        assert asked(house) == 0

    house.play(scene())


def test_c29_a_key_that_a_client_makes_up_anew_hinders_nobody(house: House) -> None:
    """What OpenAI's library sends where it is told to: a key for each call, the same for its retries."""

    async def scene() -> None:
        script(house, whole(error_body("chat", "down"), 500), streamed=False)
        key = "stainless-python-retry-7b0c4a4e-5b0e-4a63-9d6b-7c7f0d8e2f11"
        assert (await ask(house, "chat", streamed=False, key=key)).status == 500
        fine("chat", await ask(house, "chat", streamed=False, key=key), streamed=False)

    house.play(scene())


@each_mode
@pytest.mark.parametrize("fails", ["at-first", "in-the-end"])
def test_c29_k19_a_store_that_fails_costs_nobody_an_answer(
    house: House, keeper: StoreService, monkeypatch: pytest.MonkeyPatch, fails: str, *, streamed: bool
) -> None:
    good, count = keeper.store.swap, 0

    async def swap(*arguments: object) -> bool:
        nonlocal count
        count += 1
        if fails == "at-first" or count == 2:
            raise StoreError("the store failed: TEST")
        return await good(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(keeper.store, "swap", swap)

    async def scene() -> None:
        script(house, streamed=streamed)
        answer = await ask(house, "messages", streamed=streamed)
        fine("messages", answer, streamed=streamed)
        told = answer.headers.get("x-xenoglot-idempotency")
        again = await ask(house, "messages", streamed=streamed)
        statuses = (answer.status, told, again.status, asked(house))
        assert statuses == ((200, "not kept", 200, 2) if fails == "at-first" else (200, None, 409, 1))

    house.play(scene())


def test_c29_where_nothing_is_kept_the_client_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house.gateway.idempotency, "keeper", None)

    async def scene() -> None:
        script(house, streamed=False)
        answers = [await ask(house, "chat", streamed=False) for _ in range(2)]
        assert [answer.headers["x-xenoglot-idempotency"] for answer in answers] == ["not kept"] * 2
        assert asked(house) == 2

    house.play(scene())


def test_c29_a_kept_answer_keeps_its_id(house: House) -> None:
    async def scene() -> None:
        script(house, streamed=False)
        body = json.dumps({"model": "chat-small", "input": "Hi"}).encode()
        answers = [
            await house.finish(await house.send("/v1/responses", body, f"idempotency-key: {KEY}")) for _ in range(2)
        ]
        assert json.loads(answers[0].body)["id"] == json.loads(answers[1].body)["id"]
        assert asked(house) == 1

    house.play(scene())
