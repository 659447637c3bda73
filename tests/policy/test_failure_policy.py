"""The retry table, whole: every cause, every kind, and what the operator can change of it."""

from __future__ import annotations

from typing import cast, get_args

import pytest
from msgspec.structs import replace

from xenoglot.model.failure import Failure, FailureCause, FailureKind
from xenoglot.policy.failure_policy import AT_CAPACITY, FILTER_CODES, FailureAction, Reason, judge, reasons
from xenoglot.policy.target_health import Retry

BROKEN = FailureAction(retry_same=True, retry_other=True, blame="target")
UNFIT = FailureAction(retry_same=False, retry_other=True, blame="target")
KEY = FailureAction(retry_same=True, retry_other=True, blame="key")
PASSING = FailureAction(retry_same=True, retry_other=True, blame="none")
ELSEWHERE = FailureAction(retry_same=False, retry_other=True, blame="none")
FINAL = FailureAction(retry_same=False, retry_other=False, blame="none")


def upstream(cause: FailureCause, *, unsent: bool = False) -> Failure:
    return Failure(kind="timeout" if cause == "timeout" else "upstream", message="", cause=cause, not_sent=unsent)


def failure_of(kind: FailureKind, status: int | None = None, code: str | None = None) -> Failure:
    return Failure(kind=kind, message="", status=status, dialect="openai", code=code)


@pytest.mark.parametrize(
    ("failure", "verdict"),
    [
        pytest.param(upstream("connect", unsent=True), BROKEN, id="U01-U03-connect"),
        pytest.param(upstream("timeout", unsent=True), BROKEN, id="U02-connect-timeout"),
        pytest.param(upstream("tls", unsent=True), UNFIT, id="U05-tls"),
        pytest.param(upstream("closed"), BROKEN, id="U06-U11-U12-U46-closed"),
        pytest.param(upstream("closed", unsent=True), BROKEN, id="U06-provably-not-processed"),
        pytest.param(upstream("timeout"), UNFIT, id="U07-U08-first-byte-timeout"),
        pytest.param(upstream("garbled"), BROKEN, id="U17-U24-U25-garbled"),
        pytest.param(upstream("exhausted", unsent=True), PASSING, id="K17-no-descriptor-left"),
        pytest.param(upstream("too_large"), UNFIT, id="U27-U36-too-large"),
        pytest.param(upstream("protocol"), UNFIT, id="U42-U43-U44-U45-protocol"),
        pytest.param(upstream("protocol", unsent=True), ELSEWHERE, id="U43-our-own-request-is-no-http"),
        pytest.param(upstream("credentials", unsent=True), ELSEWHERE, id="U40-no-credential-was-had"),
        pytest.param(upstream("credentials"), KEY, id="U40-credentials"),
        pytest.param(upstream("forbidden"), KEY, id="U40-forbidden"),
        pytest.param(failure_of("internal"), BROKEN, id="U23-an-error-as-the-answer"),
        pytest.param(failure_of("upstream", 502), BROKEN, id="U26-502"),
        pytest.param(failure_of("overloaded", 503), BROKEN, id="U26-U38-503"),
        pytest.param(failure_of("timeout", 504), BROKEN, id="U26-504"),
        pytest.param(failure_of("rate_limit", 429), KEY, id="U37-429"),
        pytest.param(failure_of("billing", 429, "insufficient_quota"), KEY, id="U37-quota"),
        pytest.param(failure_of("overloaded", 529), BROKEN, id="U38-529"),
        pytest.param(failure_of("internal", 500), BROKEN, id="U38-500"),
        pytest.param(failure_of("timeout", 408), BROKEN, id="U38-408"),
        pytest.param(failure_of("conflict", 409), PASSING, id="U38-409"),
        pytest.param(failure_of("invalid_request", 425), PASSING, id="U38-425"),
        pytest.param(failure_of("invalid_request", 400), FINAL, id="U39-400"),
        pytest.param(failure_of("invalid_request", 422), FINAL, id="U39-422"),
        pytest.param(failure_of("context_overflow", 400), FINAL, id="U39-context-overflow"),
        pytest.param(failure_of("too_large", 413), FINAL, id="U39-413"),
        pytest.param(failure_of("unsupported", 501), FINAL, id="U39-unsupported"),
        pytest.param(failure_of("authentication", 401), KEY, id="U40-401"),
        pytest.param(failure_of("permission", 403), KEY, id="U40-403"),
        pytest.param(failure_of("billing", 402), KEY, id="U40-402"),
        pytest.param(failure_of("not_found", 404), FINAL, id="U41-404"),
        pytest.param(failure_of("cancelled", 499), FINAL, id="C04-cancelled"),
    ],
)
def test_the_table(failure: Failure, verdict: FailureAction) -> None:
    assert judge(failure) == verdict


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_every_kind_has_a_row(kind: FailureKind) -> None:
    assert isinstance(judge(failure_of(kind)), FailureAction)


@pytest.mark.parametrize("cause", get_args(FailureCause))
def test_every_cause_has_a_row(cause: FailureCause) -> None:
    assert isinstance(judge(upstream(cause)), FailureAction)


@pytest.mark.parametrize(
    ("cause", "verdict"),
    [
        pytest.param("connect", BROKEN, id="U06-connect"),
        pytest.param("tls", UNFIT, id="U06-tls"),
        pytest.param("closed", replace(BROKEN, retry_same=False, retry_other=False), id="U06-closed"),
        pytest.param("timeout", replace(UNFIT, retry_other=False), id="U06-timeout"),
        pytest.param("protocol", replace(UNFIT, retry_other=False), id="U06-protocol"),
        pytest.param("too_large", replace(UNFIT, retry_other=False), id="U06-too-large"),
        pytest.param("garbled", replace(UNFIT, retry_other=False), id="U06-garbled"),
        pytest.param("credentials", KEY, id="U06-credentials"),
    ],
)
def test_without_resend_nothing_is_asked_twice_that_may_have_been_done(
    cause: FailureCause, verdict: FailureAction
) -> None:
    assert judge(upstream(cause), Retry(resend=False)) == verdict


def test_without_resend_what_was_not_sent_is_sent_again() -> None:
    assert judge(upstream("closed", unsent=True), Retry(resend=False)) == BROKEN
    assert judge(upstream("closed"), Retry(resend=False), sent=False) == BROKEN
    assert judge(upstream("timeout"), sent=False) == BROKEN


def test_a_timeout_is_tried_again_where_the_operator_wants_it() -> None:
    assert judge(upstream("timeout"), Retry(timeouts=True)) == BROKEN


@pytest.mark.parametrize("reason", [reason for reason in get_args(Reason) if reason != "content_filter"])
def test_an_operator_may_have_others_asked(reason: Reason) -> None:
    failure = failure_of(cast("FailureKind", reason))
    wanted: list[Reason] = [reason]
    others: list[Reason] = [other for other in get_args(Reason) if other != reason]
    assert (judge(failure, fallback_on=wanted), judge(failure, fallback_on=others)) == (ELSEWHERE, FINAL)


@pytest.mark.parametrize("code", sorted(FILTER_CODES))
def test_a_filter_is_known_by_its_code(code: str) -> None:
    failure = failure_of("invalid_request", 400, code)
    wanted: list[Reason] = ["content_filter"]
    assert (judge(failure, fallback_on=wanted), judge(failure)) == (ELSEWHERE, FINAL)
    assert reasons(failure_of("invalid_request", 400, "other")) == {"invalid_request"}


def test_what_was_cancelled_is_never_asked_again() -> None:
    assert judge(failure_of("cancelled"), fallback_on=cast("tuple[Reason]", ("cancelled",))) == FINAL


def test_a_wish_for_others_changes_nothing_that_has_them_already() -> None:
    wanted: list[Reason] = ["not_found"]
    assert judge(failure_of("rate_limit", 429), fallback_on=wanted) == KEY


def test_what_is_futile_is_not_asked_again_and_nobodys_fault() -> None:
    assert judge(replace(failure_of("upstream"), non_retryable=True)) == ELSEWHERE
    assert judge(replace(failure_of("invalid_request"), non_retryable=True)) == FINAL


def test_our_own_limits_blame_nobody() -> None:
    assert AT_CAPACITY == ELSEWHERE
