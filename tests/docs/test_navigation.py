"""The navigation of the documentation, and the list of pages that is made from it."""

from __future__ import annotations

from scripts.docs_navigation import CONTENTS, contents, entries, in_contents, place


def test_no_two_pages_have_one_place() -> None:
    places = [place(entry.source) for entry in entries()]
    assert len(set(places)) == len(places)


def test_the_list_of_pages_is_current() -> None:
    """`make docs-contents` writes it."""
    assert CONTENTS.read_text(encoding="utf-8") == contents(in_contents())
