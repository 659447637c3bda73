"""The documentation site: `make docs-site`.

    python scripts/docs_site.py MKDOCS

It writes every page into `build/site-pages/`, those of the repository with their links adapted, and the generated ones.
MkDocs builds `build/site/` from them; each of its warnings is an error. Beside the HTML are files for programs: each
page as Markdown (`run.md` beside `run.html`), `llms.txt` and `llms-full.txt`. A site that would load a file from
another host is refused.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import docs_artefacts, docs_pictures, docs_reference  # noqa: E402  found from the root
from scripts.docs_navigation import Entry, entries, parts_of, place  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGES = ROOT / "build" / "site-pages"
SITE = ROOT / "build" / "site"

FENCED = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`\n]*)\n.*?^(?P=indent)(?P=fence)$", re.MULTILINE | re.DOTALL
)
INFO = re.compile(r"^( *`{3,})(\w+) (run on|run|output)$", re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
LINK = re.compile(r"(?P<image>!?)\[(?P<label>(?:`[^`]*`|[^\]`])*)\]\((?P<target>[^)\s]+)\)")
COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
CELL = re.compile(r"<td[ >].*?</td>", re.DOTALL)
LOADED = re.compile(
    r"<(?:script|img|iframe|link(?! rel=.canonical))\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^\s\"'>]+"
)
"""What a browser would fetch from another host by itself."""


def sources() -> dict[str, str]:
    """Return the text of every page, by its source."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    written = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(files)}
    del written["docs/README.md"]  # the list of pages: here the navigation is that
    made = {f"build/docs/{name}": page() for name, page in docs_artefacts.PAGES.items()}
    reference = {f"site/{name}": page() for name, page in docs_reference.PAGES.items()}
    return written | made | reference


def with_pictures(source: str, text: str, pictures: Mapping[str, str]) -> str:
    """Return a page with its pictures in the places of their marks; `pictures` are their descriptions by name."""

    def picture(match: re.Match[str]) -> str:
        name = match["name"]
        path = os.path.relpath(f"docs/images/{name}.svg", PurePosixPath(source).parent)
        return f"![{pictures[name]}]({path})" if name in pictures else ""

    return docs_pictures.MARK.sub(picture, text)


def adapted(source: str, text: str, known: dict[str, str]) -> str:
    """Return a page as MkDocs reads it. `known` says where in the site the files of the repository are.

    Marks of the tests are removed from code blocks, lists are indented as Python's Markdown wants it, and links to
    files that are not in the site become plain text.
    """
    parts, end = [], 0
    for block in FENCED.finditer(text):
        parts += [_prose(source, text[end : block.start()], known), INFO.sub(_info, block[0])]
        end = block.end()
    parts.append(_prose(source, text[end:], known))
    return "".join(parts)


def _info(match: re.Match[str]) -> str:
    return f'{match[1]}{match[2]} title="Output"' if match[3] == "output" else f"{match[1]}{match[2]}"


def _prose(source: str, text: str, known: dict[str, str]) -> str:
    text = re.sub(r"^ +(?=\S)", lambda found: found[0] * 2, COMMENT.sub("", text), flags=re.MULTILINE)
    codes = [match.span() for match in CODE.finditer(text)]

    def link(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in codes):
            return match[0]
        target = _target(source, match["target"], known)
        return match["label"] if target is None else f"{match['image']}[{match['label']}]({target})"

    return LINK.sub(link, text)


def _target(source: str, target: str, known: dict[str, str]) -> str | None:
    """Return where a link leads in the site, or None if the site does not have that file."""
    path, hash_, anchor = target.partition("#")
    if not path or "://" in target or target.startswith("mailto:"):
        return target
    file = os.path.normpath(PurePosixPath(source).parent / path)
    if file not in known:
        return None
    start = PurePosixPath(place(source)).parent
    return os.path.relpath(known[file], start) + hash_ + anchor


def stage() -> list[Entry]:
    """Write the pages, pictures and the configuration of MkDocs; return the navigation with the pages of folders."""
    shutil.rmtree(PAGES, ignore_errors=True)
    texts = sources()
    pictures = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.svg")}
    data = [f"site/{name}" for name in docs_reference.FILES]
    known = {source: place(source) for source in [*texts, *pictures, *data, "docs/README.md"]}
    drawn = docs_pictures.made()
    known |= {f"docs/images/{name}.svg": f"images/{name}.svg" for name in drawn}
    for source, text in texts.items():
        shown = with_pictures(source, text, {name: about for name, (about, _) in drawn.items()})
        _write(PAGES / known[source], adapted(source, shown, known))
    for name, (_, image) in drawn.items():
        _write(PAGES / "images" / f"{name}.svg", image)
    for picture in pictures:
        _write(PAGES / known[picture], (ROOT / picture).read_text(encoding="utf-8"))
    for name, file in docs_reference.FILES.items():
        _write(PAGES / "reference" / name, file())
    listed = list(_with_folders(entries(), texts))
    config = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(PAGES),
        "site_dir": str(SITE),
        "nav": _nav(listed),
        "plugins": {"mkdocstrings": {"handlers": {"python": {"paths": [str(ROOT / "src")]}}}},
    }
    _write(PAGES.with_suffix(".yml"), json.dumps(config))
    return listed


def _with_folders(pages: list[Entry], texts: dict[str, str]) -> Iterator[Entry]:
    """Yield the pages; after the index of a folder, the pages of that folder."""
    for entry in pages:
        yield entry
        if entry.source.endswith("/README.md"):
            folder = entry.source.removesuffix("README.md")
            inside = sorted(name for name in texts if name.startswith(folder) and name != entry.source)
            yield from (Entry(entry.section, name, _heading(texts[name]), "", entry.group) for name in inside)


def _heading(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ").replace("`", "")


def _nav(pages: list[Entry]) -> list[object]:
    """Return the navigation as MkDocs has it: sections, groups in them, and in these the folders."""
    tree: dict[tuple[str, ...], list[object]] = {(): []}

    def branch(path: tuple[str, ...]) -> list[object]:
        if path not in tree:
            tree[path] = []
            branch(path[:-1]).append({path[-1]: tree[path]})
        return tree[path]

    folders: dict[str, tuple[str, ...]] = {}
    for entry in pages:
        path = tuple(filter(None, (entry.section, entry.group)))
        folder = entry.place.rpartition("/")[0]
        if entry.place.endswith("/README.md"):
            folders[folder] = (*path, entry.title)
            branch(folders[folder]).append(entry.place)
        else:
            branch(folders.get(folder, path)).append({entry.title: entry.place})
    return tree[()]


def finish(listed: list[Entry]) -> None:
    """Write what programs read, and look at what a browser would load."""
    for path in sorted(PAGES.rglob("*.md")):
        _write(SITE / path.relative_to(PAGES), docs_reference.plain(path.read_text(encoding="utf-8")))
    whole = [(SITE / entry.place).read_text(encoding="utf-8") for entry in listed]
    _write(SITE / "llms-full.txt", "\n\n".join(whole))
    _write(SITE / "llms.txt", llms(listed))
    foreign = []
    for path in SITE.rglob("*.html"):
        html = without_escapes(path.read_text(encoding="utf-8"))
        _write(path, html)
        foreign += [f"{path.relative_to(SITE)}: {found[0]}" for found in LOADED.finditer(html)]
    if foreign:
        sys.exit("the site loads files from other hosts:\n" + "\n".join(foreign))


def without_escapes(html: str) -> str:
    """Return a page whose code in tables has plain bars: the escape that they need in Markdown is not removed there."""
    return CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def llms(listed: list[Entry]) -> str:
    """Return `llms.txt`: the pages in their order, each with what it is for."""
    parts = [f"# Xenoglot\n\n> {' '.join(_summary().split())}\n"]
    for section, pages in parts_of(listed):
        lines = [f"- [{page.title}]({page.place}){f': {page.about}' if page.about else ''}" for page in pages]
        parts.append("\n".join([f"## {section}", "", *lines]) + "\n")
    return "\n".join(parts)


def _summary() -> str:
    """Return the first paragraph of the README without its links."""
    paragraph = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")[1]
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(mkdocs: str) -> None:
    """Build the site with the program `mkdocs`."""
    listed = stage()
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # an advertisement of the theme
    command = [mkdocs, "build", "--strict", "--quiet", "--clean", "--config-file", str(PAGES.with_suffix(".yml"))]
    if subprocess.run(command, check=False, env=quiet).returncode:  # noqa: S603  written out here
        sys.exit("the site has warnings or broken links, see above")
    finish(listed)
    sys.stdout.write(f"{SITE.relative_to(ROOT)}/index.html: {len(listed)} pages\n")


if __name__ == "__main__":
    main(sys.argv[1])
