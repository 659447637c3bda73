"""Reading by taking: what is taken is checked, what is left is kept, and every error names its field."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from xenoglot.codec.reader import Reader, expected, type_name
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.json import JSON

VALUES: dict[str, JSON] = {
    "null": None,
    "bool": True,
    "int": 3,
    "number": 2.5,
    "str": "x",
    "list": [1],
    "object": {"a": 1},
}
KINDS: dict[str, type] = {"bool": bool, "int": int, "number": float, "str": str, "list": list, "object": dict}

MISMATCHES = [
    (wanted, given)
    for wanted in KINDS
    for given in VALUES
    if given not in {wanted, "null"} and (wanted, given) != ("number", "int")
]


@pytest.mark.parametrize(
    ("wanted", "given"), [pytest.param(*case, id=f"C15-{case[1]}-for-{case[0]}") for case in MISMATCHES]
)
def test_a_wrong_type_names_its_field(wanted: str, given: str) -> None:
    for take in (Reader.take, Reader.need):
        with pytest.raises(WireError) as caught:
            take(Reader({"f": VALUES[given]}, "$.tools[0]"), "f", KINDS[wanted])
        assert str(caught.value) == f"$.tools[0].f: expected {wanted}, got {given}"


@pytest.mark.parametrize("name", KINDS)
def test_the_right_type_is_taken(name: str) -> None:
    reader = Reader({"f": VALUES[name], "g": 1})
    assert "f" in reader
    assert reader.peek("f") == VALUES[name]
    assert reader.take("f", KINDS[name]) == VALUES[name]
    assert "f" not in reader
    assert reader.peek("f") is None
    assert reader.rest() == {"g": 1}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("wire", [{}, {"f": None}], ids=["missing", "null"])
def test_what_is_not_said_is_none_and_stays(name: str, wire: dict[str, JSON]) -> None:
    reader = Reader(wire)
    assert reader.take("f", KINDS[name]) is None
    assert reader.take_any("f") is None
    assert reader.take_if("f", KINDS[name]) is None
    assert reader.count("f") is None
    assert "f" not in reader
    assert reader.rest() == wire
    with pytest.raises(WireError) as caught:
        reader.need("f", KINDS[name])
    assert str(caught.value) == f"$.f: required, expected {name}"
    assert reader.rest() == wire


NUMBERS: dict[str, tuple[JSON, type, JSON]] = {
    "C14-a-whole-float-is-an-int": (1.0, int, 1),
    "C14-an-int-is-a-float": (2**53 + 1, float, 2**53 + 1),
    "C14-an-int-above-64-bits": (2**70, int, 2**70),
}


@pytest.mark.parametrize(("value", "kind", "taken"), [pytest.param(*case, id=name) for name, case in NUMBERS.items()])
def test_numbers(value: JSON, kind: type, taken: JSON) -> None:
    found = Reader({"f": value}).take("f", kind)
    assert (found, type(found)) == (taken, type(taken))


@pytest.mark.parametrize("value", [1.5, float("inf"), float("nan")], ids=["C14-half", "C14-infinity", "C14-nan"])
def test_a_float_that_is_not_whole_is_no_int(value: float) -> None:
    with pytest.raises(WireError, match=r"^\$\.f: expected int, got number$"):
        Reader({"f": value}).take("f", int)


@pytest.mark.parametrize("value", [value for name, value in VALUES.items() if name != "object"])
def test_only_an_object_can_be_read(value: JSON) -> None:
    with pytest.raises(WireError) as caught:
        Reader(value, "$.a")
    assert str(caught.value) == f"$.a: expected object, got {type_name(value)}"


def test_reading_does_not_touch_what_is_read() -> None:
    wire = {"a": 1, "b": 2}
    assert Reader(wire).take("a", int) == 1
    assert wire == {"a": 1, "b": 2}


def test_nothing_is_taken_where_the_type_is_wrong() -> None:
    reader = Reader({"f": "x"})
    assert reader.take_if("f", int) is None
    with pytest.raises(WireError):
        reader.take("f", int)
    assert reader.rest() == {"f": "x"}
    assert reader.take_if("f", str) == "x"
    assert reader.rest() == {}


def test_any_value_is_taken_as_it_is() -> None:
    for value in VALUES.values():
        reader = Reader({"f": value})
        assert reader.take_any("f") == value
        assert reader.rest() == ({"f": None} if value is None else {})


@pytest.mark.parametrize(
    ("value", "taken"), [("low", "low"), ("xlow", None), (3, None), (None, None), (["low"], None), ({"low": 1}, None)]
)
def test_a_word_is_taken_if_it_is_known(value: JSON, taken: str | None) -> None:
    reader = Reader({"f": value})
    assert reader.take_word("f", ("low", "high")) == taken
    assert reader.rest() == ({} if taken else {"f": value})


COUNTS: dict[str, tuple[JSON, int | None]] = {
    "int": (12, 12),
    "zero": (0, 0),
    "U29-whole-float": (12.0, 12),
    "U29-text": ("12", 12),
    "C14-beyond-a-double": (2**60 + 1, 2**60 + 1),
    "U29-negative": (-1, None),
    "U29-bool": (True, None),
    "U29-words": ("twelve", None),
    "U29-nan": (float("nan"), None),
    "U29-infinity": (float("inf"), None),
    "U29-text-nan": ("nan", None),
    "U29-huge-int": (10**400, None),
    "U29-list": ([1], None),
    "U29-object": ({}, None),
}


@pytest.mark.parametrize(("value", "count"), [pytest.param(*case, id=name) for name, case in COUNTS.items()])
def test_counts_are_read_leniently(value: JSON, count: int | None) -> None:
    reader = Reader({"f": value})
    assert reader.count("f") == count
    assert list(reader.rest()) == ([] if count is not None else ["f"])


def test_objects_inside_have_their_own_reader() -> None:
    reader = Reader({"one": {"a": 1}, "many": [{"a": 2}, {"a": 3}], "none": [], "null": None})
    one = reader.object("one")
    assert one is not None
    assert (one.path, one.at("a"), one.take("a", int)) == ("$.one", "$.one.a", 1)
    assert reader.object("null") is None
    assert [(inner.path, inner.take("a", int)) for inner in reader.objects("many")] == [
        ("$.many[0]", 2),
        ("$.many[1]", 3),
    ]
    assert list(reader.objects("none")) == []
    assert list(reader.objects("missing")) == []
    assert reader.rest() == {"null": None}


def test_strings() -> None:
    reader = Reader({"f": ["a", ""], "empty": [], "null": None})
    assert reader.strings("f") == ("a", "")
    assert reader.strings("empty") == ()
    assert reader.strings("null") is None
    assert reader.strings("missing") is None
    assert reader.rest() == {"null": None}


Read: TypeAlias = Callable[[Reader], object]
INSIDE: dict[str, tuple[JSON, Read, str]] = {
    "C15-an-item": ([{}, 3], lambda reader: list(reader.objects("f")), "$.f[1]: expected object, got int"),
    "C15-no-list": ({}, lambda reader: list(reader.objects("f")), "$.f: expected list, got object"),
    "C15-no-object": ([], lambda reader: reader.object("f"), "$.f: expected object, got list"),
    "C15-a-string": (["a", None], lambda reader: reader.strings("f"), "$.f[1]: expected str, got null"),
    "C15-no-strings": ("a", lambda reader: reader.strings("f"), "$.f: expected list, got str"),
}


@pytest.mark.parametrize(("value", "read", "error"), [pytest.param(*case, id=name) for name, case in INSIDE.items()])
def test_errors_inside_name_the_item(value: JSON, read: Read, error: str) -> None:
    with pytest.raises(WireError) as caught:
        read(Reader({"f": value}))
    assert str(caught.value) == error


def test_the_rest_becomes_an_extra() -> None:
    reader = Reader({"a": 1, "b": None, "c": [2]})
    reader.take("a", int)
    assert reader.extra("chat") == Extra(dialect="chat", fields={"b": None, "c": [2]})
    assert reader.extra("chat", content="str", other=None) == Extra(
        dialect="chat", fields={"b": None, "c": [2]}, form={"content": "str"}
    )
    assert Reader({}).extra("chat") is None
    assert Reader({}).extra("chat", content=None) is None
    assert Reader({}).extra("chat", content="str") == Extra(dialect="chat", form={"content": "str"})


def test_the_error_of_a_place() -> None:
    error = expected("$.a[0]", "str or list", 5)
    assert (error.path, error.problem, str(error)) == (
        "$.a[0]",
        "expected str or list, got int",
        "$.a[0]: expected str or list, got int",
    )
