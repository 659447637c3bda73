"""The text of pages: blocks, links and code, whatever a page tries."""

from __future__ import annotations

import pytest

from xenoglot.gateway.tool_execution.html_text import LONGEST_LINK, decoded, page_text

URL = "https://pages.example/a/b"
SHORT = 1000


def text_of(html: str, most: int = 10_000) -> str:
    """Return the text of a page."""
    return page_text(html, URL, most).text


def test_a_page_is_its_title_and_its_blocks() -> None:
    html = """<!DOCTYPE html><html><head><title>A &amp; B
      page</title><style>p { color: red }</style></head><body>
      <h2>Head</h2><p>one <b>two</b>
      three</p><ul><li>first</li><li>second</li></ul><table><tr><td>x</td><td>y</td></tr></table></body></html>"""
    assert page_text(html, URL, 10_000) == ("A & B page", "## Head\none two three\nfirst\nsecond\nx\ny")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        pytest.param("<a href='/c?d=1&amp;e=2'>go</a>", "[go](https://pages.example/c?d=1&e=2)", id="relative-link"),
        pytest.param('<a href="javascript:alert(1)">go</a>', "go", id="script-link"),
        pytest.param('<a href="data:text/html,x">go</a>', "go", id="data-link"),
        pytest.param("<a name=x>go</a> <a href=#y>there</a>", "go there", id="no-link"),
        pytest.param(f"<a href='https://e.example/{'x' * LONGEST_LINK}'>go</a>", "go", id="endless-link"),
        pytest.param("<a href='http://[x'>go</a>", "go", id="broken-link"),
        pytest.param("<script>if (a < b) document.write('</p>evil')</script>good", "good", id="script"),
        pytest.param("<SCRIPT>evil</SCRIPT >good", "good", id="script-in-capitals"),
        pytest.param("good<script>evil", "good", id="script-that-never-ends"),
        pytest.param("<!-- <p>hidden</p> -->shown<!-- never ends", "shown", id="comments"),
        pytest.param("<svg><text>drawn</text></svg><noscript>none</noscript>good", "good", id="no-text"),
        pytest.param("1 < 2 and 3 > 2 &lt;b&gt;", "1 < 2 and 3 > 2 <b>", id="no-tags"),
        pytest.param("<pre>def f():\n    return 1\n</pre>", "def f():\n    return 1", id="code"),
        pytest.param("a<br>b<hr>c", "a\nb\nc", id="breaks"),
        pytest.param("<p", "", id="cut-tag"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_pieces_of_pages(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    "piece", ["<", "<a", "<!--", '<a href="', "<script>", "</", "<title>", "&#", "<p>", "<a href=x>"]
)
def test_no_page_is_read_longer_than_it_is_wanted(piece: str) -> None:
    assert len(text_of(piece * 100_000, most=SHORT)) <= 5 * SHORT


@pytest.mark.parametrize(
    ("data", "content_type", "text"),
    [
        pytest.param("é".encode(), "text/html", "é", id="utf-8"),
        pytest.param("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é", id="declared"),
        pytest.param(b'<meta charset="windows-1252">\x80', "text/html", '<meta charset="windows-1252">€', id="in-page"),
        pytest.param(b"a\xff", "text/html", "a\N{REPLACEMENT CHARACTER}", id="broken"),
        pytest.param(b"a", "text/html; charset=klingon", "a", id="unknown"),
    ],
)
def test_the_encoding_of_a_page(data: bytes, content_type: str, text: str) -> None:
    assert decoded(data, content_type) == text
