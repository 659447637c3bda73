"""How long an upstream asks to wait, however it says so."""

from __future__ import annotations

import pytest

from xenoglot.backends.retry_after import retry_after

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="U37-missing"),
        pytest.param({"retry-after": "7"}, 7.0, id="U37-seconds"),
        pytest.param({"retry-after": "0.5"}, 0.5, id="U37-fraction"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:13:45 GMT"}, 25.0, id="U37-date"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0, id="U37-past-date"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "9"}, 1.5, id="U37-ms-first"),
        pytest.param({"retry-after-ms": "soon", "retry-after": "9"}, 9.0, id="U37-ms-unreadable"),
        pytest.param({"retry-after": "-3"}, None, id="U37-negative"),
        pytest.param({"retry-after": "NaN"}, None, id="U37-nan"),
        pytest.param({"retry-after": "inf"}, None, id="U37-infinite"),
        pytest.param({"retry-after": "1e9"}, 60.0, id="U37-capped"),
        pytest.param({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 60.0, id="U37-far-date"),
        pytest.param({"retry-after": "tomorrow"}, None, id="U37-words"),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds
