"""How many turns, parts and fields a request may have, before anything is made of it (R50)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.requests.checks import MOST_FIELDS, MOST_MESSAGES, MOST_PARTS, check_lists
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

TURN: JSON = {"role": "user", "content": "hi"}

REFUSED: dict[str, tuple[JSON, str]] = {
    "findings-3-messages": ({"messages": [TURN] * 100_001}, "$.messages: at most 100000 are taken, not 100001"),
    "findings-3-items": ({"input": [TURN] * 100_001}, "$.input: at most 100000 are taken, not 100001"),
    "findings-3-contents": (
        {"contents": [{"parts": []}] * 100_001},
        "$.contents: at most 100000 are taken, not 100001",
    ),
    "parts": (
        {"messages": [TURN, {"content": [{}] * 20_001}]},
        "$.messages[1].content: at most 20000 are taken, not 20001",
    ),
    "fields": ({str(number): 0 for number in range(4097)}, "$: at most 4096 are taken, not 4097"),
}
TAKEN: dict[str, JSON] = {
    "turns": {"messages": [TURN] * MOST_MESSAGES},
    "parts": {"messages": [{"content": [{}] * MOST_PARTS}]},
    "fields": {str(number): 0 for number in range(MOST_FIELDS)},
    "tokens": {"prompt": [1] * (MOST_MESSAGES + 1), "input": [[1] * (MOST_PARTS + 1)]},
    "texts": {"input": ["a"] * (MOST_MESSAGES + 1)},
    "no-object": [TURN],
    "turns-that-are-none": {"messages": [TURN, 1, None]},
}


@pytest.mark.parametrize(("body", "told"), [pytest.param(*case, id=name) for name, case in REFUSED.items()])
def test_r50_what_is_too_much_is_refused_before_it_is_read(body: JSON, told: str) -> None:
    with pytest.raises(WireError) as caught:
        check_lists(body)
    assert str(caught.value) == told


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in TAKEN.items()])
def test_what_is_not_too_much_is_taken(body: JSON) -> None:
    check_lists(body)
