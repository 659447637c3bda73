"""Parameters of queries for pages of files, which several dialects have under names of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST_NUMBER = 9
_ID = re.compile(r"[\x21-\x7e]{1,256}")


def last_of(query: Mapping[str, Sequence[str]], name: str) -> str | None:
    """Return the last value of a parameter; `None` if there is none."""
    values = query.get(name)
    return values[-1] if values else None


def page_limit(query: Mapping[str, Sequence[str]], name: str, usual: int, most: int) -> int:
    """Return the number of items that a query asks for; `usual` if it names none.

    Raises:
        WireError: it is no number, or not between 1 and `most`.
    """
    value = last_of(query, name)
    if value is None:
        return usual
    number = int(value) if value.isascii() and value.isdecimal() and len(value) <= LONGEST_NUMBER else 0
    if not 1 <= number <= most:
        raise WireError(f"$.{name}", f"expected 1 to {most}")
    return number


def id_of(query: Mapping[str, Sequence[str]], name: str) -> str | None:
    """Return the id in a parameter; `None` if there is none.

    Raises:
        WireError: nothing can have this id.
    """
    value = last_of(query, name)
    return None if value is None else check_id(value, f"$.{name}")


def check_id(value: str, path: str) -> str:
    """Return an id: stores do not take every text, such as one with a null character.

    Raises:
        WireError: nothing can have this id.
    """
    if _ID.fullmatch(value) is None:
        raise WireError(path, "expected an id: up to 256 printable ASCII characters without spaces")
    return value
