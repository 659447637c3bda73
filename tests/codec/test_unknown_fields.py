"""Unknown fields of nested objects."""

import pytest

from xenoglot import Losses
from xenoglot.codec.reader import Reader
from xenoglot.codec.unknown_fields import keep_rest, merge_rest, merged
from xenoglot.model.content import Extra
from xenoglot.model.json import JSONObject


@pytest.mark.parametrize(
    ("rest", "said", "kept", "form"),
    [
        pytest.param({}, True, {}, {}, id="nothing"),
        pytest.param({}, False, {}, {"rests": {"a": {}}}, id="empty"),
        pytest.param({"b": None}, True, {}, {"rests": {"a": {"b": None}}}, id="null"),
        pytest.param({"b": {"c": None}}, True, {}, {"rests": {"a": {"b": {"c": None}}}}, id="null-inside"),
        pytest.param({"b": 1}, True, {"a": {"b": 1}}, {"partial": ["a"]}, id="field"),
        pytest.param({"b": {"c": 1}}, False, {"a": {"b": {"c": 1}}}, {"partial": ["a"]}, id="field-inside"),
    ],
)
def test_rest_of_an_object_stays_with_the_value_around_it(
    rest: JSONObject, said: object, kept: JSONObject, form: JSONObject
) -> None:
    outer = Reader({})
    spelled: JSONObject = {}
    keep_rest(outer, "a", Reader(rest), spelled, said=bool(said))
    assert (outer.rest(), spelled) == (kept, form)


def test_rest_without_a_form_is_a_field() -> None:
    outer = Reader({})
    keep_rest(outer, "a", Reader({"b": None}))
    assert outer.rest() == {"a": {"b": None}}


def test_own_fields_go_before_those_of_the_rest() -> None:
    own: JSONObject = {"a": {"b": 1}, "c": None, "d": 2}
    assert merged(own, {"a": {"b": 9, "e": 3}, "c": 4, "d": {"f": 5}}) == {"a": {"b": 1, "e": 3}, "c": 4, "d": 2}
    assert own == {"a": {"b": 1}, "c": None, "d": 2}


def test_rest_of_another_dialect_is_lost_field_by_field() -> None:
    extra = Extra(dialect="x", fields={"a": {"b": 1, "c": 2}}, form={"partial": ["a"], "rests": {"d": {}}})
    losses = Losses()
    assert merge_rest({"a": {"b": 9}}, extra, "x", "$", losses) == {"a": {"b": 9, "c": 2}, "d": {}}
    assert list(losses) == []
    assert merge_rest({"e": 1}, extra, "y", "$", losses) == {"e": 1}
    assert [loss.what for loss in losses] == ["a.b", "a.c"]
