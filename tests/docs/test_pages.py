"""The pages of the project hold together: links lead somewhere, code can be read, every page looks alike."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks, broken, examples, links, prose
from xenoglot.gateway.config.load import check

READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "python": lambda text: compile(text, "example", "exec"),
    "toml": tomllib.loads,
}
MARKS = {("python", "run"), ("sh", "run"), ("sh", "run on"), ("json", "output"), ("text", "output")}

MERGE_MARKS = ("<<<<<<<", ">>>>>>>", "|||||||")
"""What a merge leaves where two versions of a page differ."""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def fault(block: Block) -> str | None:
    """What is wrong with a code block."""
    if not block.closed:
        return f"{block.place}: the block is not closed"
    if not block.language:
        return f"{block.place}: the block names no language (`text` for none)"
    if block.mark and (block.language, block.mark) not in MARKS:
        return f"{block.place}: `{block.language} {block.mark}` is none of {sorted(MARKS)}"
    try:
        READERS.get(block.language, str)(block.text)
    except (SyntaxError, ValueError) as error:
        return f"{block.place}: not {block.language}: {error}"
    return None


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in links(page) if broken(page, link)] == []


@every_page
def test_code_can_be_read(page: Path) -> None:
    assert [fault(block) for block in blocks(page) if fault(block)] == []


@every_page
def test_pages_look_alike(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert text.startswith("# ")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert [line for line in prose(page).splitlines() if line.startswith("# ")] == lines[:1]
    assert [number for number, line in enumerate(lines, 1) if line != line.rstrip() or "\t" in line] == []
    assert [number for number, line in enumerate(lines, 1) if line.startswith(MERGE_MARKS)] == []


def test_the_tests_of_the_pages_see_a_fault(tmp_path: Path) -> None:
    page = ROOT / "docs" / "imagined.md"
    faults = [
        Block(page, 1, "json", "", "{", closed=True),
        Block(page, 1, "python", "", "def", closed=True),
        Block(page, 1, "python", "ran", "", closed=True),
        Block(page, 1, "", "", "", closed=True),
        Block(page, 1, "text", "", "", closed=False),
    ]
    assert [block for block in faults if fault(block) is None] == []
    written = tmp_path / "page.md"
    written.write_text("# A page\n\n[a](nowhere.md) [b](#a-page) [c](#none) `[d](code.md)`\n", encoding="utf-8")
    assert [link for link in links(written) if broken(written, link)] == ["nowhere.md", "#none"]


def test_examples_are_found_with_their_output(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n```sh run\necho 1\n```\n\n```text output\n1\n```\n\n"
        "```python run\nx = 1\n```\n\n````text\n```sh run\nmake\n```\n````\n",
        encoding="utf-8",
    )
    found = [(example.block.line, example.block.text, example.output) for example in examples(page)]
    assert found == [(4, "echo 1\n", "1\n"), (12, "x = 1\n", None)]


ENVIRON = {"AWS_BEARER_TOKEN_BEDROCK": "k", "AZURE_OPENAI_API_KEY": "k", "GOOGLE_CLOUD_PROJECT": "p"}


@pytest.mark.parametrize("name", ["azure", "bedrock", "vertex"])
def test_the_configurations_of_clouds_are_accepted(name: str) -> None:
    """They are no examples that run: there is no such cloud here."""
    texts = [block.text for block in blocks(ROOT / "docs" / f"{name}.md") if block.language == "toml"]
    found = [check(tomllib.loads(text), ENVIRON, name).upstreams for text in texts if "[upstreams." in text]
    assert found
    assert all(found)
