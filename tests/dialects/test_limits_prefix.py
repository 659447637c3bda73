"""What a dialect says its rate-limit headers begin with is what it reads."""

from __future__ import annotations

import pytest

from xenoglot.dialect_registry import get, names
from xenoglot.model.limits import RateBudget, RateLimits

NOW = 1_700_000_000.0
BUDGET = RateBudget(limit=10, remaining=0, reset=60.0)
LIMITS = RateLimits(requests=BUDGET, tokens=BUDGET, input_tokens=BUDGET, output_tokens=BUDGET)


@pytest.mark.parametrize("name", names())
def test_what_is_read_begins_so(name: str) -> None:
    dialect = get(name)
    others = {header: value for one in names() for header, value in get(one).encode_limits(LIMITS, NOW)}
    others |= {"retry-after": "1", "content-type": "application/json"}
    prefix = dialect.limits_prefix
    own = {header for header in others if prefix is not None and header.startswith(prefix)}
    read = dialect.decode_limits({header: others[header] for header in own}, NOW)
    assert dialect.decode_limits(others, NOW) == read
    assert dialect.decode_limits({header: others[header] for header in others.keys() - own}, NOW) is None
    assert (read is None) == (prefix is None)
