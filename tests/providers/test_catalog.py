"""The rows can be used, cite what they say, and stand nowhere else; those of others are checked."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.architecture.tree import SOURCES, place
from xenoglot.codec.target import Target
from xenoglot.errors import ConfigurationError
from xenoglot.providers import catalog, list_command
from xenoglot.providers.provider import Provider, ProviderEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERE = ProviderEndpoint(dialect="chat", base_url="http://127.0.0.1/v1")
ROW = Provider(name="mine", title="Mine", docs="https://mine.example/docs", faces=(HERE,))
SPOKEN = {"gemini", "ollama"}
"""Names that are those of dialects, too."""
FAMILIES = {"openai", "mistral", "xai"}
"""Names that are those of formats, too: of models' text, of sealed thoughts, and of what dialects share."""
WORDS = {"anthropic", "azure", "together", "vertex"}
"""Names that are words, extras, or other names of a dialect, too."""


@pytest.mark.parametrize("name", catalog.names())
def test_a_row_is_called_as_its_file(name: str) -> None:
    assert catalog.get(name).name == name


def facts(row: Provider) -> Iterator[str]:
    """What a row says that somebody must have told us."""
    yield from ("key_env",) if row.key_env else ()
    yield from ("auth",) if row.auth else ()
    yield from ("sign_in",) if row.sign_in else ()
    yield from ("gauges",) if row.gauges else ()
    yield from (f"quirks.{name}" for name in row.quirks)
    yield from (f"settings.{name}" for name in row.settings)
    yield from ("models",) if row.models else ()
    for face in row.faces:
        yield f"faces.{face.dialect}"
        yield from (f"faces.{face.dialect}.quirks.{name}" for name in face.quirks)


@pytest.mark.parametrize("name", catalog.names())
def test_every_fact_is_cited(name: str) -> None:
    row = catalog.get(name)
    cited = {fact for fact in row.sources if not fact.startswith("models.")}
    assert sorted(cited) == sorted(facts(row))
    assert [url for url in (row.docs, *row.sources.values()) if not re.fullmatch(r"https://[!-~]+", url)] == []


@pytest.mark.parametrize("name", catalog.names())
def test_a_quirk_is_none_that_holds_anyhow(name: str) -> None:
    row, usual = catalog.get(name), Target()
    made = catalog.target_of(row.quirks)
    assert [field for field in row.quirks if getattr(made, field) == getattr(usual, field)] == []


def test_each_provider_has_its_line() -> None:
    assert [line.split()[0] for line in list_command.lines()] == list(catalog.names())


def words_in(node: ast.AST) -> Iterator[str]:
    """The words of one node of the code that may name somebody."""
    match node:
        case ast.Constant(value=str(text)):
            yield text.lower()
        case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name.lower()
        case _:
            pass


def named(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not {*catalog.names()}.isdisjoint(words := {*words_in(node)}):
            yield from (f"{place(path, node)} {word}" for word in sorted(words))  # type: ignore[arg-type]


def test_no_code_knows_a_provider_by_name() -> None:
    """Facts about a provider stand in its row, facts about a family of models in its own."""
    known = SPOKEN | FAMILIES | WORDS
    elsewhere = [path for path in SOURCES if not {"providers", "rows", "sdk", "sign_in"} & {*path.parts}]
    found = [line for path in elsewhere for line in named(path)]
    assert [line for line in found if line.rpartition(" ")[2] not in known] == []


PROBLEMS = [
    pytest.param(replace(ROW, name="Mine!"), "`name`: found `Mine!`", id="name"),
    pytest.param(replace(ROW, faces=()), "`faces`: required, at least one", id="no-face"),
    pytest.param(
        replace(ROW, faces=(replace(HERE, dialect="klingon"),)), "there is no dialect `klingon`", id="dialect"
    ),
    pytest.param(
        replace(ROW, faces=(replace(HERE, base_url="https://{host}/v1"),)), "`{host}` in `base_url`", id="no-setting"
    ),
    pytest.param(
        replace(ROW, faces=(ProviderEndpoint(dialect="gemini", base_url="http://h", path="/x"),)),
        "paths of gemini",
        id="path",
    ),
    pytest.param(replace(ROW, quirks={"fan_outt": True}), "`quirks.fan_outt` is unknown; did you mean", id="quirk"),
    pytest.param(replace(ROW, quirks={"fan_out": 1}), "Expected `bool`, got `int`", id="a-quirk-of-another-type"),
    pytest.param(replace(ROW, text_syntax="no"), "there is no text syntax `no`", id="text-syntax"),
]


@pytest.mark.parametrize(("row", "problem"), PROBLEMS)
def test_a_row_that_cannot_be_used(row: Provider, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        catalog.checked(row, "the row")
    assert str(caught.value).startswith("the row: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("name = ", "is not TOML", id="no-toml"),
        pytest.param('name = "x"\ntitle = "X"\ndocs = ""\n', "missing required field `faces`", id="incomplete"),
        pytest.param('nam = "x"\n', "unknown field `nam`", id="misspelt"),
    ],
)
def test_a_text_that_is_no_row(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        catalog.read(text, "the row")


class Entry:
    """An entry point, as a package has one."""

    package = None
    value = "theirs:ROW"

    def __init__(self, name: str, row: object) -> None:
        self.name = name
        self._row = row

    def load(self) -> object:
        """Give the row, or fail."""
        if isinstance(self._row, Exception):
            raise self._row
        return self._row


BROUGHT = [
    pytest.param(Entry("groq", ROW), "there is a provider `groq` already; the row needs another name", id="taken"),
    pytest.param(Entry("mine", 1), "is a `int`; expected a `Provider`", id="no-row"),
    pytest.param(Entry("other", ROW), "calls itself `mine`; expected `other`", id="another-name"),
    pytest.param(Entry("mine", ImportError("no module")), "cannot be loaded: no module", id="broken"),
    pytest.param(Entry("mine", replace(ROW, faces=())), "`faces`: required", id="unusable"),
]


def bring(monkeypatch: pytest.MonkeyPatch, entry: Entry) -> None:
    monkeypatch.setattr(catalog, "_entries", lambda: {entry.name: entry})
    monkeypatch.setattr(catalog, "get", catalog.get.__wrapped__)


def test_a_row_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    bring(monkeypatch, Entry("mine", ROW))
    assert catalog.get("mine") == ROW


@pytest.mark.parametrize(("entry", "problem"), BROUGHT)
def test_a_row_of_another_package_that_cannot_be_used(
    entry: Entry, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(monkeypatch, entry)
    with pytest.raises(ConfigurationError) as caught:
        catalog.get(entry.name)
    assert str(caught.value).startswith(f"the entry point `{entry.name}` (`theirs:ROW`)")
    assert problem in str(caught.value)


def test_a_name_that_is_none() -> None:
    with pytest.raises(ConfigurationError, match="there is no provider `grok`; did you mean `groq`"):
        catalog.get("grok")
