"""The site: its navigation has every page, and pages are adapted to it.

MkDocs itself runs in `make docs-site`, which `make check` includes; broken links and its warnings fail there.
"""

from __future__ import annotations

import pytest

from scripts import docs_artefacts, docs_reference, docs_site
from scripts.docs_navigation import GENERATED, Entry, entries, place
from tests.docs.pages import ROOT

TEXT = """\
# A page

See [the code](../src/xenoglot/errors.py), [`run`](run.md#which-gateway), [all](README.md), `[no](link.md)` and
![a picture](images/overview.svg).
- one
  - two

```sh run
echo "[not](a-link.md)"
```

```text output
1
```
"""
ADAPTED = """\
# A page

See the code, [`run`](run.md#which-gateway), [all](index.md), `[no](link.md)` and
![a picture](images/overview.svg).
- one
    - two

```sh
echo "[not](a-link.md)"
```

```text title="Output"
1
```
"""


def test_every_page_is_in_the_navigation() -> None:
    listed = [entry.source for entry in entries()]
    folders = tuple(source.removesuffix("README.md") for source in listed if source.endswith("/README.md"))
    files = [path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]]
    missing = [name for name in files if name not in listed and not name.startswith(folders)]
    assert missing == ["docs/README.md"]
    assert len(set(listed)) == len(listed)
    generated = {f"site/{name}" for name in docs_reference.PAGES} | {
        f"build/docs/{name}" for name in docs_artefacts.PAGES
    }
    assert {source for source in listed if source.startswith(GENERATED)} == generated
    assert [source for source in listed if not source.startswith(GENERATED) and not (ROOT / source).is_file()] == []


def test_a_page_is_adapted_to_the_site() -> None:
    known = {name: place(name) for name in ("docs/run.md", "docs/README.md", "docs/images/overview.svg")}
    assert docs_site.adapted("docs/page.md", TEXT, known) == ADAPTED


def test_links_lead_from_folder_to_folder() -> None:
    known = {"docs/dialects/chat.md": "dialects/chat.md", "site/cli.md": "reference/cli.md"}
    assert docs_site.adapted("site/cli.md", "[c](../docs/dialects/chat.md#a)", known) == "[c](../dialects/chat.md#a)"
    assert docs_site.adapted("README.md", "[c](docs/dialects/chat.md)", known) == "[c](dialects/chat.md)"


def test_llms_txt_lists_the_pages_with_what_they_are_for() -> None:
    pages = [Entry("Start", "docs/run.md", "Run", "start a program"), Entry("More", "docs/a/b.md", "B", "")]
    head, *lines = docs_site.llms(pages).split("\n\n", 2)
    assert head == "# Xenoglot"
    assert lines[1] == "## Start\n\n- [Run](run.md): start a program\n\n## More\n\n- [B](a/b.md)\n"


def test_code_in_tables_has_plain_bars() -> None:
    html = r"<p>a \| b</p><td><code>x \| head</code></td><td class='a'>y</td>"
    assert docs_site.without_escapes(html) == r"<p>a \| b</p><td><code>x | head</code></td><td class='a'>y</td>"


@pytest.mark.parametrize(
    ("html", "loads"),
    [
        ('<script src="https://cdn.example/a.js">', True),
        ('<link rel="stylesheet" href="//fonts.example/css">', True),
        ('<img alt="" src="http://a.example/b.png">', True),
        ('<a href="https://a.example/">', False),
        ('<script src="assets/a.js">', False),
    ],
)
def test_files_of_other_hosts_are_seen(html: str, *, loads: bool) -> None:
    assert bool(docs_site.LOADED.search(html)) is loads


def test_the_navigation_has_sections_groups_and_folders() -> None:
    pages = [
        Entry("Start", "README.md", "Overview", ""),
        Entry("Guides", "docs/run.md", "Run", "", "Terminal"),
        Entry("Guides", "docs/a/README.md", "A", "", "Help"),
        Entry("Guides", "docs/a/b.md", "B", "", "Help"),
    ]
    assert docs_site._nav(pages) == [
        {"Start": [{"Overview": "index.md"}]},
        {"Guides": [{"Terminal": [{"Run": "run.md"}]}, {"Help": [{"A": ["a/README.md", {"B": "a/b.md"}]}]}]},
    ]
