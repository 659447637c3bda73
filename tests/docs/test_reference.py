"""The reference pages that are generated from the code are whole."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import jsonschema_rs

import xenoglot
from scripts import docs_reference
from tests.docs.pages import ROOT, blocks
from xenoglot.cli import command_parser

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_every_command_has_its_section() -> None:
    text = docs_reference.cli_page()
    commands = next(action.choices for action in command_parser()._actions if isinstance(action.choices, dict))
    assert [name for name in commands if f"\n### `xenoglot {name}`\n" not in text] == []
    assert "`--upstream URL`" in text
    assert [
        line for line in text.splitlines() if line.startswith("|") and len(re.findall(r"(?<!\\)\|", line)) != 3
    ] == []


def test_the_schema_takes_the_examples_of_the_page() -> None:
    pages = [
        ROOT / "docs" / name for name in ("configuration.md", "gateway.md", "limits.md", "providers.md", "routing.md")
    ]
    found = [
        block for page in pages for block in blocks(page) if block.language == "toml" and "[upstreams" in block.text
    ]
    validator = jsonschema_rs.validator_for(docs_reference.schema())
    assert {block.page for block in found} > {pages[0]}
    errors = [(block.place, str(error)) for block in found for error in validator.iter_errors(_json(block.text))]
    assert errors == []
    assert not validator.is_valid({"server": {"port": 70000}})


def _json(text: str) -> object:
    return tomllib.loads(text.replace("= inf", "= 1e9"))


def test_every_table_of_the_configuration_has_its_section() -> None:
    text = docs_reference.schema_page()
    assert {"`[server]`", "`[upstreams.NAME]`", "`[models[]]`"} <= set(re.findall(r"^## (.+)$", text, re.MULTILINE))
    assert "| `port` | integer (≥ 0, ≤ 65535) | `8080` |" in text


def settings() -> set[str]:
    """Paths of all settings, without the names of upstreams, models and tenants."""
    whole = docs_reference.schema()

    def below(schema: dict[str, Any], path: str) -> Iterator[str]:
        if "$ref" in schema:
            schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
        for name, inner in schema.get("properties", {}).items():
            yield f"{path}{name}"
            yield from below(inner, f"{path}{name}.")
        for inner in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
            if isinstance(inner, dict):
                yield from below(inner, path)

    return set(below(whole, ""))


def test_each_flag_of_serve_is_a_setting_and_on_the_page() -> None:
    known, page = settings(), (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    table = re.search(r"\| flag \| as in the file \|\n\|---\|---\|\n((?:\|.*\n)+)", page)
    assert table
    rows = [line.strip("| ").split(" | ") for line in table[1].splitlines()]
    listed = {flag: words for flags, words in rows for flag in re.findall(r"`(--[a-z-]+)", flags)}
    commands = next(action.choices for action in command_parser()._actions if isinstance(action.choices, dict))
    flags = {flag for action in commands["serve"]._actions for flag in action.option_strings if flag.startswith("--")}
    assert flags - listed.keys() == {"--help", "--config", "--print-config"}
    assert listed.keys() <= flags
    scopes = ("", "upstreams.", "models.")
    wrong = [
        flag
        for flag, words in listed.items()
        if not words.startswith("- ")  # no setting stands for the flag
        and not any(f"{scope}{name}" in known for name in re.findall(r"`([a-z_.]+)", words) for scope in scopes)
    ]
    assert wrong == []


def test_every_endpoint_is_listed() -> None:
    text = docs_reference.http_page()
    for row in (
        "| POST | `/v1/messages` | key |",
        "| GET | `/metrics` | admin |",
        "| GET | `/admin/v1/usage` | view |",
    ):
        assert f"\n{row} " in text


def test_every_public_name_is_on_the_page_of_python() -> None:
    text = docs_reference.python_page()
    shown = [path.rpartition(".")[2] for path in docs_reference.DIRECTIVE.findall(text)]
    assert sorted(shown) == sorted(set(xenoglot.__all__) - {"__version__"})


def test_readers_of_markdown_get_signatures_and_docstrings() -> None:
    text = docs_reference.plain(
        "## Names\n\n::: xenoglot.errors.LossError\n    options: { heading_level: 3 }\n\n## More\n"
    )
    assert text.startswith("## Names\n\n### LossError\n\n")
    assert text.endswith("\n## More\n")
    assert "options:" not in text
