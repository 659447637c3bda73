"""Text of an HTML page: blocks as lines, links as `[text](url)`, without scripts, styles and markup.

A page is written by strangers. It is read in one pass from left to right, so the time is linear in its length whatever
it holds; nothing of it is run, and no resource that it names is loaded.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin

if TYPE_CHECKING:
    from collections.abc import Iterator

_RAW: Final = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "textarea", "select"})
"""Elements whose content is not text of the page."""
_BLOCK_NAMES: Final = (
    "address article aside blockquote br dd div dl dt figcaption footer form h1 h2 h3 h4 h5 h6 header hr li main nav "
    "ol p pre section table tbody td tfoot th thead tr ul"
)
_BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_NAME: Final = re.compile(r"/?([a-zA-Z][a-zA-Z0-9-]{0,31})")
_HREF: Final = re.compile(r"""\bhref\s{0,8}=\s{0,8}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_SPACES: Final = re.compile(r"[ \t\r\f\v\u00a0]+")
_ENDS: Final = {name: re.compile(rf"</{name}", re.IGNORECASE) for name in (*_RAW, "title")}
_CHARSET: Final = re.compile(rb"""charset\s{0,8}=\s{0,8}["']?([a-zA-Z0-9_-]{1,40})""", re.IGNORECASE)
_META_BYTES: Final = 2048
"""Bytes of a page in which its encoding is declared (https://html.spec.whatwg.org/#charset)."""
LONGEST_LINK: Final = 2048
MARGIN: Final = 4
"""How many times more is read than wanted: spaces and empty lines are removed."""


_PRE_SPACE: Final = "\ue000"
"""Space of preformatted text while a page is read: it is not merged with others."""


class PageText(NamedTuple):
    """The title of a page, and its text."""

    title: str
    text: str


def decoded(data: bytes, content_type: str) -> str:
    """Return the text of a body by its declared encoding; UTF-8 without one, or with one that is unknown."""
    found = _CHARSET.search(content_type.encode("latin-1", "replace")) or _CHARSET.search(data[:_META_BYTES])
    charset = found[1].decode("ascii") if found else "utf-8"
    try:
        return data.decode(charset, "replace")
    except LookupError:
        return data.decode("utf-8", "replace")


def page_text(html: str, url: str, most: int) -> PageText:
    """Return the title and the text of the page at `url`, `most` characters of it or somewhat more."""
    reader, found, room = _PageReader(html, url), list[str](), most * MARGIN
    for piece in reader.pieces():
        found.append(piece[:room])
        room -= len(piece)
        if room <= 0:
            break
    lines = (_flat(line) for line in "".join(found).split("\n"))
    text = "\n".join(line for line in lines if line)
    return PageText(_flat(reader.title), text.replace(_PRE_SPACE, " "))


def _flat(text: str) -> str:
    return _SPACES.sub(" ", text).strip().rstrip(_PRE_SPACE)


class _PageReader:
    """Reads a page once; each search begins where the last one ended, and one that finds nothing ends the page."""

    def __init__(self, html: str, url: str) -> None:
        self.title = ""
        self._html = html
        self._url = url
        self._link = ""
        self._pre = False

    def pieces(self) -> Iterator[str]:
        """Yield the text in pieces."""
        html, at = self._html, 0
        while (start := html.find("<", at)) >= 0:
            yield self._plain(html[at:start])
            name = _NAME.match(html, start + 1)
            if name is not None:
                end = _after(html, ">", start)
                at = end
                if html[start + 1] != "/" and (closing := _ENDS.get(name[1].lower())) is not None:
                    at = self._skip(closing, end, name[1].lower())
                else:
                    yield self._tag(html[start:end], name[1].lower())
            elif html.startswith(("!--", "!", "?", "/"), start + 1):
                at = _after(html, "-->" if html.startswith("!--", start + 1) else ">", start)
            else:
                yield "<"
                at = start + 1
        yield self._plain(html[at:])

    def _skip(self, closing: re.Pattern[str], start: int, name: str) -> int:
        """Return where an element ends whose content is not text of the page; the title is noted."""
        found = closing.search(self._html, start)
        end = len(self._html) if found is None else found.start()
        if name == "title" and not self.title:
            self.title = unescape(self._html[start : min(end, start + LONGEST_LINK)]).replace("\n", " ")
        return end

    def _tag(self, tag: str, name: str) -> str:
        closing = tag[1] == "/"
        if name == "a":
            link, self._link = self._link, "" if closing else _link(tag, self._url)
            return (f"]({link})" if link else "") + ("[" if self._link else "")
        if name == "pre":
            self._pre = not closing
        if name in _BLOCKS:
            return "\n" + ("" if closing else _HEADINGS.get(name, ""))
        return ""

    def _plain(self, text: str) -> str:
        plain = unescape(text)
        return plain.replace(" ", _PRE_SPACE) if self._pre else plain.replace("\n", " ")


def _after(html: str, mark: str, start: int) -> int:
    """Return the place after the next `mark`; the end of the page where there is none."""
    found = html.find(mark, start)
    return len(html) if found < 0 else found + len(mark)


def _link(tag: str, url: str) -> str:
    """Return the URL of a link; an empty text where it is no page: scripts and data are none."""
    found = _HREF.search(tag[:LONGEST_LINK])
    target = "" if found is None else unescape(found[1] or found[2] or found[3] or "")
    if not target or target.startswith("#") or len(target) > LONGEST_LINK:
        return ""
    try:
        whole = urljoin(url, target)
    except ValueError:
        return ""
    return whole if whole.startswith(("https://", "http://")) else ""
