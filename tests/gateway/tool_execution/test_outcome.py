"""What is left of results that are too large."""

from __future__ import annotations

import pytest

from xenoglot.gateway.tool_execution.outcome import (
    LEFT_OUT,
    MOST_IMAGE_BYTES,
    MOST_PARTS,
    ToolOutcome,
    failed,
    model_text,
    outcome_of,
    shortened,
)
from xenoglot.model.content import CodeOutput, Image, Inline, SearchResult, Text
from xenoglot.model.hosted import HostedTool

SMALL = Image(source=Inline(data="AAAA", media_type="image/png"))
LARGE = Image(source=Inline(data="A" * (MOST_IMAGE_BYTES - 3), media_type="image/png"))


@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        pytest.param(
            ToolOutcome((Text(text="x" * 2000), Text(text="y"))),
            ToolOutcome((Text(text="x" * 512 + " [...]"), Text(text="y"))),
            id="text",
        ),
        pytest.param(
            ToolOutcome((CodeOutput(stdout="x" * 2000, stderr="y" * 2000),)),
            ToolOutcome((CodeOutput(stdout="x" * 512 + " [...]", stderr="y" * 512 + " [...]"),)),
            id="output",
        ),
        pytest.param(ToolOutcome((LARGE,)), ToolOutcome((LARGE,)), id="large-image"),
        pytest.param(
            ToolOutcome((SMALL, LARGE, SMALL)),
            ToolOutcome((SMALL, Text(text=LEFT_OUT), SMALL)),
            id="images-too-large-together",
        ),
        pytest.param(
            failed("tool_error", "x" * 2000), failed("tool_error", "x" * 1024 + " [...]"), id="error-of-a-server"
        ),
    ],
)
def test_a_result_is_shortened(outcome: ToolOutcome, left: ToolOutcome) -> None:
    assert shortened(outcome, 1024) == left


def test_a_result_of_many_parts_is_bounded() -> None:
    """Each part costs some bytes, even an empty one."""
    left = shortened(ToolOutcome((Text(text="x"),) * 100_000), 1024)
    assert left.content == (
        *(Text(text="x"),) * MOST_PARTS,
        Text(text=f"[{100_000 - MOST_PARTS} more parts are left out]"),
    )
    assert len(model_text(left, 1)) < 1024


def test_a_page_of_a_function_has_a_bounded_head() -> None:
    page = {"url": f"https://a.example/{'x' * 9000}", "title": "t" * 9000, "text": "T"}
    (found,) = outcome_of("web_fetch", page, HostedTool(kind="web_fetch"), 1).content
    assert isinstance(found, SearchResult)
    assert (len(found.url or ""), len(found.title or ""), found.text) == (2048, 500, "T")


def test_a_row_of_a_search_has_a_bounded_head() -> None:
    row = {"url": "https://a.example", "title": "t" * 9000, "age": "a" * 9000, "text": "T"}
    (found,) = outcome_of("web_search", [row], HostedTool(kind="web_search"), 1).content
    assert isinstance(found, SearchResult)
    assert (len(found.title or ""), len(found.age or "")) == (500, 100)
