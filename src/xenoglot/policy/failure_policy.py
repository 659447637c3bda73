"""The retry table: which failures to retry on the same target, on another target, or not at all.

What happened to the bytes (`cause`) is certain, so it decides first; then the status alone; then the kind. A row has
whether to retry the same target, whether to try another, and what to blame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.policy.target_health import Retry

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from xenoglot.model.failure import Failure, FailureCause, FailureKind

Reason: TypeAlias = Literal[
    "invalid_request", "context_overflow", "not_found", "too_large", "unsupported", "content_filter"
]
"""For what else an operator may have another target asked: a kind of failure, or a filter in front of the model."""


class FailureAction(Struct, frozen=True):
    """Whether to retry the same target or another one, and what to blame.

    A key that is to blame rests: `retry_same` then means with another key, or with this one when it has rested. Blame
    of a target counts against its breaker (`policy.target_health`).
    """

    retry_same: bool
    retry_other: bool
    blame: Literal["none", "key", "target"]


_BROKEN = FailureAction(retry_same=True, retry_other=True, blame="target")
_NOT_SUITED = FailureAction(retry_same=False, retry_other=True, blame="target")
_REFUSED = FailureAction(retry_same=True, retry_other=True, blame="key")
_TRANSIENT = FailureAction(retry_same=True, retry_other=True, blame="none")
_FINAL = FailureAction(retry_same=False, retry_other=False, blame="none")

AT_CAPACITY = FailureAction(retry_same=False, retry_other=True, blame="none")
"""What it means that our own limits let nothing more through to a target."""

CAUSES: Mapping[FailureCause, FailureAction] = {
    "connect": _BROKEN,  # U01, U02, U03
    "tls": _NOT_SUITED,  # U05: the same handshake fails again, but another server has another certificate
    "timeout": _BROKEN,  # U02, U07, U08; but see `Retry.timeouts`
    "closed": _BROKEN,  # U06, U11, U12, U46; but see `Retry.resend`
    "protocol": _NOT_SUITED,  # U42, U43, U44, U45: a server that speaks no HTTP will not learn it
    "too_large": _NOT_SUITED,  # U27, U36
    "garbled": _BROKEN,  # U17, U24, U25
    "credentials": _REFUSED,  # U40
    "forbidden": _REFUSED,  # U40
    "exhausted": _TRANSIENT,  # K17: we are out of descriptors, which says nothing of any server
}
"""What became of a request to which the server gave no answer in words of its own."""

STATUSES: Mapping[int, FailureAction] = {425: _TRANSIENT}
"""U38: statuses whose meaning no kind has (RFC 8470 section 5.2)."""

KINDS: Mapping[FailureKind, FailureAction] = {
    "invalid_request": _FINAL,
    "context_overflow": _FINAL,  # U39: too long again; a larger model is the operator's to name
    "authentication": _REFUSED,  # U40
    "billing": _REFUSED,
    "permission": _REFUSED,
    "not_found": _FINAL,  # U41
    "conflict": _TRANSIENT,
    "too_large": _FINAL,
    "unsupported": _FINAL,
    "rate_limit": _REFUSED,  # U37: the quota is the key's
    "cancelled": _FINAL,  # nobody waits for it any more
    "internal": _BROKEN,  # U23, U26, U38, as those below
    "upstream": _BROKEN,
    "overloaded": _BROKEN,
    "timeout": _BROKEN,
}
"""Actions by kind of failure, if neither cause nor status decides."""

FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
"""Codes of a refusal by a filter in front of the model: Azure's, and OpenAI's."""

_MAY_HAVE_RUN = frozenset({"timeout", "closed", "protocol", "too_large", "garbled"})
"""Causes that leave open whether the server has done the work."""


def judge(
    failure: Failure, retry: Retry | None = None, *, sent: bool = True, fallback_on: Collection[Reason] = ()
) -> FailureAction:
    """Return the action for a target's `failure` before any part of an answer was passed on.

    `sent` is false if the request provably did not reach it and the failure does not have that fact (`not_sent`);
    `retry` and `fallback_on` are the operator's settings. Number and delay of retries, and whether there is another
    target, are decided elsewhere.
    """
    verdict = _row(failure)
    if failure.not_sent or not sent:
        # What was to be sent is no HTTP, or no credential was had: no server and no key is to blame.
        if failure.cause in ("protocol", "credentials"):
            verdict = AT_CAPACITY
    elif failure.cause in _MAY_HAVE_RUN:
        verdict = _after_send(failure, verdict, retry or Retry())
    if failure.non_retryable:  # it is this request that fails
        return replace(verdict, retry_same=False, blame="none")
    if verdict == _FINAL and failure.kind != "cancelled" and not reasons(failure).isdisjoint(fallback_on):
        return replace(verdict, retry_other=True)
    return verdict


def of_clients_key(action: FailureAction, failure: Failure) -> FailureAction:
    """Return the action where the key is the client's own: no other client's requests are affected by its failures.

    One that is refused is the client's to renew: no other target is tried. Its quota may be used up, and another's not.
    """
    if action.blame != "key":
        return action
    return replace(action, retry_same=False, retry_other=failure.kind in ("rate_limit", "billing"), blame="none")


def reasons(failure: Failure) -> frozenset[str]:
    """Return by which words an operator may have meant `failure`."""
    return frozenset((failure.kind, "content_filter") if failure.code in FILTER_CODES else (failure.kind,))


def _row(failure: Failure) -> FailureAction:
    if failure.cause is not None:
        return CAUSES[failure.cause]
    found = None if failure.status is None else STATUSES.get(failure.status)
    return found or KINDS[failure.kind]


def _after_send(failure: Failure, verdict: FailureAction, retry: Retry) -> FailureAction:
    """Return what is left of `verdict` where the work may have been done, and would be done twice (U06)."""
    if not retry.resend:
        return replace(verdict, retry_same=False, retry_other=False)
    if failure.cause == "timeout" and not retry.timeouts:
        return replace(verdict, retry_same=False)
    return verdict
