"""The name of the dialect, and its unknown fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject

NAME: Final = "interactions"
"""The name of this dialect in `Extra`, `Opaque`, `Finish` and `Origin`."""

NAME_LIMIT: Final = 64
"""Characters of a tool's name."""

NO_CACHE: Final = "the server decides what it caches"


def extra_of(reader: Reader, form: JSONObject) -> Extra | None:
    """Return the rest of `reader` with the spellings in `form` that are set."""
    rest, said = reader.rest(), {key: value for key, value in form.items() if value}
    return Extra(dialect=NAME, fields=rest, form=said) if rest or said else None


def own_fields(extra: Extra | None, where: str, losses: Losses) -> JSONObject:
    """Return a copy of this dialect's own fields of `extra`; another's are losses."""
    return dict(losses.carry(extra, where, NAME))


STEP: Final = "step."
"""Prefix of the names of fields of a step, at its first content."""


def step_free(own: JSONObject) -> JSONObject:
    """Return the fields of a content without those of its step."""
    return {key: value for key, value in own.items() if not key.startswith(STEP)}
