"""Compiles JSON Schema to a grammar: all text that the grammar allows is valid JSON for the schema.

The form is `{"a": 1, "b": [2, 3]}`. The grammar may allow less than the schema: properties come in the order of the
schema, unbounded values get a limit (so that a model that repeats itself ends), and only properties that the schema
names are written, unless it names none. Keywords: https://json-schema.org/draft/2020-12/json-schema-validation and the
spellings of older drafts.

Constraints that a grammar cannot express are reported to `unheld`, which may reject them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from xenoglot.codec.invalid_request import refused
from xenoglot.engine.grammar.ambiguity import too_ambiguous
from xenoglot.engine.grammar.free_output import (
    ITEMS,
    STRING_LENGTH,
    character,
    free_text,
    free_value,
    series,
    written,
)
from xenoglot.engine.grammar.gbnf import MOST_REPEATED, GrammarTooLargeError, either, literal, repeat
from xenoglot.engine.grammar.keywords import (
    TYPES,
    bounds,
    interval,
    is_of,
    number,
    properties,
    required,
    schemas,
    text,
    types,
    wrong,
)
from xenoglot.engine.grammar.numbers import INTEGER, NUMBER
from xenoglot.engine.grammar.patterns import PatternError, fitted
from xenoglot.engine.grammar.references import constraints, followed, merged, resolve

if TYPE_CHECKING:
    from collections.abc import Generator

    from xenoglot.engine.grammar.gbnf import GrammarRules
    from xenoglot.engine.grammar.references import Unheld
    from xenoglot.model.json import JSON, JSONObject

DEEPEST: Final = 48
"""How deep a schema may be nested."""
LONGEST_NAME: Final = 60
"""Characters of a property's name in a path."""

SCALARS: Final = {"boolean": '("true" | "false")', "null": '"null"'}

ALIKE: Final = "too much of the schema begins alike for the embedded model: what to write has to be clear sooner"

UNHELD: Final = (
    "not",
    "if",
    "patternProperties",
    "propertyNames",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
)
"""Keywords that no grammar of a sensible size holds."""

FORMATS: Final = {
    "date": "^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$",
    "time": "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$",
    "date-time": "^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$",
    "email": r"^[a-z0-9][a-z0-9_-]{0,30}(\.[a-z0-9_-]{1,30}){0,3}@[a-z0-9]{1,30}(\.[a-z0-9]{1,30}){0,3}\.[a-z]{2,10}$",
    "ipv4": r"^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$",
    "uuid": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
}
"""Formats that are held, each as a pattern of texts that have it (not all that have it). Others are ignored, as
the standard allows."""


class SchemaGrammar:
    """Compiles one schema into `rules`. `path` is where it stands in the request, like `$.output.schema`."""

    def __init__(self, rules: GrammarRules, document: JSON, path: str, unheld: Unheld) -> None:
        self._rules = rules
        self._document = document
        self._path = path
        self._unheld = unheld
        self._named: dict[str, str] = {}
        self._entered: frozenset[str] = frozenset()  # references followed since the last bracket
        self._depth = 0
        self._branching = False  # with `anyOf` or a pattern: the rest is told apart by its first character

    def root(self) -> str:
        """Return the expression for the values that are valid.

        Raises:
            FailureError: the schema is wrong, or nothing is valid for it, or it is too large or too ambiguous.
        """
        try:
            root = self._value(self._document, self._path)
        except GrammarTooLargeError:
            raise refused(self._path, "the schema is too large for the embedded model") from None
        if self._branching and too_ambiguous(self._rules.bodies, root):
            raise refused(self._path, ALIKE)
        return root

    def _value(self, schema: JSON, path: str) -> str:
        if schema is True or schema == {}:
            return free_value(self._rules)
        if schema is False:
            raise refused(path, "nothing is valid for `false`")
        if not isinstance(schema, dict):
            wrong(path, schema, "a schema: an object or a boolean")
        self._depth += 1
        if self._depth > DEEPEST:
            raise refused(path, f"the schema is nested more than {DEEPEST} deep")
        expression = self._keywords(schema, path)
        self._depth -= 1
        return expression

    def _keywords(self, schema: JSONObject, path: str) -> str:
        if "$ref" in schema:
            return self._reference(schema, path)
        for keyword in UNHELD:
            if keyword in schema:
                self._unheld(f"{path}.{keyword}", keyword)
        if "allOf" in schema:
            return self._value(self._all_of(schema, path), path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._any_of(schema, keyword, path)
        if "enum" in schema or "const" in schema:
            return self._listed(schema, path)
        return self._rules.add(either(self._typed(schema, kind, path) for kind in types(schema, path)))

    def _reference(self, schema: JSONObject, path: str) -> str:
        """Return the rule of a reference; a recursive one finds its own name."""
        reference = schema["$ref"]
        target = resolve(self._document, reference, f"{path}.$ref")
        if others := constraints(schema, "$ref"):
            return self._value(
                merged(followed(self._document, target, path, self._unheld), others, path, self._unheld), path
            )
        if reference in self._entered:
            raise refused(f"{path}.$ref", "the schema refers to itself and to nothing else")
        if reference not in self._named:
            self._named[reference] = name = self._rules.reserve()
            before, self._entered = self._entered, self._entered | {reference}
            self._rules.define(name, self._value(target, path))
            self._entered = before
        return self._named[reference]

    def _all_of(self, schema: JSONObject, path: str) -> JSON:
        whole: JSON = {key: value for key, value in schema.items() if key != "allOf"}
        for index, part in enumerate(schemas(schema, "allOf", path)):
            where = f"{path}.allOf[{index}]"
            whole = merged(whole, followed(self._document, part, where, self._unheld), where, self._unheld)
        return whole

    def _any_of(self, schema: JSONObject, keyword: str, path: str) -> str:
        self._branching = True
        others = constraints(schema, keyword)
        branches = []
        for index, part in enumerate(schemas(schema, keyword, path)):
            where = f"{path}.{keyword}[{index}]"
            if others:
                part = merged(others, followed(self._document, part, where, self._unheld), where, self._unheld)  # noqa: PLW2901
            branches.append(self._value(part, where))
        return self._rules.add(either(branches))

    def _listed(self, schema: JSONObject, path: str) -> str:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        if not isinstance(values, list):
            wrong(f"{path}.enum", values, "a list")
        kinds = types(schema, path) if "type" in schema else TYPES
        fitting = [value for value in values if any(is_of(value, kind) for kind in kinds)]
        if not fitting:
            raise refused(path, "nothing is valid for it: `enum` or `const` has no value of the right type")
        return self._rules.add(either(literal(written(value)) for value in fitting))

    def _typed(self, schema: JSONObject, kind: str, path: str) -> str:
        match kind:
            case "object":
                with self._inside():
                    return self._object(schema, path)
            case "array":
                with self._inside():
                    return self._array(schema, path)
            case "string":
                return self._string(schema, path)
            case "integer" | "number":
                return self._number(schema, path, whole=kind == "integer")
            case _:
                return SCALARS[kind] if kind in SCALARS else free_value(self._rules)

    @contextmanager
    def _inside(self) -> Generator[None]:
        """After a bracket a schema may refer to itself."""
        before, self._entered = self._entered, frozenset()
        yield
        self._entered = before

    def _string(self, schema: JSONObject, path: str) -> str:
        least, most = bounds(schema, "minLength", "maxLength", path)
        pattern = text(schema, "pattern", path) or FORMATS.get(text(schema, "format", path) or "")
        if pattern is not None:
            if matched := self._matched(pattern, least, most, path):
                return f'"\\"" {matched} "\\""'
            self._unheld(f"{path}.pattern", "pattern")
        longest = min(max(STRING_LENGTH, least) if most is None else most, MOST_REPEATED)
        if least > longest:
            wrong(f"{path}.minLength", least, f"at most {longest}")
        if (least, longest) == (0, STRING_LENGTH):
            return free_text(self._rules)
        return f'"\\"" {repeat(character(self._rules), least, longest)} "\\""'

    def _matched(self, pattern: str, least: int, most: int | None, path: str) -> str | None:
        self._branching = True
        try:
            matched = fitted(pattern, least, most)
        except PatternError as error:
            raise refused(f"{path}.pattern", f"the embedded model cannot keep to it: {error}") from None
        return None if matched is None else matched.text

    def _number(self, schema: JSONObject, path: str, *, whole: bool) -> str:
        allowed = interval(schema, path)
        unit = number(schema, "multipleOf", path)
        if unit is not None and unit <= 0:
            wrong(f"{path}.multipleOf", schema["multipleOf"], "more than 0")
        if unit is not None and (unit >= 1 or not whole):
            if multiples := allowed.multiples(unit):
                return multiples
            self._unheld(f"{path}.multipleOf", "multipleOf")
        if allowed.endless:
            return f"({INTEGER if whole else NUMBER})"
        found = allowed.integers() if whole else allowed.numbers()
        if found is None:
            raise refused(path, "no number is valid for it: its bounds exclude all")
        return found

    def _array(self, schema: JSONObject, path: str) -> str:
        least, most = bounds(schema, "minItems", "maxItems", path)
        if "uniqueItems" in schema and schema["uniqueItems"] is True and most != 1:
            self._unheld(f"{path}.uniqueItems", "uniqueItems")
        first, items = schema.get("prefixItems", []), schema.get("items", True)
        if isinstance(items, list):  # drafts before 2020-12
            first, items = items, schema.get("additionalItems", True)
        if not isinstance(first, list):
            wrong(f"{path}.prefixItems", first, "a list of schemas")
        longest = min(max(ITEMS, least, len(first)) if most is None else most, MOST_REPEATED)
        longest = min(longest, len(first)) if items is False else longest
        if least > longest:
            wrong(f"{path}.minItems", least, f"at most {longest}")
        heads = [self._value(head, f"{path}.prefixItems[{index}]") for index, head in enumerate(first[:longest])]
        item = self._value(items, f"{path}.items") if longest > len(heads) else '""'
        return f'"[" {series(heads, item, least, longest)} "]"'

    def _object(self, schema: JSONObject, path: str) -> str:
        named, needed = properties(schema, path), required(schema, path)
        additional = schema.get(
            "additionalProperties", "properties" not in schema
        )  # none is asked for, none is written
        least, most = bounds(schema, "minProperties", "maxProperties", path)
        missing = [name for name in needed if name not in named]
        if missing and "additionalProperties" in schema and additional is False:
            raise refused(f"{path}.required", f"`{missing[0][:LONGEST_NAME]}` is required, but may not be there")
        if not named and not missing and additional is not False:
            longest = min(max(ITEMS, least) if most is None else most, MOST_REPEATED)
            value = self._value(additional, f"{path}.additionalProperties")
            member = self._rules.add(f'{free_text(self._rules)} ": " {value}')
            return f'"{{" {series([], member, least, longest)} "}}"'
        named |= dict.fromkeys(missing, True if additional is False else additional)
        optional = [name for name in named if name not in needed]
        needed += optional[: max(0, least - len(needed))]
        if len(needed) < least or (most is not None and len(needed) > most):
            wrong(path, [least, most], f"`minProperties` and `maxProperties` that {len(named)} properties can fulfil")
        room = len(optional) if most is None else most - len(needed)
        kept = {*needed, *[name for name in optional if name not in needed][:room]}
        return self._members({name: value for name, value in named.items() if name in kept}, frozenset(needed), path)

    def _members(self, named: JSONObject, needed: frozenset[str], path: str) -> str:
        """Return the expression for properties in their order: two chains of rules, before the first one and after."""
        first = after = '"}"'
        for name in reversed(named):
            value = self._value(named[name], f"{path}.properties.{name[:LONGEST_NAME]}")
            member = f"{literal(written(name) + ': ')} {value}"
            follower = self._rules.add(after)
            starting, going_on = f"{member} {follower}", f'", " {member} {follower}'
            if name not in needed:
                starting, going_on = either((starting, first)), either((going_on, follower))
            first, after = self._rules.add(starting), going_on
        return f'"{{" {first}'
