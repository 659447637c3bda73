"""The name of the dialect, and its unknown fields in nested objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import PARTIAL, form_of

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSON, JSONObject

NAME = "gemini"
"""The name of this dialect in `Extra`, `Opaque`, `Finish` and `Origin`."""

SIGNATURE = "thoughtSignature"
"""The field of a part that holds the sealed state of the model's thinking."""


def keep(parent: Reader, key: str, child: Reader, form: JSONObject | None = None, *, said: bool = True) -> None:
    """Put back the unknown fields of the object `child` under `key`; `form` gets it if it is empty.

    `said` tells whether anything was taken of it that brings the object back by itself. A loss names each field inside.
    """
    rest = child.rest()
    if not rest and said:
        return
    if form is None or _speaks(rest):
        parent.rest()[key] = rest
        if form is not None:
            form.setdefault(PARTIAL, []).append(key)
    else:
        form.setdefault("rests", {})[key] = rest


def _speaks(value: JSON) -> bool:
    return any(map(_speaks, value.values())) if isinstance(value, dict) else value is not None


def with_rest(own: JSONObject, extra: Extra | None, where: str, losses: Losses) -> JSONObject:
    """Return the fields `own` with those of `extra` that this dialect carries; objects that are in both are merged."""
    if extra is None:
        return own
    return merged(merged(own, form_of(extra, NAME).get("rests", {})), losses.carry(extra, where, NAME))


def merged(own: JSONObject, rest: JSONObject) -> JSONObject:
    """Return `own` with what `rest` has beside it, at every depth."""
    if not rest:
        return own
    result = dict(own)
    for key, value in rest.items():
        mine = result.get(key)
        if isinstance(mine, dict) and isinstance(value, dict):
            result[key] = merged(mine, value)
        elif mine is None:
            result[key] = value
    return result


def with_said(own: JSONObject, **optional: JSON) -> JSONObject:
    """Return `own` with those of the `optional` fields that are set."""
    own.update({key: value for key, value in optional.items() if value is not None})
    return own
