"""Keeps unknown fields of this dialect as `Extra`, so that they return unchanged to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject

NAME = "chat"
"""The name of this dialect in `Extra`, `Opaque`, `Finish` and `Origin`."""


def extra_of(reader: Reader, form: JSONObject) -> Extra | None:
    """Return the rest of `reader` with the spellings in `form` that are set."""
    rest, said = reader.rest(), {key: value for key, value in form.items() if value}
    return Extra(dialect=NAME, fields=rest, form=said) if rest or said else None


def own_fields(extra: Extra | None, where: str, losses: Losses) -> JSONObject:
    """Return a copy of this dialect's own fields of `extra`; another's are losses."""
    return dict(losses.carry(extra, where, NAME))
