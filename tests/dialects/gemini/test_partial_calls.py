"""Calls whose arguments are streamed in pieces (`streamFunctionCallArguments` of Vertex AI), to every dialect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from xenoglot import stream_translator
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get, names
from xenoglot.dialects.gemini.parts.partial_call import PartialCall
from xenoglot.dialects.gemini.tool_calls import CallIds
from xenoglot.model.content import ToolCall
from xenoglot.model.events import Failed
from xenoglot.model.fold import fold
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON, JSONObject

SEAL = "c2VhbA=="


def entry(path: str, *, more: bool = False, **value: JSON) -> JSONObject:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def piece(*entries: JSONObject, more: bool = True, **call: JSON) -> JSONObject:
    arguments = {"partialArgs": [*entries]} if entries else {}
    return {"functionCall": {**call, **arguments, **({"willContinue": True} if more else {})}}


END: JSONObject = {"functionCall": {}}
CASES: dict[str, tuple[list[JSONObject], list[tuple[str, JSON]]]] = {
    "docs": (
        [
            {**piece(name="book", id="c1"), "thoughtSignature": SEAL},
            piece(entry("$.city", stringValue="New", more=True)),
            piece(entry("$.city", stringValue=" York")),
            piece(entry("$.nights", numberValue=3), entry("$.breakfast", boolValue=False)),
            piece(entry("$.note", nullValue="NULL_VALUE")),
            END,
        ],
        [("book", {"city": "New York", "nights": 3, "breakfast": False, "note": None})],
    ),
    "nested": (
        [
            piece(name="f"),
            piece(entry("$.guests[0].name", stringValue="Ann"), entry("$.guests[1].name", stringValue="Bob")),
            piece(entry("$['odd key'][\"and.dots\"]", numberValue=1.5), entry("$.guests[0].age", numberValue=30)),
            END,
        ],
        [("f", {"guests": [{"name": "Ann", "age": 30}, {"name": "Bob"}], "odd key": {"and.dots": 1.5}})],
    ),
    "all-at-once": ([piece(entry("$.a", stringValue="x"), name="f", more=False)], [("f", {"a": "x"})]),
    "null-as-null": ([piece(entry("$.a", nullValue=None), name="f", more=False)], [("f", {"a": None})]),
    "no-arguments": ([piece(name="f"), END], [("f", {})]),
    "two-calls": (
        [
            piece(name="f"),
            piece(entry("$.a", stringValue="x")),
            END,
            piece(name="g"),
            piece(entry("$.a", stringValue="y"), more=False),
        ],
        [("f", {"a": "x"}), ("g", {"a": "y"})],
    ),
    "no-end": ([piece(name="f"), piece(entry("$.a", stringValue="x"))], [("f", {"a": "x"})]),
    "another-begins": (
        [piece(name="f"), piece(entry("$.a", stringValue="x")), piece(name="g"), END],
        [("f", {"a": "x"}), ("g", {})],
    ),
    "begun-with-arguments": (
        [piece(entry("$.b[1]", stringValue="z"), name="f", args={"a": "x", "b": ["y"]}), END],
        [("f", {"a": "x", "b": ["y", "z"]})],
    ),
    "beside-words": (
        [{"text": "I look."}, piece(name="f"), piece(entry("$.a", stringValue="x")), END],
        [("f", {"a": "x"})],
    ),
}
CALLING = [name for name in names() if name not in ("completions", "llama_stack_completion", "ollama_generate")]


def streamed(pieces: list[JSONObject], finish: str = "STOP") -> bytes:
    """Each piece in a chunk of its own, the reason of the end behind them."""
    parts: list[tuple[JSONObject, JSONObject]] = [
        *((one, {}) for one in pieces),
        ({"text": ""}, {"finishReason": finish}),
    ]
    return b"".join(
        b"data: "
        + json.dumps(
            {
                "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0, **more}],
                "modelVersion": "m",
                "responseId": "r",
            }
        ).encode()
        + b"\r\n\r\n"
        for part, more in parts
    )


def read(name: str, data: bytes) -> Response | Failure:
    dialect = get(name)
    return fold(through([data], Pipeline(dialect.framing.decoder(), dialect.stream_decoder())))


def called(response: Response | Failure) -> list[tuple[str, Any]]:
    assert isinstance(response, Response)
    content = response.candidates[0].content
    return [(part.name, json.loads(part.arguments)) for part in content if isinstance(part, ToolCall)]


@pytest.mark.parametrize("name", CALLING)
@pytest.mark.parametrize("case", CASES)
def test_streamed_arguments_arrive_whole_findings_a6(case: str, name: str) -> None:
    pieces, calls = CASES[case]
    losses = Losses()
    response = read(name, b"".join(through([streamed(pieces)], stream_translator("gemini", name, losses))))
    assert called(response) == calls
    assert isinstance(response, Response)
    finish = response.candidates[0].finish
    assert finish is not None
    assert finish.reason == "tool_calls"
    assert [loss for loss in losses if loss.what in ("part", "opaque", "functionCall")] == []


def test_the_signature_of_the_call_is_kept() -> None:
    response = read("gemini", streamed(CASES["docs"][0]))
    assert isinstance(response, Response)
    (call,) = response.candidates[0].content
    assert isinstance(call, ToolCall)
    assert call.id == "c1"
    assert call.extra is not None
    assert call.extra.fields == {"thoughtSignature": SEAL}


def test_a_call_that_was_cut_has_no_arguments_that_can_be_read() -> None:
    response = read("gemini", streamed([piece(name="f"), piece(entry("$.a", stringValue="x"))], "MAX_TOKENS"))
    assert isinstance(response, Response)
    (call,) = response.candidates[0].content
    assert isinstance(call, ToolCall)
    assert call.arguments == '{"a":"x"'


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([piece(entry("$.a", stringValue="x"))], id="no-name"),
        pytest.param([piece(name="f"), piece({"stringValue": "x"})], id="no-path"),
        pytest.param([piece(name="f"), piece(entry("a", stringValue="x"))], id="no-root"),
        pytest.param([piece(name="f"), piece(entry("$", stringValue="x"))], id="the-root"),
        pytest.param([piece(name="f"), piece(entry("$..a", stringValue="x"))], id="no-step"),
        pytest.param([piece(name="f"), piece(entry("$.a" * 101, stringValue="x"))], id="too-deep"),
        pytest.param([piece(name="f"), piece(entry("$" + ".a" * 101, stringValue="x"))], id="much-too-deep"),
        pytest.param([piece(name="f"), piece(entry("$.a", numberValue="x"))], id="no-number"),
    ],
)
def test_malformed_pieces_fail_the_stream(pieces: list[JSONObject]) -> None:
    dialect = get("gemini")
    events = [*through([streamed(pieces)], Pipeline(dialect.framing.decoder(), dialect.stream_decoder()))]
    assert isinstance(events[-1], Failed)
    assert "cannot be read" in events[-1].failure.message


def test_a_list_holds_what_was_said_however_far_the_indexes_are_apart() -> None:
    pieces = [piece(entry("$.a[999999999]", stringValue="z"), entry("$.a[2]", stringValue="y"), name="f", more=False)]
    assert called(read("gemini", streamed(pieces))) == [("f", {"a": ["y", "z"]})]


def test_each_piece_costs_its_own_length() -> None:
    """Steps are counted, not seconds: pieces of one string are joined once, and the tree is walked once."""

    def steps(count: int) -> int:
        call = PartialCall(piece(name="f"), "$", CallIds("x"))
        for number in range(count):
            call.feed(
                piece(entry("$.text", stringValue="x", more=True), entry(f"$.list[{number}]", numberValue=number)), "$"
            )
        (text, listed) = call._root.values.values()
        assert isinstance(text, list)
        assert len(text) == count
        return len(text) + len(getattr(listed, "values", ())) + len(call.whole(complete=True).arguments.split(","))

    assert steps(2_000) / steps(1_000) <= 2.5
