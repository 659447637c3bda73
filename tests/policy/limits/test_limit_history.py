"""What was used of a scope, exported and restored: it comes free as late as before, or a little later, never early."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xenoglot.policy.limits.usage_ledger import Scope, ScopeHistory, UsageLedger, Window, WindowHistory

SECONDS = 100.0
NOW, RESTARTED = 95.0, 7.0
"""Of two clocks: when the history was written, and when it was restored."""
Uses = list[tuple[int, int]]


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 50)), max_size=60), st.integers(1, 64), st.integers(0, 90))
def test_what_is_restored_counts_as_long_as_it_would_have(used: Uses, most: int, down: int) -> None:
    scope = Scope("key:a", tokens=(Window(100_000, SECONDS), Window(100_000, 10.0)))
    before, after = UsageLedger(), UsageLedger()
    for at, tokens in sorted(used):
        before.release(before.reserve((scope,), tokens, at), tokens, at)
    history = before.scopes["key:a"].history(NOW, most) if used else ScopeHistory()
    assert len(() if history.tokens is None else history.tokens.uses) <= most + 1
    after.restore("key:a", _aged(history, down), RESTARTED)
    after.restore("key:a", ScopeHistory(), RESTARTED)  # it is known already
    after.shortages((scope,), 0, RESTARTED)  # the first request comes with the limits
    joined = SECONDS / most + 2 * SECONDS / 1024
    for later in (0.0, 5.0, 50.0, 110.0):
        now = NOW + down + later
        counted = after.scopes["key:a"].tokens[0].used(RESTARTED + later)
        assert _since(used, now - SECONDS) <= counted <= _since(used, now - SECONDS - joined)


def test_requests_are_restored_too_and_limited() -> None:
    scope = Scope("key:a", requests=(Window(2, SECONDS),))
    before, after = UsageLedger(), UsageLedger()
    for at in (10.0, 90.0):
        assert before.try_reserve((scope,), 0, at) is not None
    after.restore("key:a", _aged(before.scopes["key:a"].history(NOW, 64), 1.0), RESTARTED)
    (lack,) = after.shortages((scope,), 0, RESTARTED)
    assert (lack.reason, lack.ends_at) == ("window", RESTARTED + SECONDS - (NOW - 10.0) - 1.0)


def _since(used: Uses, since: float) -> int:
    return sum(tokens for at, tokens in used if at > since)


def _aged(history: ScopeHistory, down: float) -> ScopeHistory:
    def aged(one: WindowHistory | None) -> WindowHistory | None:
        return None if one is None else WindowHistory(one.seconds, [(age + down, amount) for age, amount in one.uses])

    return ScopeHistory(aged(history.requests), aged(history.tokens))
