"""JSON Schema of a struct whose fields are a function's parameters, with support for pydantic models as types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

_REFERENCE: Final = "#/$defs/{name}"


def schema_of(struct: type[msgspec.Struct]) -> JSONObject:
    """Return the schema of `struct`, complete in itself.

    Raises:
        TypeError: one of its types has none.
    """
    found: JSONObject = {}

    def told(kind: type) -> JSONObject:
        schema = _own_schema(kind)
        found.update(schema.pop("$defs", {}))
        return schema

    (root,), components = msgspec.json.schema_components([struct], ref_template=_REFERENCE, schema_hook=told)
    schema = components.pop(root["$ref"].removeprefix(_REFERENCE.format(name="")))
    made: JSONObject = {"type": "object", "properties": schema.get("properties", {})}
    for name in ("required", "additionalProperties"):
        if name in schema:
            made[name] = schema[name]
    if definitions := {**found, **components}:
        made["$defs"] = definitions
    _without_titles(made)
    return made


def from_plain(kind: type, value: Any) -> Any:  # noqa: ANN401  whatever the type is
    """Return `value` as `kind`, a type that msgspec does not know: a model of pydantic's validates it itself.

    Raises:
        ValueError: it does not fit.
    """
    if isinstance(value, kind):
        return value
    try:
        model: Any = kind
        return model.model_validate(value)
    except Exception as error:
        tell = getattr(error, "errors", None)
        if not callable(tell):
            raise
        problems = [f"{'.'.join(str(step) for step in one['loc'])}: {one['msg']}" for one in tell()]
        raise ValueError("; ".join(problems)) from None


def _own_schema(kind: type) -> JSONObject:
    """Return the schema that a type provides, like pydantic's models."""
    if kind is object:
        return {}
    tell = getattr(kind, "model_json_schema", None)
    if not callable(tell):
        raise NotImplementedError
    schema: JSONObject = tell(ref_template="#/$defs/{model}")
    return schema


def _without_titles(schema: JSON) -> None:
    """Remove titles that only repeat names, because they cost tokens."""
    waiting: list[JSON] = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting += found
        elif isinstance(found, dict):
            if isinstance(found.get("title"), str):
                del found["title"]
            for key, value in found.items():
                waiting += value.values() if key in ("properties", "$defs") and isinstance(value, dict) else [value]
