"""The reference pages that are generated from the code: commands, configuration, endpoints, Python."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

import xenoglot
import xenoglot.testing
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO
from xenoglot import cli
from xenoglot.backends.scripted import Scripted
from xenoglot.command_help import EXAMPLES, HelpFormatter, commands_of, metavar, sections
from xenoglot.gateway.admin.openapi import ACCESS, openapi_document
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from xenoglot.command_help import CommandParser

# -- commands


def cli_page() -> str:
    """Return the page of all commands, from the parser."""
    intro = (
        "Look up every command and flag here. The page is generated from the program; `xenoglot COMMAND --help` prints "
        "the same."
    )
    parts = ["# Commands and flags", "", intro, "", *_command(cli.command_parser(), 2)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _command(parser: CommandParser, level: int) -> Iterator[str]:
    """Yield the lines of a command, then those of its own commands."""
    formatter = HelpFormatter(parser.prog)
    yield from (f"{'#' * level} `{parser.prog}`", "")
    if parser.description:
        yield from (_cell(parser.description), "")
    yield from ("```text", parser.short_usage(), "```", "")
    if examples := EXAMPLES.get(parser.command):
        yield from ("Examples:", "", "```sh", *examples, "```", "")
    for title, _, actions in sections(parser):
        rows = [_row(action, formatter) for action in actions if not isinstance(action, argparse._HelpAction)]  # noqa: SLF001
        if rows:
            yield from (f"| {title or 'options'} | |", "|---|---|", *rows, "")
    if (commands := commands_of(parser)) is not None:
        for child in dict.fromkeys((commands.choices or {}).values()):
            yield from _command(child, min(level + 1, 4))


def _row(action: argparse.Action, formatter: HelpFormatter) -> str:
    about = _cell(formatter.expanded_help(action))
    value = "" if action.nargs == 0 else metavar(action)
    choices = [f"`{choice}`" for choice in action.choices or ()] if action.option_strings else []
    if choices:
        about += f"; one of {', '.join(choices)}"
    names = ", ".join(f"`{name}{' ' + value if value else ''}`" for name in action.option_strings)
    return f"| {names or f'`{value}`'} | {about} |"


def _cell(text: str) -> str:
    """Return text for the cell of a table."""
    text = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"<(?=[a-zA-Z/])", "&lt;", text) if "`" not in text else text


# -- configuration


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the configuration file, made from the structs that read it."""
    made = msgspec.json.schema(load._File)  # noqa: SLF001  the struct that the file is read into
    upstream = made["$defs"]["UpstreamSettings"]
    upstream["required"] = []  # a provider may specify them
    endpoints = upstream["properties"]["also"]
    endpoints["items"] = {"anyOf": [{"type": "string"}, endpoints["items"]]}  # the name of a dialect is enough
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "xenoglot.toml"} | made


def schema_page() -> str:
    """Return the page of the tables of the configuration: keys, types, bounds, defaults."""
    made = schema()
    tables = dict(_tables(made, "_File", ""))
    lines = [
        "# Configuration schema",
        "",
        "Look up the type, bounds and default of a key here. The page is generated from the code that reads the file;",
        "[configuration](../docs/configuration.md) explains the keys. Editors with support for TOML schemas can use",
        "[the JSON Schema](configuration.schema.json).",
        "",
    ]
    for path, name in tables.items():
        struct = made["$defs"][name]
        lines += [f"## `{path or 'top level'}`", ""]
        lines += ["| key | type | default |", "|---|---|---|"]
        required = struct.get("required", [])
        for key, field in struct["properties"].items():
            default = "required" if key in required else _default(field.get("default"))
            lines.append(f"| `{key}` | {_type(field, made)} | {default} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _tables(made: Mapping[str, Any], name: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each table with the name of its struct, from the top."""
    yield path and f"[{path}]", name
    for key, field in made["$defs"][name]["properties"].items():
        for child, mark in _children(field):
            if child not in path.split("."):
                yield from _tables(made, child, ".".join(filter(None, (path, key + mark))))


def _children(field: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for form in field.get("anyOf", [field]):
        if "$ref" in form:
            yield form["$ref"].rpartition("/")[2], ""
        elif isinstance(items := form.get("items"), dict):
            yield from ((child, "[]") for child, _ in _children(items))
        elif isinstance(more := form.get("additionalProperties"), dict) and "$ref" in more:
            yield more["$ref"].rpartition("/")[2], ".NAME"


def _type(field: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    forms = [form for form in field.get("anyOf", [field]) if form.get("type") != "null"]
    return _cell(" or ".join(dict.fromkeys(_one_type(form, made) for form in forms)))


def _one_type(form: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    if "enum" in form:
        return ", ".join(f"`{json.dumps(word)}`" for word in form["enum"])
    if "$ref" in form or form.get("type") == "object":
        return "table"
    if form.get("type") == "array":
        items = form.get("items") or {}
        if "anyOf" in items:
            return f"list of {_type(items, made)}"
        return f"list of {_one_type(items, made)}s" if isinstance(items, dict) and items else "list"
    low, high = form.get("minimum", form.get("exclusiveMinimum")), form.get("maximum")
    more = ">" if "exclusiveMinimum" in form else "≥"
    bounds = ", ".join(([f"{more} {low}"] if low is not None else []) + ([f"≤ {high}"] if high is not None else []))
    return f"{form.get('type', 'any')}{f' ({bounds})' if bounds else ''}"


def _default(value: object) -> str:
    if value is None:
        return "not set"
    return "a table with the defaults below" if isinstance(value, dict) and value else f"`{json.dumps(value)}`"


# -- endpoints


def http_page() -> str:
    """Return the page of the endpoints, from the OpenAPI document of the gateway."""
    found = openapi()
    lines = [
        "# HTTP endpoints",
        "",
        "Look up which paths the gateway serves. The page is generated from the OpenAPI document that each gateway",
        "serves at `/openapi.json`. [The gateway](../docs/gateway.md) explains headers, errors and streams,",
        "[the dialects](../docs/dialects/README.md) explain the bodies, and [the admin API](../docs/admin-api.md)",
        "explains administration.",
        "",
        "| access | meaning |",
        "|---|---|",
        *(f"| {policy} | {meaning} |" for policy, meaning in ACCESS.items()),
        "",
    ]
    for tag in found["tags"]:
        own = [one for one in operations(found) if tag["name"] in one[2]["tags"]]
        title = tag["name"].capitalize() if tag["name"] in ("gateway", "administration") else f"Dialect `{tag['name']}`"
        lines += [f"## {title}", "", "| method | path | access | summary |", "|---|---|---|---|"]
        lines += [f"| {method} | `{path}` | {one['x-access']} | {_cell(one['summary'])} |" for method, path, one in own]
        lines.append("")
        if tag["name"] == "administration":
            lines += [line for one in own for line in _parameters(*one)]
    return "\n".join(lines).rstrip("\n") + "\n"


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document of a gateway."""
    gateway = Gateway(config_for("scripted"), {"scripted": Scripted(HELLO)})
    return openapi_document(gateway.routes.endpoints, gateway.admin_routes())


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the method, the path and the description of each operation."""
    for path, methods in document["paths"].items():
        for method, one in sorted(methods.items()):
            yield method.upper(), path, one


def _parameters(method: str, path: str, one: Any) -> Iterator[str]:  # noqa: ANN401  a part of the document
    """Yield the lines about the query of an operation."""
    found = [parameter for parameter in one["parameters"] if parameter["in"] == "query"]
    if not found:
        return
    yield from (f"### `{method} {path}`", "", "| parameter | type | default |", "|---|---|---|")
    for parameter in found:
        schema = parameter["schema"]
        kinds = [kind.get("type") for kind in schema.get("anyOf", [schema])]
        words = ", ".join(f"`{word}`" for word in schema["enum"]) if "enum" in schema else None
        default = schema.get("default")
        told = "" if default is None else f"`{json.dumps(default)}`"
        yield f"| `{parameter['name']}` | {words or ' or '.join(kind for kind in kinds if kind != 'null')} | {told} |"
    yield ""


# -- Python

DIRECTIVE = re.compile(r"^::: (?P<name>[\w.]+)\n(?:(?: {4}.*)?\n)*", re.MULTILINE)

GROUPS: dict[str, tuple[str, ...]] = {
    "Clients": ("Client", "AsyncClient", "configured"),
    "Replies": ("Reply", "ReplyStream", "AsyncReplyStream", "Parsed", "EmbeddingReply", "Usage"),
    "Tools and the tool loop": ("tool", "RunResult", "Budget", "Compaction", "ToolContext", "ToolOutput", "mcp_tools"),
    "Translation": ("translate", "translate_request", "translate_response", "stream_translator", "Loss", "Losses"),
    "Serving": ("serve",),
}
"""The first names of the page, by subject; the others follow."""
NOT_SHOWN = ("__version__",)


def python_page() -> str:
    """Return the page of `xenoglot`, as directives of mkdocstrings."""
    shown = {name for names in GROUPS.values() for name in names} | set(NOT_SHOWN)
    rest = [name for name in xenoglot.__all__ if name not in shown]
    errors = tuple(name for name in rest if name.endswith("Error"))
    groups = GROUPS | {"Errors": errors, "Values": tuple(name for name in rest if name not in errors)}
    about = "Look up every public class and function of `xenoglot`. [The client](../docs/client.md) has examples."
    return _python("Python: client and tools", about, xenoglot, groups)


def testing_page() -> str:
    """Return the page of `xenoglot.testing`."""
    about = "Look up every public class and function of `xenoglot.testing`. [Testing](../docs/testing.md) has examples."
    return _python("Python: testing", about, xenoglot.testing, {"Names": tuple(xenoglot.testing.__all__)})


def _python(title: str, about: str, module: Any, groups: Mapping[str, tuple[str, ...]]) -> str:  # noqa: ANN401  a module
    lines = [f"# {title}", "", about, ""]
    for group, names in groups.items():
        lines += [f"## {group}", ""]
        lines += [f"::: {_origin(module, name)}\n    options: {{ heading_level: 3 }}\n" for name in names]
    return "\n".join(lines)


def _origin(module: Any, name: str) -> str:  # noqa: ANN401  a module
    """Return where a name is defined."""
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{module.__name__}.{name}"


def plain(text: str) -> str:
    """Return a page for readers of Markdown: signatures and docstrings in place of mkdocstrings' directives."""
    return DIRECTIVE.sub(lambda found: _described(found["name"]), text)


def _described(path: str) -> str:
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    parts = [_text(name, value, "###")]
    if inspect.isclass(value):
        methods = inspect.getmembers(value, inspect.isfunction)
        parts += [_text(method, member, "####") for method, member in methods if not method.startswith("_")]
    return "\n".join(parts) + "\n"


def _text(name: str, value: Any, mark: str) -> str:  # noqa: ANN401  any object
    try:
        signature = f"```python\n{name}{inspect.signature(value)}\n```\n\n" if callable(value) else ""
    except (NameError, ValueError):  # of a type that only the type checker imports, or a value without a signature
        signature = ""
    doc = inspect.getdoc(value) if callable(value) else None
    return f"{mark} {name}\n\n{signature}{textwrap.dedent(doc or '')}\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "configuration-schema.md": schema_page,
    "http.md": http_page,
    "python.md": python_page,
    "python-testing.md": testing_page,
}
"""The pages, by their names under `reference/`."""
FILES: dict[str, Callable[[], str]] = {
    "configuration.schema.json": lambda: json.dumps(schema(), indent=2) + "\n",
    "openapi.json": lambda: json.dumps(openapi(), indent=2) + "\n",
}
"""Files beside them."""
