"""Calls and results: each call has one result behind it, and no result stands without its call."""

from xenoglot.codec.requests.call_ids import Pairing, paired
from xenoglot.model.json import JSONObject

PAIRING = Pairing(
    calls=lambda message: message.get("calls", ()),
    answers=lambda message: message.get("answers"),
    missing=lambda call_id: {"missing": call_id},
    told=lambda message: {"told": message["answers"]},
    late=lambda: None,
)


def mended(*messages: JSONObject) -> list[JSONObject]:
    return list(paired(messages, PAIRING))


def test_what_matches_stays() -> None:
    """pitfall-44: results come in any order, and two calls of one id have two."""
    history: list[JSONObject] = [{"calls": ["a", "b", "b"]}, {"answers": "b"}, {"answers": "a"}, {"answers": "b"}, {}]
    assert mended(*history) == history
    assert mended() == []


def test_what_does_not_match_is_made_up_or_told() -> None:
    """pitfall-44: behind the results that are there come those that are not, then what answered no call."""
    assert mended(
        {"answers": "x"}, {"calls": ["a", "b"]}, {"answers": "x"}, {"answers": "b"}, {"answers": "b"}, {}
    ) == [
        {"told": "x"},
        {"calls": ["a", "b"]},
        {"answers": "b"},
        {"missing": "a"},
        {"told": "x"},
        {"told": "b"},
        {},
    ]


def test_a_call_at_the_end_has_a_result_too() -> None:
    """pitfall-44: a result that comes a turn late is too late."""
    assert mended({"calls": ["a"]}, {"calls": ["b"]}, {"answers": "a"}) == [
        {"calls": ["a"]},
        {"missing": "a"},
        {"calls": ["b"]},
        {"missing": "b"},
        {"told": "a"},
    ]
