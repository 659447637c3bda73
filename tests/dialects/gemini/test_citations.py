"""Citations that Gemini reports beside its words: what it grounded its answer on, and what it recited."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot import stream_translator, translate_response
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

TEXT = "Zwei Straßen"
URL = "https://a.example/frost"
SOURCE: JSONObject = {"startIndex": 5, "endIndex": 13, "uri": URL, "title": "Frost", "license": "x"}
CITED: JSONObject = {"url": URL, "title": "Frost", "start_index": 5, "end_index": 12}


def answer(metadata: JSON) -> JSONObject:
    content = {"parts": [{"text": TEXT}], "role": "model"}
    candidate = {"content": content, "index": 0, "finishReason": "STOP", "citationMetadata": metadata}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}


def cited(body: JSONObject) -> list[JSONObject]:
    return [one["url_citation"] for one in body["choices"][0]["message"].get("annotations", ())]


@pytest.mark.parametrize("key", ["citationSources", "citations"])
def test_a_recited_source_is_a_citation(key: str) -> None:
    losses = Losses()
    body = answer({key: [SOURCE]})
    assert cited(translate_response(body, "gemini", "chat", losses)) == [CITED]
    assert translate_response(body, "gemini", "gemini") == body


def test_so_it_is_in_a_stream() -> None:
    data = b"data: " + json.dumps(answer({"citationSources": [SOURCE]})).encode() + b"\r\n\r\n"
    written = b"".join(through([data], stream_translator("gemini", "chat")))
    found = [json.loads(line[6:]) for line in written.split(b"\n") if b"annotations" in line]
    assert [one["url_citation"] for one in found[0]["choices"][0]["delta"]["annotations"]] == [CITED]


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        [],
        {},
        {"citations": "x"},
        {"citations": ["x", {}]},
        {"citations": [{"uri": ""}]},
        {"citationSources": [{"license": "x", "startIndex": 0, "endIndex": 4}]},
    ],
)
def test_what_names_no_source_is_no_citation(metadata: JSON) -> None:
    body = answer(metadata)
    assert cited(translate_response(body, "gemini", "chat")) == []
    assert translate_response(body, "gemini", "gemini") == body


def test_a_place_inside_of_a_character_is_none() -> None:
    body = answer({"citations": [{**SOURCE, "endIndex": 10}]})
    assert cited(translate_response(body, "gemini", "chat")) == [CITED | {"start_index": 0}]
