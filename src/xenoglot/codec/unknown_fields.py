"""Unknown fields of objects that have no canonical value of their own: they stay with the value around them.

An `Extra` belongs to a canonical value, and not every object of the wire has one. The rest of such an object is kept
under its own key, and merged with what an encoder writes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import PARTIAL, form_of

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSON, JSONObject


def keep_rest(parent: Reader, key: str, child: Reader, form: JSONObject | None = None, *, said: bool = True) -> None:
    """Put back the unknown fields of the object `child` under `key`; `form` gets it if it is empty.

    `said` is whether anything was taken of it that brings the object back by itself. A loss names each field inside.
    """
    rest = child.rest()
    if not rest and said:
        return
    if form is None or _is_set(rest):
        parent.rest()[key] = rest
        if form is not None:
            form.setdefault(PARTIAL, []).append(key)
    else:
        form.setdefault("rests", {})[key] = rest


def _is_set(value: JSON) -> bool:
    return any(map(_is_set, value.values())) if isinstance(value, dict) else value is not None


def merge_rest(own: JSONObject, extra: Extra | None, dialect: str, where: str, losses: Losses) -> JSONObject:
    """Return the fields `own` with those of `extra` that `dialect` carries; objects that are in both are merged."""
    if extra is None:
        return own
    return merged(merged(own, form_of(extra, dialect).get("rests", {})), losses.carry(extra, where, dialect))


def merged(own: JSONObject, rest: JSONObject) -> JSONObject:
    """Return `own` with the fields of `rest` that it lacks, at every depth."""
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
