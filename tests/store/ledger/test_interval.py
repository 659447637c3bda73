"""Times as people write them."""

import pytest

from xenoglot.store.ledger.interval import since

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", NOW - 1800),
        ("24h", NOW - 86_400),
        ("7d", NOW - 604_800),
        ("4w", 0.0),
        ("1970-01-02", 86_400.0),
        ("1970-01-02T01:00", 90_000.0),
        ("1970-01-02T01:00+01:00", 86_400.0),
        ("12345.5", 12345.5),
    ],
)
def test_a_time(text: str, expected: float) -> None:
    assert since(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "d", "-7d", "soon", "7 d", "2026-13-01"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time"):
        since(text, NOW)
