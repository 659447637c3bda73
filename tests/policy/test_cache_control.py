"""What a client demands of cached answers (RFC 9111 section 5.2.1)."""

from __future__ import annotations

import pytest

from xenoglot.policy.cache_control import ANY, CacheControl, cache_control


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([], ANY, id="none"),
        pytest.param([("accept", "no-cache")], ANY, id="of-another-header"),
        pytest.param([("cache-control", "no-cache")], CacheControl(reads=False), id="no-cache"),
        pytest.param([("cache-control", "no-store")], CacheControl(reads=False, writes=False), id="no-store"),
        pytest.param([("cache-control", "max-age=60")], CacheControl(max_age=60.0), id="max-age"),
        pytest.param([("cache-control", 'MAX-AGE="60"')], CacheControl(max_age=60.0), id="max-age-quoted"),
        pytest.param([("cache-control", "max-age=soon")], CacheControl(max_age=0.0), id="max-age-invalid"),
        pytest.param([("cache-control", "only-if-cached")], CacheControl(only=True), id="only-if-cached"),
        pytest.param([("cache-control", 'x="no-store", max-age=1')], CacheControl(max_age=1.0), id="inside-of-quotes"),
        pytest.param(
            [("cache-control", "max-age=5"), ("cache-control", "only-if-cached")],
            CacheControl(max_age=5.0, only=True),
            id="two-headers",
        ),
        pytest.param([("pragma", "no-cache")], CacheControl(reads=False), id="pragma"),
        pytest.param([("pragma", "no-cache"), ("cache-control", "max-age=5")], CacheControl(max_age=5.0), id="both"),
    ],
)
def test_headers_are_read(headers: list[tuple[str, str]], expected: CacheControl) -> None:
    assert cache_control(headers) == expected


@pytest.mark.parametrize(
    ("control", "age", "accepted"),
    [
        pytest.param(ANY, 1e9, True, id="any-age"),
        pytest.param(CacheControl(max_age=60.0), 60.0, True, id="at-the-limit"),
        pytest.param(CacheControl(max_age=60.0), 60.5, False, id="beyond"),
        pytest.param(CacheControl(max_age=0.0), 0.5, False, id="none-at-all"),
        pytest.param(CacheControl(reads=False), 0.0, False, id="not-read"),
    ],
)
def test_an_answer_is_accepted_by_its_age(control: CacheControl, age: float, *, accepted: bool) -> None:
    assert control.accepts(age) is accepted
