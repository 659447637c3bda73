"""`finishMessage` beside each reason that the API lists: an explanation of refusals, and of nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from google.genai import types

from xenoglot import stream_translator, translate_response
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get, names
from xenoglot.dialects.gemini.finish import REASONS, encode_finish
from xenoglot.model.content import Refusal
from xenoglot.model.fold import fold
from xenoglot.model.request import Request
from xenoglot.model.response import Finish, Response

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

MESSAGE = "Model generated function call(s)."
WORDS = sorted(reason.value for reason in types.FinishReason)
REFUSALS = {
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
}
CALL: JSONObject = {"functionCall": {"id": "c1", "name": "f", "args": {}}}
LOST = "finishMessage dropped (only gemini has it)"


def answer(word: str, message: str | None) -> JSONObject:
    said = {} if message is None else {"finishMessage": message}
    return {
        "candidates": [{"content": {"parts": [CALL], "role": "model"}, "finishReason": word, "index": 0, **said}],
        "modelVersion": "m",
        "responseId": "r",
    }


def crossed(body: JSONObject, name: str, losses: Losses, *, stream: bool) -> tuple[Response, bytes]:
    """Return the answer as a client of `name` reads it, and its bytes."""
    dialect = get(name)
    if not stream:
        written = translate_response(body, "gemini", name, losses)
        return dialect.decode_response(written), json.dumps(written).encode()
    data = b"data: " + json.dumps(body).encode() + b"\r\n\r\n"
    written_stream = b"".join(through([data], stream_translator("gemini", name, losses)))
    events = through([written_stream], Pipeline(dialect.framing.decoder(), dialect.stream_decoder()))
    response = fold(events)
    assert isinstance(response, Response)
    return response, written_stream


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("word", WORDS)
def test_only_refusals_are_refusals_findings_a2(word: str, name: str, *, stream: bool) -> None:
    losses = Losses()
    response, written = crossed(answer(word, MESSAGE), name, losses, stream=stream)
    (candidate,) = response.candidates
    refused = word in REFUSALS
    assert (REASONS.get(word) == "refusal") == refused
    assert candidate.finish is not None
    if name == "gemini":
        assert MESSAGE.encode() in written
        assert [*losses] == []
        return
    assert refused or candidate.finish.reason != "refusal"
    assert refused or candidate.finish.explanation is None
    assert refused or not any(isinstance(part, Refusal) for part in candidate.content)
    assert refused or MESSAGE.encode() not in written
    assert refused or [str(loss).partition(" ")[2] for loss in losses].count(LOST) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("message", [None, MESSAGE], ids=["bare", "message"])
@pytest.mark.parametrize(
    ("name", "told"),
    [("chat", "tool_calls"), ("messages", "tool_use"), ("responses", "completed"), ("ollama", "stop")],
)
def test_calls_end_as_calls_with_a_message_or_without(
    name: str, told: str, message: str | None, *, stream: bool
) -> None:
    response, written = crossed(answer("STOP", message), name, Losses(), stream=stream)
    finish = response.candidates[0].finish
    assert finish is not None
    assert (finish.reason, finish.raw) == ("tool_calls", told)
    assert b"Model generated" not in written


@pytest.mark.parametrize("message", [None, MESSAGE], ids=["bare", "message"])
@pytest.mark.parametrize("word", WORDS)
def test_messages_go_home(word: str, message: str | None) -> None:
    body, losses = answer(word, message), Losses()
    home: JSON = get("gemini").encode_response(get("gemini").decode_response(body), Request(model="m"), losses)
    assert home == body
    assert [*losses] == []


def test_an_assumed_finish_is_a_stop() -> None:
    """An answer whose server sent no reason is whole; the loss is recorded where the reason is assumed."""
    finish = Finish(reason="unknown", assumed=True)
    assert encode_finish(finish, (), "$.candidates[0]", Losses()) == {"finishReason": "STOP"}
    assert encode_finish(Finish(reason="unknown"), (), "$.candidates[0]", Losses()) == {"finishReason": "OTHER"}
