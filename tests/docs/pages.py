"""The pages of the project as the tests of the documentation see them: their code blocks, links and headings.

A block that is run says so after its language, where no reader of the page is disturbed; the block right after it,
if it is marked as output, is what it has to print, with `...` for what may differ:

    ```python run
    print("hello")
    ```

    ```text output
    hello
    ```

A block with `run on` continues the one before it, as at a terminal: both are one script, with one output.

A `python` block is a program of its own; an `sh` block is a script for bash, which stops at the first failure. Both
find `xenoglot` on the path, a gateway at http://127.0.0.1:8080 as the page says, and a model server at
http://127.0.0.1:8000 (other ports are put in their places). The programs in `tests/docs/programs` stand in for those
that users have, such as `claude`.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<text>.*?)(?P<end>^(?P=indent)(?P=fence)$|\Z)",
    re.MULTILINE | re.DOTALL,
)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?(?P<target>[^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(?P<reference>\S+)", re.MULTILINE)
Rows = list[list[str]]

CONTINUED = "run on"
"""The mark of a block that continues the one that is run before it, in the same shell."""

RUN = ("run", CONTINUED)

UNSET = "-"
"""What a table has in an empty cell."""

HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced code block; `line` is the number of its first line of code, `mark` what follows the language."""

    page: Path
    line: int
    language: str
    mark: str
    text: str
    closed: bool

    @property
    def place(self) -> str:
        """Where the block stands, as editors and terminals link it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


class Example(NamedTuple):
    """A block that is run, and the text it has to print; None where the page does not show it."""

    block: Block
    output: str | None


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, _, mark = match["info"].strip().partition(" ")
        code = re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        line = text.count("\n", 0, match.start("text")) + 1
        found.append(Block(page, line, language, mark.strip(), code, bool(match["end"])))
    return found


def examples(page: Path) -> Iterator[Example]:
    """The blocks of a page that are run, each with the output that the page promises."""
    whole: Example | None = None
    for block, following in zip_longest(found := blocks(page), found[1:]):
        if block.mark not in RUN:
            continue
        output = following.text if following and following.mark == "output" else None
        if block.mark == CONTINUED and whole is not None:
            joined = whole.block._replace(text=f"{whole.block.text}\n{block.text}")
            whole = Example(joined, "".join(text for text in (whole.output, output) if text) or None)
            continue
        if whole is not None:
            yield whole
        whole = Example(block, output)
    if whole is not None:
        yield whole


def prose(page: Path) -> str:
    """The text of a page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """The targets of a page's links, those of reference links included."""
    return links_in(page.read_text(encoding="utf-8"))


def links_in(text: str) -> list[str]:
    """The targets of the links in the text of a page."""
    return [match["target"] or match["reference"] for match in LINK.finditer(CODE.sub("", FENCE.sub("", text)))]


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked, made as GitHub makes them."""
    found: dict[str, int] = {}
    names = set()
    for match in HEADING.finditer(prose(page)):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match["text"]).lower()).replace(" ", "-")
        names.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return names


def table(page: str, heading: str) -> Rows:
    """The cells of the first table under a heading of a page in `docs`, without its head."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"{page} has no heading `{heading}`"
    found = re.search(r"^\|.*(?:\n\|.*)*", section[1], re.MULTILINE)
    assert found, f"{page}: there is no table under `{heading}`"
    return [[cell.strip() for cell in row.strip().strip("|").split(" | ")] for row in found[0].splitlines()[2:]]


def columns(page: str, heading: str, count: int) -> Rows:
    """The first columns of a table; in the others stands what no code says."""
    return [row[:count] for row in table(page, heading)]


def broken(page: Path, link: str) -> bool:
    """Whether a link of this page leads nowhere. Links to other hosts are not requested."""
    if "://" in link or link.startswith("mailto:"):
        return False
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    return not target.exists() or (bool(anchor) and anchor not in anchors(target))


def code(*words: object) -> str:
    """Words of the code, as the pages write them."""
    return ", ".join(f"`{word}`" for word in words) or UNSET
