"""Results of MCP servers, also those that no server should give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as some

from xenoglot.model.content import File, Image, Inline, Text
from xenoglot.tools.mcp.results import output_of, resource_output
from xenoglot.tools.tool_output import ToolOutput, as_output

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

ANY = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)
BLOCKS = (
    some.dictionaries(some.sampled_from(["type", "text", "data", "mimeType", "resource", "uri", "blob"]), ANY) | ANY
)
KINDS = some.sampled_from(["text", "image", "audio", "resource", "resource_link", "new"])


@pytest.mark.parametrize(
    ("result", "output"),
    [
        pytest.param({}, ToolOutput(), id="nothing"),
        pytest.param(
            {"structuredContent": {"a": 1}, "content": []},
            ToolOutput(content=(Text(text='{"a":1}'),), data={"a": 1}),
            id="only-structured",
        ),
        pytest.param(
            {"content": [{"type": "text", "text": "no"}], "isError": True},
            ToolOutput(content=(Text(text="no"),), is_error=True),
            id="error",
        ),
        pytest.param(
            {"content": [{"type": "hologram", "data": "x"}]},
            ToolOutput(content=(Text(text='[content of type "hologram", which cannot be shown]'),)),
            id="unknown",
        ),
        pytest.param(
            {"content": [{"type": "image", "mimeType": "image/png", "data": "no base64!"}]},
            ToolOutput(content=(Text(text="[image/png that is no base64]"),)),
            id="no-base64",
        ),
        pytest.param(
            {"content": [{"type": "resource_link", "uri": "a:b", "name": "n", "title": "n", "description": "d"}]},
            ToolOutput(content=(Text(text="[resource a:b: n, d]"),)),
            id="link",
        ),
    ],
)
def test_results(result: JSONObject, output: ToolOutput) -> None:
    assert output_of(result) == output


def test_resources_are_what_their_type_says() -> None:
    contents = [
        {"uri": "a", "text": "words"},
        {"uri": "b/c.png", "blob": "AAAA", "mimeType": "image/png"},
        {"uri": "b/c.bin", "blob": "AAAA"},
        {"uri": "empty"},
    ]
    assert resource_output({"contents": contents}).content == (
        Text(text="words"),
        Image(source=Inline("AAAA", "image/png")),
        File(source=Inline("AAAA", "application/octet-stream"), name="c.bin"),
    )


@given(some.lists(BLOCKS, max_size=3), KINDS)
def test_whatever_a_server_says_is_an_output(blocks: list[JSON], kind: str) -> None:
    """garbage: no block breaks anything."""
    typed = [{**block, "type": kind} if isinstance(block, dict) else block for block in blocks]
    assert isinstance(as_output(output_of({"content": typed})), ToolOutput)
    assert isinstance(as_output(resource_output({"contents": blocks})), ToolOutput)
