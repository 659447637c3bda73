"""Reading a request at a glance: what the dialects' `glance` modules have in common.

Most requests have but a few fields, each of its usual form, and plain messages (see `codec.frequent_shapes`). Such a
one is read from its bytes without a `Reader`: a table says of each field whether it is of that form, and what is in no
table is not seen at a glance. What is seen is what the general way reads, to the last `Extra`:
`tests/dialects/test_plain.py` holds the dialects to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from xenoglot.codec.json.duplicate_keys import unambiguous
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.requests.bounds import bounded
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

T = TypeVar("T")

_SMALL = 16 * 1024
"""Bytes; in so few no list of plain things is too long for `bounded`."""


def object_in(data: bytes, fields: Mapping[str, Callable[[JSON], bool]]) -> JSONObject | None:
    """Return the object in `data` if no object there has a member twice, and `fields` have all of its own and fit."""
    try:
        body = decode_json(data)
    except WireError:
        return None
    if type(body) is not dict:
        return None
    for key, value in body.items():
        fits = fields.get(key)
        if fits is None or not fits(value):
            return None
    return body if unambiguous(data, body) is data else None


def all_of(items: Iterable[JSON], read: Callable[[JSON], T | None]) -> tuple[T, ...] | None:
    """Return what `read` makes of each item; `None` where it does so of one."""
    made: list[T] = []
    for item in items:
        one = read(item)
        if one is None:
            return None
        made.append(one)
    return tuple(made)


def within_bounds(request: Request, data: bytes) -> Request | None:
    """Return the request if it is `bounded`."""
    if len(data) <= _SMALL:
        return request
    try:
        return bounded(request)
    except WireError:
        return None


def is_text(value: JSON) -> bool:
    """Whether it is a text."""
    return type(value) is str


def is_flag(value: JSON) -> bool:
    """Whether it is true or false."""
    return type(value) is bool


def is_filled_list(value: JSON) -> bool:
    """Whether it is a list with something in it."""
    return type(value) is list and bool(value)


def is_count(least: int, most: int) -> Callable[[JSON], bool]:
    """Return what says whether a value is a whole number between `least` and `most`, both allowed."""
    return lambda value: type(value) is int and least <= value <= most


def is_number(most: float) -> Callable[[JSON], bool]:
    """Return what says whether a value is a number between 0 and `most`, both allowed."""
    return lambda value: type(value) in _NUMBERS and 0 <= value <= most


_NUMBERS = (float, int)
