"""The tree of errors: each failure is of one class, tells what the server said, and comes home from another process."""

import pickle
from itertools import product
from typing import get_args

import pytest

from xenoglot import errors
from xenoglot.errors import FailureError, failure_error
from xenoglot.model.failure import Failure, FailureCause, FailureKind
from xenoglot.policy.failure_policy import judge

KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
CAUSES: tuple[FailureCause, ...] = get_args(FailureCause)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_class(kind: FailureKind) -> None:
    found = failure_error(Failure(kind=kind, message="x"))
    assert type(found) is not FailureError
    assert (found.kind, str(found)) == (kind, "x")


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        pytest.param(
            Failure(kind="upstream", message="x", cause="connect"), errors.ConnectionFailedError, id="connect"
        ),
        pytest.param(Failure(kind="upstream", message="x", cause="tls"), errors.ConnectionFailedError, id="tls"),
        pytest.param(Failure(kind="upstream", message="x", cause="closed"), errors.ConnectionFailedError, id="closed"),
        pytest.param(Failure(kind="timeout", message="x", cause="timeout"), errors.DeadlineError, id="timeout"),
        pytest.param(Failure(kind="upstream", message="x", cause="garbled"), errors.UpstreamError, id="garbled"),
    ],
)
def test_causes_count(failure: Failure, kind: type[FailureError]) -> None:
    assert type(failure_error(failure)) is kind


@pytest.mark.parametrize("name", sorted(vars(errors)))
def test_every_class_of_failures_comes_home_whole(name: str) -> None:
    kind = vars(errors)[name]
    if not isinstance(kind, type) or not issubclass(kind, FailureError):
        return
    failure = Failure(kind="rate_limit", message="x", status=429, code="c", request_id="r", retry_after=3.0)
    found = pickle.loads(pickle.dumps(kind(failure)))  # noqa: S301  our own
    assert type(found) is kind
    assert (found.status, found.code, found.request_id, found.retry_after) == (429, "c", "r", 3.0)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(errors.WireError("$.a", "is none"), id="wire"),
        pytest.param(errors.LossError(("a",), ("$.b",)), id="loss"),
        pytest.param(errors.ConfigurationError("`a`"), id="configuration"),
    ],
)
def test_other_errors_come_home_whole(error: Exception) -> None:
    error.add_note("noted")
    found = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


def test_what_is_retryable_is_what_policy_tries_again() -> None:
    for kind, cause, futile in product(KINDS, (None, *CAUSES), (False, True)):
        failure = Failure(kind=kind, message="x", cause=cause, non_retryable=futile)
        verdict = judge(failure)
        if verdict.blame == "key" and kind != "rate_limit":  # with another key, perhaps
            continue
        if cause == "timeout" or (cause is not None and not failure_error(failure).retryable):
            continue  # whether work may be done twice is for who asks to say
        if cause in {"connect", "closed", "garbled"}:
            continue
        assert failure_error(failure).retryable == verdict.retry_same, failure
