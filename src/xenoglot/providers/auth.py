"""Authentication headers of providers that do not use their dialect's own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.dialect import Dialect, Headers
    from xenoglot.providers.provider import AuthForm


def authorizer(form: AuthForm | None, dialect: Dialect) -> Callable[[str | None], Headers]:
    """Return what gives the headers of a server of `dialect` that wants its key as `form`."""
    return dialect.authorize if form is None else partial(_headers, form, dialect)


def _headers(form: AuthForm, dialect: Dialect, key: str | None) -> Headers:
    """Return the headers that the dialect sends without a key, such as its version, and the key."""
    others = tuple(dialect.authorize(None))
    if key is None or form == "none":
        return others
    return (*others, ("authorization", f"Bearer {key}") if form == "bearer" else (form, key))
