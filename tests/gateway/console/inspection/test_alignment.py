"""Alignment: values that mean the same find each other, in every pair of dialects, and the work is linear."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xenoglot import translate_request
from xenoglot.errors import XenoglotError
from xenoglot.gateway.console.inspection import alignment
from xenoglot.gateway.console.inspection.alignment import Node, align, nodes
from xenoglot.gateway.console.inspection.field_names import field_names

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

CHAT: JSONObject = {
    "model": "m",
    "max_completion_tokens": 99,
    "temperature": 0.5,
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Weather in Paris?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
        {"role": "user", "content": "Thanks!"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "Weather of a city.",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            },
        }
    ],
}
TEXTS = ("Be kind.", "Weather in Paris?", "Let me see.", "Rain", "Thanks!", "Weather of a city.")
VECTORS = Path(__file__).parents[3] / "vectors"
TURNS = ("chat", "gemini", "messages", "ollama", "responses")


def names_of(dialect: str) -> dict[str, str]:
    return dict(field_names(f"xenoglot.dialects.{dialect}"))


def paired(left: JSON, right: JSON, source: str, target: str) -> list[tuple[str, str]]:
    found = align(nodes(left), nodes(right), names_of(source), names_of(target))
    return [(shown(one), shown(other)) for one, other in found]


def shown(path: alignment.Path) -> str:
    return ".".join(map(str, path))


def value_at(document: JSON, path: alignment.Path) -> JSON:
    for part in path:
        document = document[part]
    return document


@pytest.mark.parametrize(("source", "target"), [*permutations(TURNS, 2)])
def test_texts_of_a_translated_request_find_each_other(source: str, target: str) -> None:
    left = translate_request(CHAT, "chat", source)
    right = translate_request(left, source, target)
    found = align(nodes(left), nodes(right), names_of(source), names_of(target))
    pairs = [(value_at(left, one), value_at(right, other)) for one, other in found]
    for text in TEXTS:
        if text in json.dumps(left) and text in json.dumps(right):
            assert (text, text) in pairs
    assert len({one for one, _ in found}) == len({other for _, other in found}) == len(found)


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("gemini", "generationConfig.maxOutputTokens"),
        ("messages", "max_tokens"),
        ("ollama", "options.num_predict"),
        ("responses", "max_output_tokens"),
    ],
)
def test_fields_find_each_other_by_their_names(target: str, place: str) -> None:
    other = {**CHAT, "max_completion_tokens": 99}
    right = translate_request(other, "chat", target)
    for value in (right, json.loads(json.dumps(right).replace("99", "7"))):  # whatever the values are
        assert ("max_completion_tokens", place) in paired(CHAT, value, "chat", target)


def test_arguments_as_text_are_the_object_in_them() -> None:
    right = translate_request(CHAT, "chat", "messages")
    pairs = paired(CHAT, right, "chat", "messages")
    assert ("messages.2.tool_calls.0.function.arguments", "messages.1.content.1.input") in pairs
    assert ("tools.0.function.parameters.required.0", "tools.0.input_schema.required.0") in pairs
    assert ("messages.3.tool_call_id", "messages.2.content.0.tool_use_id") in pairs


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param({"a": ["x", "x"]}, {"b": ["x", "x"]}, [("a.0", "b.0"), ("a.1", "b.1")], id="in-order"),
        pytest.param({"l": [{"n": 1}, {"m": 2}]}, {"k": [{"n": 2}]}, [("l.0.n", "k.0.n")], id="numbers-need-a-name"),
        pytest.param({"u": ["data:image/png;base64,AAAA"]}, {"d": [{"data": "AAAA"}]}, [("u.0", "d.0.data")], id="url"),
        pytest.param(
            {"choices": [{"finish_reason": "stop"}]},
            {"stop_reason": "end_turn"},
            [("choices.0.finish_reason", "stop_reason")],
            id="finish",
        ),
        pytest.param({}, {"a": 1}, [], id="nothing"),
        pytest.param([], None, [], id="no-objects"),
        pytest.param({"a": ""}, {"b": ""}, [], id="empty-text-says-nothing"),
    ],
)
def test_pairs(left: JSON, right: JSON, expected: list[tuple[str, str]]) -> None:
    found = paired(left, right, "chat", "messages")
    assert [pair for pair in found if pair in expected] == expected
    if len(expected) == 0:
        assert found == []


def test_vectors_align_with_themselves() -> None:
    """Every value of a document is its own counterpart."""
    for path in sorted(VECTORS.glob("chat/ask-*/request.json")):
        document = json.loads(path.read_bytes())
        found = nodes(document)
        names = names_of("chat")
        pairs = align(found, nodes(document), names, names)
        assert all(one == other for one, other in pairs), path
        missed = {node.path for node in found} - {one for one, _ in pairs}
        assert all(value_at(document, one) in ("", None, [], {}) for one in missed), path


@pytest.mark.parametrize(("source", "target"), [*permutations(TURNS, 2)])
def test_texts_of_vectors_that_cross_find_each_other(source: str, target: str) -> None:
    """A text that both documents have a single time is aligned with itself."""
    crossed = 0
    for path in sorted(VECTORS.glob(f"{source}/*/request.json")):
        left = json.loads(path.read_bytes())
        try:
            right = translate_request(left, source, target)
        except XenoglotError:
            continue
        here, there = nodes(left), nodes(right)
        found = {value_at(left, one): value_at(right, other) for one, other in aligned(here, there, source, target)}
        once = [Counter(node.value for node in side if isinstance(node.value, str)) for side in (here, there)]
        for text in once[0]:
            if text and once[0][text] == once[1][text] == 1 and not text.startswith(("{", "[", "data:")):
                assert found.get(text) == text, path
                crossed += 1
    assert crossed > 10


def aligned(
    here: list[Node], there: list[Node], source: str, target: str
) -> list[tuple[alignment.Path, alignment.Path]]:
    """Return the pairs of texts."""
    pairs = align(here, there, names_of(source), names_of(target))
    texts = {node.path for node in here if isinstance(node.value, str)}
    return [pair for pair in pairs if pair[0] in texts]


def test_the_work_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    plain = alignment._equal_value

    def counted(node: Node, names: dict[str, str]) -> object:
        nonlocal steps
        steps += 1
        return plain(node, names)

    monkeypatch.setattr(
        alignment,
        "_PASSES",
        tuple((counted if key is plain else key, same) for key, same in alignment._PASSES),
    )
    for size in (100, 1000):
        document: JSON = {"l": [{"type": "text", "text": f"t{number}", "n": 0} for number in range(size)]}
        steps = 0
        assert len(align(nodes(document), nodes({"m": document}), {}, {})) >= 4 * size
        assert steps <= 10 * size


def test_deep_documents_are_read() -> None:
    document: JSON = "x"
    for _ in range(5000):
        document = {"a": document}
    assert len(nodes(document)) == 5000
