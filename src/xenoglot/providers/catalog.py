"""The provider rows of this package, and those of other packages."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from xenoglot import dialect_registry as dialects
from xenoglot.codec.target import Target
from xenoglot.entry_points import PluginEntry, entries
from xenoglot.errors import ConfigurationError
from xenoglot.providers.provider import Provider, required_settings, setting_names
from xenoglot.text import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject
    from xenoglot.providers.provider import ProviderEndpoint

GROUP = "xenoglot.providers"
"""The entry-point group under which other packages bring rows: each a `Provider`, under its own name."""

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

_ROWS = Path(__file__).with_name("rows")


@cache
def _own() -> dict[str, Path]:
    return {path.stem: path for path in sorted(_ROWS.glob("*.toml"))}


@cache
def _entries() -> dict[str, PluginEntry]:
    return entries(GROUP)


@cache
def names() -> tuple[str, ...]:
    """Return the names of all rows, sorted."""
    return tuple(sorted({*_own(), *_entries()}))


@cache
def get(name: str) -> Provider:
    """Return the row `name`.

    Raises:
        ConfigurationError: there is none of that name, or another package brings one that cannot be used.
    """
    own, entry = _own().get(name), _entries().get(name)
    if own is not None and entry is not None:
        message = f"{_describe(entry)}: there is a provider `{name}` already; the row needs another name"
        raise ConfigurationError(message)
    if own is not None:
        return read(own.read_text(encoding="utf-8"), f"the row `{name}`")
    if entry is not None:
        return _loaded(entry)
    near = get_close_matches(name, names(), n=1)
    advice = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(names())}"
    raise ConfigurationError(f"there is no provider `{name}`; {advice}")


def read(text: str, where: str) -> Provider:
    """Return the row that is written in TOML.

    Raises:
        ConfigurationError: it is none; `where` is what it is called.
    """
    try:
        row = msgspec.convert(tomllib.loads(text), Provider)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where} is not TOML: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{where}: its values are nested too deeply to be read") from None
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    return checked(row, where)


def checked(row: Provider, where: str) -> Provider:
    """Return the row, which can be used.

    Raises:
        ConfigurationError: it cannot; the text names the first thing that is wrong.
    """
    problem = next(_problems(row), None)
    if problem is not None:
        raise ConfigurationError(f"{where}: {problem}")
    return row


def merged(*quirks: JSONObject) -> JSONObject:
    """Return all the facts, a later one before an earlier of its name; what a server `lacks` adds up."""
    facts: JSONObject = {}
    for one in quirks:
        lacks = dict.fromkeys((*facts.get("lacks", ()), *one.get("lacks", ())))
        facts |= one | ({"lacks": list(lacks)} if lacks else {})
    return facts


def target_of(*quirks: JSONObject) -> Target:
    """Return the facts in `quirks`, as `merged` joins them.

    Raises:
        ConfigurationError: one of them is no such fact.
    """
    facts = merged(*quirks)
    for name in facts:
        if name not in Target.__struct_fields__:
            near = get_close_matches(name, Target.__struct_fields__, n=1)
            advice = f"; did you mean `{near[0]}`?" if near else ""
            raise ConfigurationError(f"`quirks.{name}` is unknown{advice}")
    try:
        return msgspec.convert(facts, Target)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"`quirks`: {error}") from None


def _loaded(entry: PluginEntry) -> Provider:
    try:
        row = entry.load()
    except Exception as error:
        raise ConfigurationError(f"{_describe(entry)} cannot be loaded: {error}") from error
    if not isinstance(row, Provider):
        raise ConfigurationError(f"{_describe(entry)} is a `{type(row).__name__}`; expected a `Provider`")
    if row.name != entry.name:
        raise ConfigurationError(f"{_describe(entry)} calls itself `{row.name}`; expected `{entry.name}`")
    return checked(row, _describe(entry))


def _describe(entry: PluginEntry) -> str:
    of = "" if entry.package is None else f" of `{entry.package}`"
    return f"the entry point `{entry.name}`{of} (`{entry.value}`)"


def _problems(row: Provider) -> Iterator[str]:
    """Yield what is wrong with a row."""
    if not NAME.fullmatch(row.name):
        yield f"`name`: found `{row.name}`; expected small letters, digits and `.`, `_`, `-`"
    if not row.faces:
        yield "`faces`: required, at least one"
    for face in row.faces:
        yield from _endpoint_problems(face, row)
        for quirks in ({}, *(models.quirks for models in row.models)):
            yield from _quirks(row.quirks, face.quirks, quirks)
    yield from _settings_problems(row)
    for name in (row.text_syntax, *(models.text_syntax for models in row.models)):
        if name not in (None, registry.AUTO, registry.OFF) and name not in registry.names():
            yield f"`text_syntax`: there is no text syntax `{name}`"


def _settings_problems(row: Provider) -> Iterator[str]:
    plain = {name for name, setting in row.settings.items() if not setting_names(setting)}
    for name, setting in row.settings.items():
        for other in sorted(setting_names(setting) - plain):
            yield f"`settings.{name}`: its default needs `{other}`; expected a setting whose default needs no other"


def _endpoint_problems(face: ProviderEndpoint, row: Provider) -> Iterator[str]:
    if face.dialect not in dialects.names():
        yield f"`faces`: there is no dialect `{face.dialect}`; there are: {', '.join(dialects.names())}"
    elif face.path is not None and dialects.get(face.dialect).stream_path is not None:
        yield f"`faces`: the paths of {face.dialect} cannot be others"
    unset = {*required_settings(face)} - row.settings.keys()
    if unset:
        yield f"`faces`: `{{{min(unset)}}}` in `base_url` is none of the `settings`"


def _quirks(*quirks: JSONObject) -> Iterator[str]:
    try:
        target_of(*quirks)
    except ConfigurationError as error:
        yield str(error)
