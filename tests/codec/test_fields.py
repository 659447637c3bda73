"""Field tables: reading, writing and documentation by rows; a field without a row is a `Loss` where it is set."""

import pytest
from msgspec import Struct

from xenoglot.codec.fields import CORE, STATELESS, Field, Fields, FieldSummary, FieldTexts, NestedFields, by_hand, words
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.encode_context import EncodeContext, extended
from xenoglot.codec.target import Target
from xenoglot.errors import WireError
from xenoglot.model.content import CacheMark, Extra
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request


class Settings(Struct, frozen=True, kw_only=True):
    """A struct with fields of several types."""

    known: int | None = None
    seed: int | None = None
    penalty: float | None = None
    wish: bool = False
    extra: Extra | None = None


FIELDS = Fields(Settings, "$.settings", ("known",), neutral={"penalty": 0}, texts=FieldTexts("no such setting"))


def dropped(fields: Fields, value: Struct) -> list[Loss]:
    losses = Losses()
    fields.note_unsupported(value, losses)
    return list(losses)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        pytest.param(Settings(), [], id="unset"),
        pytest.param(Settings(known=1), [], id="known"),
        pytest.param(Settings(known=1, seed=0), ["seed"], id="zero-is-set"),
        pytest.param(Settings(penalty=0.0), [], id="neutral"),
        pytest.param(Settings(penalty=0.5, wish=True), ["penalty", "wish"], id="several"),
        pytest.param(Settings(extra=Extra(dialect="alien", fields={"x": 1})), [], id="extra-is-carried-elsewhere"),
    ],
)
def test_what_is_set_and_not_known_is_dropped(value: Settings, names: list[str]) -> None:
    assert dropped(FIELDS, value) == [Loss("$.settings", name, "dropped", "no such setting") for name in names]


def test_a_struct_may_be_known_whole_or_but_for_one_field() -> None:
    value = Settings(known=1, seed=2, penalty=3, wish=True)
    assert dropped(Fields(Settings, "$", ("known", "seed", "penalty", "wish")), value) == []
    assert [loss.what for loss in dropped(Fields(Settings, "$", ("known", "seed", "penalty")), value)] == ["wish"]


def test_a_name_that_is_no_field_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="Settings has no field knwon, other"):
        Fields(Settings, "$", ("knwon",), neutral={"other": 1})


def test_a_server_without_state_is_not_asked_to_forget() -> None:
    fields = Fields(Request, "$", CORE, neutral=STATELESS)
    asked = Request(model="m", store=False, metadata={}, user="", cache=CacheMark())
    assert [loss.what for loss in dropped(fields, asked)] == ["cache"]


class Draw(Struct, frozen=True, kw_only=True):
    """A struct whose fields are spelled in every way that a row knows."""

    heat: float | None = None
    limit: int | None = None
    tier: str | None = None
    stop: tuple[str, ...] | None = None
    penalty: float | None = None
    seed: int | None = None
    chance: float | None = None


TABLE = Fields(
    Draw,
    "$.draw",
    (
        Field("heat", "temperature", float, 0, 2),
        Field("limit", ("max_new", "max_tokens"), int, 1, written="max_tokens", server_key="max_tokens_field"),
        NestedFields("options", Fields(Draw, "$.draw", (Field("tier", "tier", read=words({"std": "default"})),))),
        Field("stop", "stop", list),
        Field("penalty", "penalty", float, when=extended, note="an extension"),
        by_hand("seed", "seed", values="integer or word"),
    ),
    neutral={"penalty": 0, "chance": 1},
)


@pytest.mark.parametrize(
    ("body", "read", "left", "form"),
    [
        pytest.param({}, {}, {}, {}, id="nothing"),
        pytest.param({"x": 1, "seed": 1}, {}, {"x": 1, "seed": 1}, {}, id="unknown-and-by-hand-are-left"),
        pytest.param({"temperature": 1, "stop": ["a"]}, {"heat": 1, "stop": ("a",)}, {}, {}, id="typed"),
        pytest.param({"temperature": None}, {}, {"temperature": None}, {}, id="null-is-not-set"),
        pytest.param({"max_tokens": 5}, {"limit": 5}, {}, {}, id="the-usual-name"),
        pytest.param(
            {"max_tokens": 5, "max_new": 6},
            {"limit": 6},
            {"max_tokens": 5},
            {"limit": "max_new"},
            id="first-counts",
        ),
        pytest.param({"max_new": None, "max_tokens": 5}, {"limit": 5}, {"max_new": None}, {}, id="null-first"),
        pytest.param({"max_new": 5}, {"limit": 5}, {}, {"limit": "max_new"}, id="an-unusual-name"),
        pytest.param({"max_tokens": 5.0}, {"limit": 5}, {}, {}, id="a-whole-number-with-a-point"),
        pytest.param({"temperature": 0.0, "max_tokens": 1}, {"heat": 0.0, "limit": 1}, {}, {}, id="least"),
        pytest.param({"temperature": 2.0}, {"heat": 2.0}, {}, {}, id="most"),
    ],
)
def test_reading(body: JSONObject, read: JSONObject, left: JSONObject, form: JSONObject) -> None:
    reader, noted = Reader(body), dict[str, JSON]()
    assert TABLE.read(reader, noted) == read
    assert (reader.rest(), noted) == (left, form)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param({"temperature": "warm"}, "$.temperature: expected number, got str", id="type"),
        pytest.param({"temperature": 3}, "$.temperature: must be between 0 and 2", id="range"),
        pytest.param({"temperature": 2.5}, "$.temperature: must be between 0 and 2", id="range-of-floats"),
        pytest.param({"max_tokens": True}, "$.max_tokens: expected int, got bool", id="bool-is-no-int"),
        pytest.param({"max_new": 0}, "$.max_new: must be at least 1", id="least-alone"),
        pytest.param({"stop": ["a", 1]}, "$.stop[1]: expected str, got int", id="item"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(body: JSONObject, error: str) -> None:
    with pytest.raises(WireError) as raised:
        TABLE.read(Reader(body), {})
    assert str(raised.value) == error


def test_a_word_that_is_not_known_is_left() -> None:
    table = Fields(Draw, "$", (Field("tier", "tier", read=words({"std": "default"})),))
    assert table.read(Reader({"tier": "std"}), {}) == {"tier": "default"}
    reader = Reader({"tier": "gold"})
    assert (table.read(reader, {}), reader.rest()) == ({}, {"tier": "gold"})


def test_a_field_that_two_rows_have_is_read_once() -> None:
    rows = (Field("tier", "tier", read=words({"std": "default"})), Field("tier", "speed", read=words(("fast",))))
    table = Fields(Draw, "$", rows)
    reader = Reader({"tier": "std", "speed": "fast"})
    assert (table.read(reader, {}), reader.rest()) == ({"tier": "default"}, {"speed": "fast"})
    reader = Reader({"tier": "gold", "speed": "fast"})
    assert (table.read(reader, {}), reader.rest()) == ({"tier": "fast"}, {"tier": "gold"})


def written(value: Draw, form: JSONObject, target: Target, *, home: bool) -> tuple[JSONObject, list[str]]:
    losses, body = Losses(), dict[str, JSON]()
    TABLE.write(value, body, form, EncodeContext(losses, target, home))
    return body, [loss.what for loss in losses]


@pytest.mark.parametrize(
    ("value", "form", "target", "home", "expected"),
    [
        pytest.param(Draw(), {}, Target(), False, ({}, []), id="nothing"),
        pytest.param(Draw(heat=0, stop=("a",)), {}, Target(), False, ({"temperature": 0, "stop": ["a"]}, []), id="set"),
        pytest.param(Draw(limit=5), {}, Target(), False, ({"max_tokens": 5}, []), id="the-usual-name"),
        pytest.param(Draw(limit=5), {"limit": "max_new"}, Target(), True, ({"max_new": 5}, []), id="as-it-came"),
        pytest.param(
            Draw(limit=5),
            {"limit": "max_new"},
            Target(max_tokens_field="max_completion_tokens"),
            True,
            ({"max_completion_tokens": 5}, []),
            id="as-the-server-has-it",
        ),
        pytest.param(Draw(penalty=2), {}, Target(), False, ({}, ["penalty"]), id="extension-elsewhere"),
        pytest.param(Draw(penalty=0), {}, Target(), False, ({}, []), id="neutral-extension-elsewhere"),
        pytest.param(Draw(penalty=2), {}, Target(extended_sampling=True), False, ({"penalty": 2}, []), id="extension"),
        pytest.param(Draw(seed=1, chance=2), {}, Target(), False, ({}, ["chance"]), id="a-field-without-a-row"),
        pytest.param(Draw(chance=1), {}, Target(), False, ({}, []), id="neutral-without-a-row"),
    ],
)
def test_writing(
    value: Draw,
    form: JSONObject,
    target: Target,
    home: bool,  # noqa: FBT001  a parameter of the table
    expected: tuple[JSONObject, list[str]],
) -> None:
    assert written(value, form, target, home=home) == expected


def test_the_rows_are_documentation() -> None:
    assert [*TABLE.documented("draw.")] == [
        FieldSummary(("draw.temperature",), "heat", "number, 0 to 2", ""),
        FieldSummary(("draw.max_new", "draw.max_tokens"), "limit", "integer from 1", ""),
        FieldSummary(("draw.options.tier",), "tier", "string", ""),
        FieldSummary(("draw.stop",), "stop", "list of strings", ""),
        FieldSummary(("draw.penalty",), "penalty", "number", "an extension"),
        FieldSummary(("draw.seed",), "seed", "integer or word", ""),
    ]
