"""Plain data (what TOML gives) into frozen structs: mistakes with their paths, deprecated keys, forms of values.

The struct is the schema: its fields are the keys, their types what may stand there, their defaults what is meant where
nothing does. A nested struct is a table, a tuple of structs an array of tables, a dictionary of structs named tables.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

import msgspec

from xenoglot.backends.redaction import for_log
from xenoglot.http1.syntax import CONNECTION_FIELDS, TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xenoglot.model.json import JSON, JSONObject


T = TypeVar("T", bound=msgspec.Struct)

LONGEST_SHOWN = 60
"""Characters of a text that a message repeats."""

NOTHING: Any = object()
"""What a mistaken value becomes: its field takes the default, so that the rest can be looked at."""


class Problems:
    """The mistakes found so far. `names` are what some paths are called where the data came from."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._names = names

    def add(self, path: str, problem: str) -> None:
        """Note what is wrong at `path`, once."""
        line = f"{self._names.get(path, path)}: {problem}"
        if line not in self.lines:
            self.lines.append(line)


def read(kind: type[T], value: JSON, path: str, problems: Problems) -> T | None:
    """Return `value` as a `kind`; `None` if a field without default is missing or wrong, or it is no table at all."""
    if not isinstance(value, dict):
        problems.add(path or "the file", f"found {shown(value)}; expected a table")
        return None
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    taken: dict[str, Any] = {}
    for key, item in value.items():
        if key not in fields:
            problems.add(join(path, key), unknown(key, fields))
            continue
        read_item = _read(fields[key].type, item, join(path, key), problems)
        if read_item is not NOTHING:
            taken[key] = read_item
    missing = [name for name, field in fields.items() if field.required and name not in taken]
    for name in missing:
        if name not in value:
            problems.add(join(path, name), "required, and not there")
    return None if missing else kind(**taken)


def join(path: str, key: str) -> str:
    """Return the path of `key` under `path`, written as TOML writes it."""
    bare = key.replace("-", "").replace("_", "")
    name = key if bare.isalnum() and bare.isascii() else f'"{key}"'
    return f"{path}.{name}" if path else name


def shown(value: JSON) -> str:
    """Return `value` for a message: short, and no more of it than helps."""
    if isinstance(value, str):
        return f'"{for_log(value, LONGEST_SHOWN)}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else str(value)


def unknown_name(name: str, known: Iterable[str], others: Iterable[str] = ()) -> str:
    """Return the message for a name that is neither in `known` nor in their aliases `others`."""
    words = list(known)
    near = get_close_matches(name, [*words, *others], n=1)
    advice = f"did you mean `{near[0]}`?" if near else f"expected one of {', '.join(words)}"
    return f"found {shown(name)}; {advice}"


def unknown(key: str, known: Iterable[str]) -> str:
    """Return the problem of a word that is none of `known`."""
    words = list(known)
    near = get_close_matches(key, words, n=1)
    return f"unknown; did you mean `{near[0]}`?" if near else f"unknown; expected one of {', '.join(words)}"


def _read(kind: Any, value: JSON, path: str, problems: Problems) -> Any:  # noqa: ANN401  as its field says
    """Return `value` as `kind`, a field's type; `NOTHING` if it is not one."""
    kind, nested = kind if value is None else _unwrapped(kind), None
    origin, arguments = get_origin(kind), get_args(kind)
    if _is_struct(kind):
        nested = read(kind, value, path, problems)
        return NOTHING if nested is None else nested
    if origin is dict and _is_struct(arguments[1]) and isinstance(value, dict):
        tables = {key: read(arguments[1], item, join(path, key), problems) for key, item in value.items()}
        return {key: table for key, table in tables.items() if table is not None}
    if origin is tuple and _is_struct(arguments[0]) and isinstance(value, list):
        rows = [read(arguments[0], item, f"{path}[{index}]", problems) for index, item in enumerate(value)]
        return tuple(row for row in rows if row is not None)
    if origin is Literal and value not in arguments:
        problems.add(path, f"found {shown(value)}; expected one of {', '.join(arguments)}")
        return NOTHING
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problems.add(path, f"found {shown(value)}; {_expected(str(error))}")
        return NOTHING


def _unwrapped(kind: Any) -> Any:  # noqa: ANN401  a type
    """Return the struct in `Struct | None` and the words in `Literal | None`, and anything else as it is."""
    if type(None) not in get_args(kind):
        return kind
    arguments = [argument for argument in get_args(kind) if argument is not type(None)]
    alone = arguments[0] if len(arguments) == 1 else None
    return alone if _is_struct(alone) or get_origin(alone) is Literal else kind


def _is_struct(kind: Any) -> bool:  # noqa: ANN401  a type
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _expected(message: str) -> str:
    """Return msgspec's message without its own path: `Expected `int`, got `str` - at `$[0]`` -> `expected int`."""
    text = message.partition(" - at ")[0].partition(", got")[0].replace("`", "")
    return text[:1].lower() + text[1:]


_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_KEYED = frozenset({"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"})


def url_problem(url: str) -> str | None:
    """Return what is wrong with a base URL; the URL is not repeated where it may hold a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"not a URL: {error}"
    if "@" in parts.netloc:
        return "holds a user or password; a key goes into an environment variable, named in `key_env`"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"found {shown(url)}; expected http:// or https:// and a host"
    if port == 0:
        return f"found {shown(url)}; expected a port from 1 to 65535"
    if parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        return f"found {shown(url)}; expected no fragment, blanks or characters beyond ASCII"
    return None


def header_problem(name: str, value: str) -> str | None:
    """Return what is wrong with a header for an upstream; its value, which may be a secret, is not repeated."""
    if name.lower() in _KEYED:
        return "a key does not stand in the file: name the environment variable that holds it in `key_env`"
    if name.lower() in CONNECTION_FIELDS:
        return "belongs to the connection, and is written by the gateway"
    if not TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        return "not a header of printable ASCII characters"
    return None


def origin_problem(origin: str) -> str | None:
    """Return what is wrong with an origin, as a browser would write it (RFC 6454 section 6.2)."""
    with suppress(ValueError):
        scheme, host, *rest = urlsplit(origin)
        if scheme and host and not any(rest) and origin == origin.lower():
            return None
    return f"found {shown(origin)}; expected an origin in lower case like https://app.example:8443"


UPSTREAM_KEYS = {"facts": "model_overrides", "preserve": "preserve_reasoning"}
"""New names of keys of `[upstreams.NAME]`."""

ENDPOINT_KEYS = {"facts": "model_overrides"}
"""New names of keys of `[[upstreams.NAME.also]]`."""

MODEL_KEYS = {
    "continues": "midstream_failover",
    "hold_back": "buffer",
    "patience_seconds": "retry_deadline_seconds",
    "preserve": "preserve_reasoning",
}
"""New names of keys of `[[models]]`."""

_logger = logging.getLogger("xenoglot.gateway")


def with_new_keys(plain: JSONObject, where: str, problems: Problems) -> JSONObject:
    """Return the data of a configuration file with the new name of each deprecated key.

    Each deprecated key is logged as a warning; `where` names the file. A table with both names is a mistake.
    """
    renamer = _Renamer(where, problems)
    changed = dict(plain)
    upstreams, models = plain.get("upstreams"), plain.get("models")
    if isinstance(upstreams, dict):
        changed["upstreams"] = {name: renamer.upstream(one, join("upstreams", name)) for name, one in upstreams.items()}
    if isinstance(models, list):
        changed["models"] = renamer.rows(models, MODEL_KEYS, "models")
    return changed


class _Renamer:
    """Renames the deprecated keys of one file; values that are no tables stay as they are."""

    def __init__(self, where: str, problems: Problems) -> None:
        self._where = where
        self._problems = problems

    def upstream(self, value: JSON, path: str) -> JSON:
        renamed = self.table(value, UPSTREAM_KEYS, path)
        if isinstance(renamed, dict) and isinstance(also := renamed.get("also"), list):
            return {**renamed, "also": self.rows(also, ENDPOINT_KEYS, join(path, "also"))}
        return renamed

    def rows(self, values: list[JSON], keys: Mapping[str, str], path: str) -> list[JSON]:
        return [self.table(value, keys, f"{path}[{index}]") for index, value in enumerate(values)]

    def table(self, value: JSON, keys: Mapping[str, str], path: str) -> JSON:
        if not isinstance(value, dict) or value.keys().isdisjoint(keys):
            return value
        for old in sorted(value.keys() & keys.keys()):
            if keys[old] in value:
                self._problems.add(join(path, old), f"deprecated name of `{keys[old]}`, which is set too; remove it")
            else:
                _logger.warning("%s: %s: deprecated; rename it to `%s`", self._where, join(path, old), keys[old])
        return {name: item for key, item in value.items() if (name := keys.get(key, key)) == key or name not in value}
