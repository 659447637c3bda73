"""Take from a vendor's OpenAPI document the schemas of what we write, without prose: one a line, sorted.

    python scripts/published_schemas.py openapi.json Response ... > tests/oracles/schemas/openai.json

The document may be JSON or, where PyYAML is installed, YAML. tests/oracles/schemas/README.md says where each is from.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PROSE = ("description", "example", "examples", "title", "deprecated", "summary")
NAMES = ("properties", "$defs", "mapping")
"""Keys of objects whose own keys are names, not keywords."""


def load(path: Path) -> Any:  # noqa: ANN401  a document is whatever it is
    """Return the schemas of an OpenAPI document."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.loads(text)["components"]["schemas"]
    import yaml  # noqa: PLC0415  needed for some documents alone

    return yaml.safe_load(text)["components"]["schemas"]


def bare(value: Any, *, named: bool = False) -> Any:  # noqa: ANN401
    """Return a schema without what is for people and vendors' extensions, and `nullable` as JSON Schema says it."""
    if isinstance(value, list):
        return [bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if named or not (key in PROSE or key.startswith("x-"))}
    nullable = not named and kept.pop("nullable", False)
    schema = {key: bare(item, named=key in NAMES and not named) for key, item in kept.items()}
    return {"anyOf": [schema, {"type": "null"}]} if nullable else schema


def references(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the names of the schemas that a schema refers to."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item.rpartition("/")[2]
            else:
                yield from references(item)


def closure(schemas: Any, names: list[str]) -> dict[str, Any]:  # noqa: ANN401
    """Return the schemas called `names`, and all that they refer to."""
    found: dict[str, Any] = {}
    while names:
        name = names.pop()
        if name not in found:
            found[name] = bare(schemas[name])
            names += references(found[name])
    return found


def main() -> None:
    """Write what the arguments name to standard output."""
    path, *names = sys.argv[1:]
    found = closure(load(Path(path)), names)
    lines = [f"{json.dumps(name)}: {json.dumps(found[name], separators=(',', ':'))}" for name in sorted(found)]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
