"""Closed-world losses: a field that is not listed as known is a `Loss` where it is set."""

import pytest
from msgspec import Struct

from xenoglot.codec.fields import CORE, STATELESS, Fields
from xenoglot.codec.loss import Loss, Losses
from xenoglot.model.content import CacheMark, Extra
from xenoglot.model.request import Request


class Settings(Struct, frozen=True, kw_only=True):
    """A struct with fields of several types."""

    known: int | None = None
    seed: int | None = None
    penalty: float | None = None
    wish: bool = False
    extra: Extra | None = None


FIELDS = Fields(Settings, "$.settings", ("known",), neutral={"penalty": 0}, why="no such setting")


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
