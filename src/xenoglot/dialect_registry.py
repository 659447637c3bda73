"""The registry of dialects: those of installed packages, by their names."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, cast

from xenoglot.codec.features import hosted_dialect
from xenoglot.entry_points import PluginEntry, entries
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Request

GROUP = "xenoglot.dialects"
"""The entry-point group under which dialects are found."""


@cache
def _entries() -> dict[str, PluginEntry]:
    return entries(GROUP)


@cache
def names() -> tuple[str, ...]:
    """Return the names of all dialects installed, sorted."""
    return tuple(sorted(_entries()))


@cache
def get(name: str) -> Dialect:
    """Return the dialect `name`, which may be one of its other names.

    Raises:
        ConfigurationError: there is none of that name.
    """
    entry = _entries().get(name) or _entries().get(canonical(name))
    if entry is None:
        near = get_close_matches(name, (*names(), *other_names()), n=1)
        advice = f"did you mean `{near[0]}`?" if near else f"installed: {', '.join(names()) or 'none'}"
        raise ConfigurationError(f"there is no dialect `{name}`; {advice}")
    return cast("Dialect", entry.load())


def canonical(name: str) -> str:
    """Return the name of the dialect that has `name` as another one (`openai`: `chat`); any other name unchanged."""
    return name if name in _entries() else other_names().get(name, name)


def canonical_json(value: JSON) -> JSON:
    """Return the same of a value that may be a name, as files have it."""
    return canonical(value) if isinstance(value, str) else value


def argument(name: str) -> str:
    """Return the name of a dialect that an argument of the command line names, for `argparse`."""
    try:
        get(name)
    except ConfigurationError as error:
        from argparse import ArgumentTypeError  # noqa: PLC0415  only for a mistake

        raise ArgumentTypeError(str(error)) from None
    return canonical(name)


@cache
def other_names() -> Mapping[str, str]:
    """Return other names of dialects -> their names. It loads all dialects; few need it."""
    return {other: name for name in names() for other in get(name).other_names}


@cache
def hosted_by(host: str, dialect: str) -> Dialect:
    """Return `dialect` as the servers of the dialect `host` take it.

    Raises:
        ConfigurationError: they do not.
    """
    outer = get(host)
    for form in outer.hosts:
        if form.dialect == canonical(dialect):
            return hosted_dialect.hosted(outer, get(form.dialect), form)
    known = ", ".join(form.dialect for form in outer.hosts) or "none"
    raise ConfigurationError(f"servers of `{host}` do not take bodies of `{dialect}`; they take: {known}")


def count_decoder(dialect: Dialect) -> Callable[[JSON], Request] | None:
    """Return what decodes a token counting request of `dialect`, the bodies that it hosts included."""
    return hosted_dialect.count_decoder(dialect, {form.dialect: get(form.dialect) for form in dialect.hosts})


def hosted_dialects() -> tuple[Dialect, ...]:
    """Return every dialect as servers of another one take it; a form whose dialect is not installed is left out."""
    return tuple(
        hosted_by(name, form.dialect) for name in names() for form in get(name).hosts if form.dialect in _entries()
    )
