"""Validates text against a JSON Schema with `jsonschema-rs` (extra `structured`).

Draft 2020-12 unless `$schema` specifies another. `format` is an annotation, not checked. A schema refers to nothing
outside of itself: no address and no file is ever opened. A report repeats nothing of a text but names of properties.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.errors import ConfigurationError, WireError, missing_extra
from xenoglot.text.json.schema_cost import too_costly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import jsonschema_rs

    from xenoglot.model.json import JSON

MOST_PROBLEMS: Final = 5
"""The most that are reported for one text."""

_SHORT: Final = 10_000
"""Characters: for a longer text only one problem is reported."""

_LONGEST_PATH: Final = 200
_LONGEST_NAME: Final = 40
_LONGEST_EXPECTED: Final = 160
_BACKTRACKS: Final = 100_000
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_Error: TypeAlias = "jsonschema_rs.ValidationError"


class SchemaProblem(Struct, frozen=True):
    """What is wrong with a text: `path` is the place in its value (`$.items[0]`), the others the problem."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"


def require() -> None:
    """Make sure that schemas can be checked.

    Raises:
        ConfigurationError: they cannot: the extra is not installed.
    """
    try:
        import jsonschema_rs  # noqa: F401, PLC0415  an extra
    except ImportError:
        raise ConfigurationError(missing_extra("jsonschema_rs")) from None


class JSONSchema:
    """A JSON Schema, ready to be held against texts; `None` is that of any JSON."""

    def __init__(self, schema: JSON, path: str = "$") -> None:
        """Compile `schema`, which stands at `path`.

        Raises:
            WireError: it is no schema, or refers to something outside of itself.
            ConfigurationError: the extra is not installed.
        """
        self._schema = schema
        self._validator = None if schema is None else _compiled(schema, path)

    def problems(self, text: str) -> Sequence[SchemaProblem]:
        """Return what is wrong with `text`, the first few; nothing for a valid one."""
        try:
            value = decode_json(text)
        except WireError as error:
            return (SchemaProblem("$", "JSON", "no JSON" if not text.strip() else _without_text(error.problem)),)
        if self._validator is None:
            return ()
        if too_costly(self._schema, value):
            return (
                SchemaProblem("$", "a value that can be checked", "one that takes too many steps under this schema"),
            )
        try:
            return _problems(self._validator, value, several=len(text) <= _SHORT)
        except (ValueError, OverflowError, RecursionError):
            return (SchemaProblem("$", "a value that can be checked", "one nested too deeply, or a number too large"),)


def _problems(validator: jsonschema_rs.Validator, value: JSON, *, several: bool) -> Sequence[SchemaProblem]:
    """Return what is wrong; for a long text only the first problem, since the validator finds all or one."""
    import jsonschema_rs  # noqa: PLC0415  an extra

    if several:
        return [_problem(error) for error in islice(validator.iter_errors(value), MOST_PROBLEMS)]
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return (_problem(error),)
    return ()


def _compiled(schema: JSON, path: str) -> jsonschema_rs.Validator:
    require()
    import jsonschema_rs  # noqa: PLC0415  an extra

    if not isinstance(schema, dict | bool):
        raise WireError(path, "expected a JSON Schema: an object or a boolean")
    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=False,
            offline=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS),
        )
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            raise WireError(path, "it refers to what is not in it; nothing else is looked up") from None
        raise WireError(path + _path(error.instance_path)[1:], f"no JSON Schema: expected {_expected(error)}") from None
    except (ValueError, OverflowError, RecursionError):
        raise WireError(path, "no JSON Schema that can be compiled") from None


def _without_text(problem: str) -> str:
    """Return the decoder's message, without a character of what it read."""
    return problem[:_LONGEST_EXPECTED]


def _problem(error: _Error) -> SchemaProblem:
    return SchemaProblem(_path(error.instance_path), _expected(error), _found(error))


def _path(steps: Sequence[str | int]) -> str:
    path = "$" + "".join(_step(step) for step in steps)
    return path if len(path) <= _LONGEST_PATH else path[:_LONGEST_PATH] + "..."


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if len(step) <= _LONGEST_NAME and _PLAIN_NAME.fullmatch(step):
        return f".{step}"
    return f"[{_short(step, _LONGEST_NAME)!a}]"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "..."


def _expected(error: _Error) -> str:
    """Return what the keyword at fault wants; `kind.value` is the schema's value, for some keywords what was found."""
    keyword, value = error.kind.name, error.kind.value
    if keyword in _EXPECTED:
        return _EXPECTED[keyword](value)
    try:
        return _short(f"`{keyword}` {to_text(value)}", _LONGEST_EXPECTED)
    except (TypeError, ValueError):
        return f"`{keyword}`"


_EXPECTED: Final[Mapping[str, Callable[[JSON], str]]] = {
    "required": lambda name: f"the property {_name(name)}",
    "additionalProperties": lambda _: "no properties but those named",
    "unevaluatedProperties": lambda _: "no properties but those named",
    "falseSchema": lambda _: "nothing here",
    "uniqueItems": lambda _: "items that differ",
    "contains": lambda _: "an item of the kind that `contains` says",
    "propertyNames": lambda _: "names as `propertyNames` says",
    "type": " or ".join,
    "anyOf": lambda kinds: f"one of {len(kinds)} forms (`anyOf`)",
    "oneOf": lambda kinds: f"exactly one of {len(kinds)} forms (`oneOf`)",
    "not": lambda _: "no value of the form that `not` says",
}


def _name(name: JSON) -> str:
    return f"`{ascii(_short(str(name), _LONGEST_NAME))[1:-1]}`"


def _found(error: _Error) -> str:
    if error.kind.name in ("additionalProperties", "unevaluatedProperties"):
        names = error.kind.value
        return ", ".join(map(_name, names[:3])) + (" and more" if len(names) > len(names[:3]) else "")
    return _kind(error.instance) + (" without it" if error.kind.name == "required" else "")


def _kind(value: JSON) -> str:
    """Return the type of a value, not its content."""
    match value:
        case None | bool():
            return to_text(value)
        case str():
            return f"a string of length {len(value)}"
        case list():
            return f"an array of length {len(value)}"
        case dict():
            return "an object"
        case _:
            return "a number"
