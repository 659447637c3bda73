"""Screens of terminals as SVG, and the screenshots of the documentation, from real runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from scripts import console_pictures, docs_images, docs_pictures
from scripts.terminal_svg import Frame, picture, recording

if TYPE_CHECKING:
    from pathlib import Path

SCREEN = "\x1b[1m>\x1b[0m <hello> \x1b[31mred\x1b[0m\n\n\x1b[7mturned\x1b[0m 木 after"


def texts(svg: str) -> list[str]:
    """The texts of a picture, in order."""
    return [element.text or "" for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314


def test_a_screen_keeps_its_text_places_and_colours() -> None:
    svg = picture(SCREEN, "a title", width=20)
    assert texts(svg) == ["a title", ">", " <hello> ", "red", "turned", " 木 after"]
    assert re.search(r'fill="#[0-9a-f]{6}">red<', svg)
    assert re.search(r'x="14.0"[^>]* font-weight="bold">&gt;<', svg)
    assert svg.count("<rect") == 2  # the window, and what is behind the turned text
    assert f'textLength="{9 * 8.4:.1f}"' in svg  # a wide character takes two cells


def test_a_recording_shows_each_screen_for_its_time_and_then_the_last() -> None:
    svg = recording([Frame(1, "one"), Frame(2, "two"), Frame(1, "three")], "r", width=10, height=2)
    assert texts(svg) == ["r", "one", "two", "three"]
    assert "@keyframes f1{0%{visibility:hidden}25.00%{visibility:visible}75.00%{visibility:hidden}}" in svg
    assert [group.split('"')[0] for group in re.findall(r'<g id="(f\d" ?(?:visibility)?)', svg)] == ["f0", "f1", "f2"]
    assert '<g id="f2">' in svg


@pytest.mark.parametrize(
    ("name", "seen"),
    [("chat", ["How do I keep numbers in order?", "structure", "insort"]), ("agent", ["wants to run", "+", "Done"])],
)
def test_the_screenshots_can_be_made(name: str, seen: list[str], tmp_path: Path) -> None:
    shown = "".join(texts(docs_images.PICTURES[name](tmp_path)))
    assert [word for word in seen if word not in shown] == []


def test_every_recorded_picture_has_its_run() -> None:
    assert {*docs_images.PICTURES, *console_pictures.SCENES} == set(docs_pictures.RECORDED)


def test_a_screenshot_of_the_console_can_be_made() -> None:
    """The scene with the most steps: requests are sent, one is found, a field is selected."""
    ((name, text),) = console_pictures.screenshots(["console-request"])
    root = ET.fromstring(text)  # noqa: S314  we made it
    (image,) = root
    assert (name, root.get("width")) == ("console-request", "1280")
    assert str(image.get("href")).startswith("data:image/png;base64,iVBOR")
