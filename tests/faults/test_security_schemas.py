"""Schemas that cost more than they say: each is refused or bounded, and the next request is answered (R52, C19)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import MODULES
from tests.faults.direct_exchange import handle
from tests.gateway.running_gateway import config_for
from xenoglot.gateway.app import Gateway

if TYPE_CHECKING:
    from xenoglot.engine.backend import Engine
    from xenoglot.model.json import JSON, JSONObject

SAID = [{"role": "user", "content": "Hi"}]


def nested(depth: int) -> JSONObject:
    """A schema of objects in objects."""
    schema: JSONObject = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def doubling(levels: int) -> JSONObject:
    """A schema whose alternatives double with each level that is looked at."""
    definitions: JSONObject = {f"d{levels}": {"type": "null"}}
    for level in range(levels):
        definitions[f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
    return {"$defs": definitions, "$ref": "#/$defs/d0"}


def string(pattern: str) -> JSONObject:
    """A schema of texts that fit a pattern."""
    return {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}, "required": ["a"]}


SCHEMAS: dict[str, JSON] = {
    "deep": nested(200),
    "wide": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}},
    "many-words": {"enum": [f"word-{n}" for n in range(200_000)]},
    "doubling": doubling(60),
    "itself": {"$ref": "#"},
    "in-a-ring": {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    "recursive": {"type": "array", "items": {"$ref": "#"}},
    "elsewhere": {"$ref": "http://127.0.0.1/schema.json"},
    "file": {"$ref": "file:///etc/passwd"},
    "nowhere": {"$ref": "#/$defs/none"},
    "long-text": {"type": "string", "minLength": 10**9, "maxLength": 10**12},
    "long-list": {"type": "array", "minItems": 10**9, "items": {"type": "null"}},
    "huge-number": {"type": "integer", "minimum": -(10**300), "maximum": 10**300},
    "regex-doubling": string("(a+)+$"),
    "regex-repeats": string("((((a{1000}){1000}){1000}){1000})"),
    "regex-deep": string("(" * 5000 + "a" + ")" * 5000),
    "regex-long": string("a" * 100_000),
    "regex-broken": string("(["),
    "no-schema": {"type": "nothing"},
    "grammar-in-a-name": {"type": "object", "properties": {'a" | root ::= "x': {"type": "null"}}},
}


@pytest.mark.parametrize("name", SCHEMAS)
async def test_r52_c19_a_schema_costs_its_own_request_and_no_other(engine: Engine, name: str) -> None:
    gateway = Gateway(config_for("own"), {"own": engine})
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMAS[name], "strict": True}}
    tool = {"type": "function", "function": {"name": "f", "parameters": SCHEMAS[name]}}
    body: JSONObject = {"model": "m", "messages": SAID, "max_tokens": 1}
    for more in ({"response_format": form}, {"tools": [tool], "tool_choice": "required"}):
        asked = await handle(gateway, "POST", "/v1/chat/completions", body | more)
        assert asked.status in {200, 400}, asked.json
        assert len(asked.body) < 5000
    assert (await handle(gateway, "POST", "/v1/chat/completions", body)).status == 200


def test_r52_what_is_remembered_by_arguments_is_bounded() -> None:
    found = []
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.args:
                written = [ast.unparse(one) for one in node.decorator_list]
                boundless = {"cache", "functools.cache", "lru_cache(maxsize=None)", "lru_cache(None)"} & set(written)
                found += [f"{module}.{node.name}" for _ in boundless]
    # Of these the arguments are names of dialects, providers and programs: another raises, and is not kept.
    rooms = (
        "xenoglot.providers.", "xenoglot.dialect_registry.", "xenoglot.programs.catalog.", "xenoglot.text.registry.",
        "xenoglot.gateway.console.inspection.field_names.",
    )  # fmt: skip
    assert [name for name in found if not name.startswith(rooms)] == []
