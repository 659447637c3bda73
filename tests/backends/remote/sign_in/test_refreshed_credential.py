"""A credential is refreshed before it expires, by one attempt at a time; requests wait for it, within a bound."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from tests.backends.raw_server import advance, leakless, turns
from tests.backends.remote.sign_in.token_endpoint import TokenIssuer, refused, wall_clock
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.remote.sign_in.credential import Credential, SignInError, backoff_delay, refresh_delay
from xenoglot.backends.remote.sign_in.refreshed_credential import (
    ATTEMPT_SECONDS,
    RENEWAL_SECONDS,
    WAIT_SECONDS,
    RefreshedCredential,
    run_in_daemon,
)


@pytest.mark.parametrize(
    ("lifetime", "delay"),
    [
        pytest.param(3600.0, 3300.0, id="five-minutes-before-its-end"),
        pytest.param(600.0, 450.0, id="a-quarter-of-a-short-life"),
        pytest.param(2.0, 1.5, id="seconds"),
        pytest.param(0.5, 1.0, id="never-without-a-pause"),
    ],
)
def test_when_a_credential_is_refreshed(lifetime: float, delay: float) -> None:
    assert refresh_delay(1_000.0 + lifetime, 1_000.0) == delay


def test_attempts_are_repeated_with_growing_delays() -> None:
    assert [backoff_delay(failures) for failures in (1, 2, 3, 7, 1000)] == [1.0, 2.0, 4.0, 60.0, 60.0]


@leakless
async def test_it_is_refreshed_before_it_expires_and_nobody_waits() -> None:
    issuer = TokenIssuer()
    credential = issuer.credential()
    seen = []
    assert (await credential.get()).value == "token-number-1"
    for _ in range(200):
        await advance(100.0)
        assert credential.current is not None
        assert issuer.accepts(credential.current.value)
        seen.append(credential.current.value)
    await credential.aclose()
    assert seen[-1] == f"token-number-{credential.fetches}"
    assert credential.fetches == 20_000 // 3300 + 1
    assert not any(issuer.anew)


@leakless
async def test_requests_that_find_none_share_one_attempt() -> None:
    issuer = TokenIssuer()
    credential = issuer.credential()
    values = await asyncio.gather(*(credential.get() for _ in range(100)))
    await credential.aclose()
    assert {value.value for value in values} == {"token-number-1"}
    assert credential.fetches == 1


@leakless
async def test_while_a_refresh_fails_the_old_one_stays_valid(caplog: pytest.LogCaptureFixture) -> None:
    issuer = TokenIssuer()
    credential = issuer.credential()
    await credential.get()
    issuer.errors = [refused() for _ in range(4)]
    with caplog.at_level(logging.WARNING, "xenoglot"):
        await advance(3300.0)
        assert (await credential.get()).value == "token-number-1"
        for seconds in (1.0, 2.0, 4.0):
            await advance(seconds)
            assert (await credential.get()).value == "token-number-1"
        await advance(8.0)
    assert (await credential.get()).value == "token-number-2"
    await credential.aclose()
    assert caplog.messages[0] == (
        "sign-in `test` of upstream `up` failed: invalid_grant; renew the key (the credential so far is still valid; "
        "next attempt in 1 s)"
    )
    assert caplog.messages[-1] == "sign-in `test` of upstream `up` succeeded after 4 failures"


@leakless
async def test_after_its_end_a_request_fails_with_the_cause_and_the_next_attempt_heals_it() -> None:
    issuer = TokenIssuer(lifetime=100.0)
    credential = issuer.credential()
    await credential.get()
    issuer.errors = [refused() for _ in range(5)]
    for _ in range(6):
        await advance(20.0)
    assert credential.current is None
    with pytest.raises(SignInError, match=r"^sign-in `test` of upstream `up` failed: invalid_grant; renew the key$"):
        await credential.get()
    for _ in range(3):
        await advance(60.0)
    assert (await credential.get()).value == "token-number-2"
    await credential.aclose()


@leakless
async def test_just_after_a_failure_a_request_does_not_begin_another_attempt() -> None:
    issuer = TokenIssuer()
    issuer.errors = [refused(), refused()]
    credential = issuer.credential()
    for _ in range(3):
        with pytest.raises(SignInError):
            await credential.get()
    assert credential.fetches == 1
    await credential.aclose()


@leakless
async def test_the_wait_for_a_credential_is_bounded() -> None:
    issuer = TokenIssuer()
    issuer.gate = asyncio.Event()
    credential = issuer.credential()
    waiting = asyncio.create_task(credential.get())
    await advance(WAIT_SECONDS + 1)
    with pytest.raises(SignInError, match="no credential within 20 s"):
        await waiting
    await advance(ATTEMPT_SECONDS)  # the attempt hangs; the next one waits for the same thread
    await advance(5.0)
    assert (len(issuer.anew), credential.fetches) == (0, 2)
    issuer.gate.set()
    assert (await credential.get()).value == "token-number-1"
    await credential.aclose()


@leakless
async def test_a_refusal_by_the_server_fetches_one_anew_and_not_again_at_once() -> None:
    issuer = TokenIssuer()
    credential = issuer.credential()
    await credential.get()
    await advance(RENEWAL_SECONDS)
    renewed = await asyncio.gather(*(credential.renew() for _ in range(50)))
    assert (set(renewed), credential.fetches, issuer.anew[-1]) == ({True}, 2, True)
    assert await credential.renew()
    assert credential.fetches == 2
    await advance(RENEWAL_SECONDS)
    issuer.errors = [refused()]
    assert not await credential.renew()
    assert (await credential.get()).value == "token-number-2"
    await credential.aclose()


@leakless
async def test_a_refused_one_is_not_to_be_tried_again() -> None:
    issuer = TokenIssuer()
    credential = issuer.credential()
    first = (await credential.get()).value
    assert not await credential.renew(first)  # too young: the next would be refused too
    await advance(RENEWAL_SECONDS)
    assert await credential.renew(first)
    assert await credential.renew(first)  # replaced meanwhile
    assert not await credential.renew("token-number-2")
    assert credential.fetches == 2
    await credential.aclose()


@leakless
async def test_after_the_clock_was_set_back_a_refused_one_is_replaced_all_the_same() -> None:
    issuer, shift = TokenIssuer(), 0.0
    credential = RefreshedCredential(
        issuer, name="up", strategy="test", clock=lambda: wall_clock() + shift, run=issuer.run
    )
    await credential.get()
    await advance(RENEWAL_SECONDS)
    shift = -3600.0
    assert await credential.renew("token-number-1")
    assert (credential.fetches, (await credential.get()).value) == (2, "token-number-2")
    issuer.errors = [refused()]
    await advance(RENEWAL_SECONDS)
    assert not await credential.renew("token-number-2")
    await credential.aclose()


@leakless
async def test_one_that_has_expired_when_it_comes_is_none() -> None:
    credential = TokenIssuer(lifetime=-5.0).credential()
    with pytest.raises(SignInError, match="has expired already; check the clock of this machine"):
        await credential.get()
    await credential.aclose()


@leakless
async def test_one_without_an_end_is_not_refreshed() -> None:
    class Constant(TokenIssuer):
        def fetch(self, *, anew: bool) -> Credential[str]:
            return Credential(value=super().fetch(anew=anew).value)

    credential = Constant().credential()
    await credential.get()
    await advance(1_000_000.0)
    assert (credential.fetches, (await credential.get()).value) == (1, "token-number-1")
    await credential.aclose()


@leakless
async def test_no_secret_is_in_messages_and_reprs(caplog: pytest.LogCaptureFixture) -> None:
    issuer = TokenIssuer()
    credential, redactor = issuer.credential(), Redactor()
    credential.redacted_by(redactor)
    current = await credential.get()
    issuer.errors = [RuntimeError("refused token-number-1\nof client-secret-of-the-issuer")]
    with caplog.at_level(logging.WARNING, "xenoglot"):
        await advance(RENEWAL_SECONDS)
        assert not await credential.renew()
    await credential.aclose()
    assert "failed: RuntimeError: refused [redacted] of [redacted]; the next attempt follows by itself" in caplog.text
    assert "token-number" not in repr(current) + str(current)
    assert redactor("token-number-1, client-secret-of-the-issuer") == "[redacted], [redacted]"


@leakless
async def test_closing_ends_its_timers() -> None:
    issuer = TokenIssuer(lifetime=10.0)
    credential = issuer.credential()
    await credential.get()
    await credential.aclose()
    await advance(1000.0)
    assert credential.fetches == 1


async def test_attempts_run_in_a_daemon_thread() -> None:
    def work() -> tuple[bool, str]:
        return threading.current_thread().daemon, threading.current_thread().name

    assert await run_in_daemon(work) == (True, "sign-in")

    def broken() -> None:
        raise StopIteration("none")

    with pytest.raises(RuntimeError, match="none"):
        await run_in_daemon(broken)


async def test_a_thread_that_hangs_does_not_hold_up_closing() -> None:
    release, begun = threading.Event(), threading.Event()

    class Hanging(TokenIssuer):
        def fetch(self, *, anew: bool) -> Credential[str]:
            begun.set()
            assert release.wait(120)
            return Credential(value=f"late, anew: {anew}")

    credential: RefreshedCredential[str] = RefreshedCredential(Hanging(), name="up", strategy="test")
    credential.start()
    while not begun.is_set():
        await turns()
    await credential.aclose()
    assert credential.current is None
    release.set()
