"""What tools of a server found, and summaries of earlier turns, are no words of the answer (findings-A7, sdk-C)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot import stream_translator, translate_response
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.model.content import CompactedHistory, HostedCall, HostedResult, Text
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

WORDS = "It is new."
SEARCH: JSONObject = {
    "type": "web_search_result",
    "title": "FOUND",
    "url": "https://found.example",
    "encrypted_content": "e",
}
CITED: JSONObject = {
    "type": "text",
    "text": WORDS,
    "citations": [
        {
            "type": "web_search_result_location",
            "url": "https://found.example",
            "title": "FOUND",
            "encrypted_index": "e",
            "cited_text": "new",
        }
    ],
}
BLOCKS: dict[str, list[JSONObject]] = {
    "web_search_tool_result": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "news"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [SEARCH]},
    ],
    "mcp_tool_result": [
        {"type": "mcp_tool_use", "id": "s1", "name": "f", "server_name": "s", "input": {}},
        {
            "type": "mcp_tool_result",
            "tool_use_id": "s1",
            "is_error": False,
            "content": [{"type": "text", "text": "FOUND"}],
        },
    ],
    "bash_code_execution_tool_result": [
        {
            "type": "bash_code_execution_tool_result",
            "tool_use_id": "s1",
            "content": {
                "type": "bash_code_execution_result",
                "stdout": "FOUND",
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        }
    ],
    "compaction": [{"type": "compaction", "content": "FOUND earlier."}],
}
PARTS: dict[str, JSONObject] = {
    "executableCode": {"executableCode": {"language": "PYTHON", "code": "print('FOUND')"}},
    "codeExecutionResult": {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "FOUND"}},
}
ANSWERS: dict[str, tuple[str, JSONObject]] = {
    **{
        kind: (
            "messages",
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [*blocks, CITED],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )
        for kind, blocks in BLOCKS.items()
    },
    **{
        kind: (
            "gemini",
            {
                "candidates": [
                    {"content": {"parts": [part, {"text": WORDS}], "role": "model"}, "finishReason": "STOP", "index": 0}
                ],
                "modelVersion": "m",
                "responseId": "r",
            },
        )
        for kind, part in PARTS.items()
    },
}
PAIRS = [(kind, name) for kind, (home, _) in ANSWERS.items() for name in names() if name != home]


def whole(kind: str, name: str, losses: Losses) -> tuple[Response, bytes]:
    home, body = ANSWERS[kind]
    written = translate_response(body, home, name, losses)
    return get(name).decode_response(written), encode_json(written)


def streamed(kind: str, name: str, losses: Losses) -> tuple[Response, bytes]:
    home, body = ANSWERS[kind]
    spoken, heard = get(home), get(name)
    events = unfold(spoken.decode_response(body))
    data = b"".join(
        through(events, Pipeline(spoken.stream_encoder(Request(model="m"), Losses()), spoken.framing.encoder()))
    )
    written = b"".join(through([data], stream_translator(home, name, losses)))
    response = fold(through([written], Pipeline(heard.framing.decoder(), heard.stream_decoder())))
    assert isinstance(response, Response)
    return response, written


@pytest.mark.parametrize("way", [whole, streamed], ids=["whole", "stream"])
@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_the_answer_is_the_words_of_the_model(kind: str, name: str, way: type) -> None:
    losses = Losses()
    response, written = way(kind, name, losses)
    content = response.candidates[0].content
    assert "".join(part.text for part in content if isinstance(part, Text)) == WORDS
    lost = [loss.how for loss in losses if loss.what in (kind, "hosted_call", "hosted_result")]
    parts = (HostedCall, HostedResult, CompactedHistory)
    kept = any(isinstance(part, parts) for part in content) or b"groundingMetadata" in written
    assert kept or "dropped" in lost, [*map(str, losses)]
    if name in ("chat", "responses", "gemini") and kind in BLOCKS:
        assert b"https://found.example" in written  # cited


@pytest.mark.parametrize("kind", ANSWERS)
def test_at_home_nothing_is_missing(kind: str) -> None:
    home, body = ANSWERS[kind]
    losses = Losses()
    assert get(home).encode_response(get(home).decode_response(body), Request(model="m"), losses) == body
    assert [*losses] == []


@pytest.mark.parametrize("kind", BLOCKS)
def test_in_a_history_the_model_reads_what_was_found(kind: str) -> None:
    """A model that did not run the tool can know of its result from the words alone."""
    user = {"role": "user", "content": "Hi"}
    history = [user, {"role": "assistant", "content": [*BLOCKS[kind], CITED]}, user]
    request = get("messages").decode_request({"model": "m", "max_tokens": 9, "messages": history})
    sent = json.dumps(get("chat").encode_request(request, Losses(), Target()))
    assert "FOUND" in sent
