"""Converts unquoted values to JSON of the type that the tool's schema declares."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xenoglot.model.json import JSON, JSONObject

Kinds: TypeAlias = frozenset[str] | None
"""The JSON types that a schema admits, by their names in JSON Schema; `None` is any of them."""

_TEXT: Kinds = frozenset({"string"})

MOST_STEPS: Final = 256
"""Schemas that are looked at to learn the type of one value; one that takes more admits anything."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_ZEROS = re.compile(r"\A(-?)0+(?=[0-9])")
_SIGNED = re.compile(r"\+?(-?)([0-9]*)\.?([0-9]*)")
"""A decimal number as Python reads it: with a plus, or without the digits on one side of its point."""
_SWITCHES: Final = {"1": "true", "0": "false"}
_NUMERIC: Final = frozenset({"integer", "number"})
_WORDS: Final = {"true": "boolean", "false": "boolean", "null": "null"}
_OTHER_WORDS: Final = {"none": "null", **_WORDS}
"""How templates print them that leave it to Python; any case."""

_SPELT: Final = {"none": "null"}
_NAMES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}

_PYTHON = re.compile(
    r"""'(?P<single>(?:[^'\\]|\\.)*+)'
    | (?P<kept>"(?:[^"\\]|\\.)*+")
    | (?P<word>[A-Za-z_]\w*+)
    | (?P<bracket>[()])
    | (?P<trailing>,(?=\s*+[])}]))
    | [^'"A-Za-z_(),]++ | ,""",
    re.VERBOSE | re.DOTALL,
)
_IN_SINGLE = re.compile(r"""\\(?P<escaped>.)|(?P<quote>")""", re.DOTALL)
_PYTHON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}


def escaped(text: str) -> str:
    """Return `text` as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def members(text: str) -> JSONObject | None:
    """Return the members of the JSON object that `text` is, or of none where it is empty; `None` if it is no object."""
    try:
        value = decode_json(text or "{}")
    except WireError:
        return None
    return value if isinstance(value, dict) else None


def property_schema(schema: JSON, name: str, root: JSON) -> JSON:
    """Return the schema of the property `name` in `schema`, an object's; `None` where it has none.

    `root` is the schema that references in `schema` are to. Of several branches that have it, any may count.
    """
    found: list[JSON] = []
    for inner in _branches(schema, root):
        properties = inner.get("properties")
        if isinstance(properties, dict) and name in properties:
            found.append(properties[name])
    if found:
        return found[0] if len(found) == 1 else {"anyOf": found}
    for inner in _branches(schema, root):
        if isinstance(additional := inner.get("additionalProperties"), dict):
            return additional
    return None


def item_schema(schema: JSON, root: JSON) -> JSON:
    """Return the schema of the items in `schema`, an array's; `None` where it has none."""
    for inner in _branches(schema, root):
        if isinstance(items := inner.get("items"), dict):
            return items
    return None


def only_text(schema: JSON, root: JSON) -> bool:
    """Return whether a value of `schema` is a string whatever it looks like, so that it can be passed on as it comes.

    `root` is the schema that references in `schema` are to.
    """
    return kinds(schema, root) == _TEXT


def may_be_text(schema: JSON, root: JSON) -> bool:
    """Return whether `schema` admits a string. `root` is the schema that references in `schema` are to."""
    admitted = kinds(schema, root)
    return admitted is None or "string" in admitted


def typed(text: str, schema: JSON, root: JSON) -> str:
    """Return, as JSON, the value that `text` means where `schema` is expected. It stays as it is written if it can.

    A string wins where nothing else fits, and always where a schema admits strings and what the text looks like is not
    admitted in addition. Where nothing is known of the value, numbers, booleans, `null`, lists and objects are what
    they look like. What fits no declared type is kept: as the JSON it is, or as a string.
    """
    admitted = kinds(schema, root)
    if admitted == _TEXT:
        return f'"{escaped(text)}"'
    if _one_of(schema, text):
        return f'"{escaped(text)}"'
    found, kind = _literal(text.strip(), loose=admitted is not None)
    if admitted is not None and "string" not in admitted:
        found, kind = _without_string(text.strip(), found, kind, admitted)
    elif (
        admitted is not None
        and kind == "string"
        and _literal(_unescaped(text.strip()[1:-1]), loose=True)[1] in admitted
    ):
        return found  # the quotes say that it is a string, rather than what else is admitted
    return found if found and _fits(admitted, kind, text.strip()) else f'"{escaped(text)}"'


def _without_string(text: str, found: str, kind: str, admitted: frozenset[str]) -> tuple[str, str]:
    """Return the value, and its type, of `text`, which looks like `found`, where no string is admitted."""
    if found in _SWITCHES and "boolean" in admitted and not admitted & _NUMERIC:
        return _SWITCHES[found], "boolean"
    if not found:
        found, kind = _literal(_ZEROS.sub(r"\1", _number(text)), loose=True)
    if not found:
        found, kind = _literal(_unescaped(text), loose=True)
    if kind == "string":  # in quotes that do not belong there
        inner, inner_kind = _literal(_unescaped(found[1:-1]), loose=True)
        found, kind = (inner, inner_kind) if inner_kind in admitted else (found, kind)
    return found, kind


def _one_of(schema: JSON, text: str) -> bool:
    """Return whether `text` is one of the strings that `schema` lists."""
    options = schema.get("enum") if isinstance(schema, dict) else None
    return isinstance(options, list) and text in options


def kinds(schema: JSON, root: JSON) -> Kinds:
    """Return the types that `schema` admits. `root` is the schema that references in it are to."""
    return _Inquiry(root).kinds(schema)


def _fits(admitted: Kinds, kind: str, text: str) -> bool:
    """Return whether `text`, which looks like a value of type `kind`, is one, rather than the text of a string."""
    if admitted is None:
        return kind != "string"
    if "string" not in admitted:
        return True
    if kind == "null" and text != "null":
        return False  # `None` and `none` are words where a string may stand
    return kind != "string" and (kind in admitted or (kind == "integer" and "number" in admitted))


class _Inquiry:
    """One look at a schema; it ends after `MOST_STEPS` however the schema refers to itself."""

    def __init__(self, root: JSON) -> None:
        self._root = root
        self._steps = 0

    def kinds(self, schema: JSON) -> Kinds:
        self._steps += 1
        if not isinstance(schema, dict) or self._steps > MOST_STEPS:
            return None
        found = [*self._said(schema), *self._referred(schema)]
        known = [some for some in found if some is not None]
        if not known:
            return None
        admitted = frozenset.intersection(*known)
        return admitted | {"null"} if schema.get("nullable") is True else admitted

    def _said(self, schema: dict[str, JSON]) -> Iterator[Kinds]:
        if "type" in schema:
            yield _named(schema["type"])
        elif "properties" in schema:
            yield frozenset({"object"})
        elif "items" in schema or "prefixItems" in schema:
            yield frozenset({"array"})
        if "const" in schema:
            yield _of((schema["const"],))
        if isinstance(options := schema.get("enum"), list) and options:
            yield _of(options)

    def _referred(self, schema: dict[str, JSON]) -> Iterator[Kinds]:
        if isinstance(reference := schema.get("$ref"), str):
            yield self.kinds(_target(self._root, reference))
        for keyword in ("anyOf", "oneOf"):
            if isinstance(options := schema.get(keyword), list) and options:
                yield self._any(options)
        if isinstance(parts := schema.get("allOf"), list):
            for part in parts:
                yield self.kinds(part)

    def _any(self, options: list[JSON]) -> Kinds:
        each = [self.kinds(option) for option in options]
        known = [some for some in each if some is not None]
        return frozenset().union(*known) if len(known) == len(each) else None


def _named(said: JSON) -> Kinds:
    names = said if isinstance(said, list) else [said]
    lowered = frozenset(name.lower() for name in names if isinstance(name, str))  # Google writes `STRING`
    known = lowered & set(_NAMES.values())
    if not known or len(known) != len(lowered):
        return None
    return known | {"integer"} if "number" in known else known


def _of(values: Iterable[JSON]) -> Kinds:
    return frozenset(_NAMES.get(type(value), "string") for value in values)


def _target(root: JSON, reference: str) -> JSON:
    """Return the schema that a reference within `root` means (RFC 6901); `None` where there is none."""
    if not reference.startswith("#"):
        return None
    found = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    return found


def _branches(schema: JSON, root: JSON) -> Iterator[dict[str, JSON]]:
    """Yield the objects that constrain a value of `schema`: itself, and what it refers to."""
    waiting, steps = [schema], 0
    while waiting and steps < MOST_STEPS:
        steps += 1
        found = waiting.pop(0)
        if isinstance(found, dict):
            yield found
            if isinstance(reference := found.get("$ref"), str):
                waiting.append(_target(root, reference))
            for keyword in ("allOf", "anyOf", "oneOf"):
                if isinstance(options := found.get(keyword), list):
                    waiting += options


def _literal(value: str, *, loose: bool) -> tuple[str, str]:
    """Return the JSON that `value` is, and its type; two empty strings if it is none. `loose` takes Python's too."""
    if (number := _NUMBER.fullmatch(value)) is not None:
        return value, "number" if number["fraction"] else "integer"
    word = value.lower() if loose else value
    if word in (_OTHER_WORDS if loose else _WORDS):
        return _SPELT.get(word, word), _OTHER_WORDS[word]
    if value[:1] not in ("{", "[", '"', "(", "'") or not value:
        return "", ""
    found = value if _is_json(value) else _from_python(value) if loose else ""
    return found, {"{": "object", "[": "array", '"': "string"}[found[0]] if found else ""


def _number(text: str) -> str:
    """Return a number of Python's as JSON has it; what is none as it is."""
    found = _SIGNED.fullmatch(text)
    if found is None or not (found[2] or found[3]):
        return text
    return f"{found[1]}{found[2] or 0}" + (f".{found[3] or 0}" if "." in text else "")


def _unescaped(text: str) -> str:
    """Return what `text` is where it was escaped as for a JSON string, without the quotes of one."""
    try:
        inner = decode_json(f'"{text}"')
    except (WireError, UnicodeError):
        return ""
    return inner if isinstance(inner, str) else ""


def _is_json(text: str) -> bool:
    try:
        decode_json(text)
    except (WireError, UnicodeError):
        return False
    return True


def _from_python(text: str) -> str:
    """Return a literal of Python's as JSON, or the empty string: some models write lists and dicts as Python does."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        token = _PYTHON.match(text, at)
        if token is None:
            return ""
        parts.append(_as_json(token))
        at = token.end()
    made = "".join(parts)
    return made if _is_json(made) else ""


def _as_json(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "single":
            return '"' + _IN_SINGLE.sub(_requoted, token["single"]) + '"'
        case "word":
            return _PYTHON_WORDS.get(token[0], token[0])
        case "bracket":
            return "[" if token[0] == "(" else "]"
        case "trailing":
            return ""
        case _:
            return token[0]


def _requoted(found: re.Match[str]) -> str:
    if found["quote"]:
        return '\\"'
    return "'" if found["escaped"] == "'" else found[0]
