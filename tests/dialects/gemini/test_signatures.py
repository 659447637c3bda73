"""Signatures of words and calls: where they come, what other dialects get of them, and where they return to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot import stream_translator
from xenoglot.codec.dialect import Target, get, names
from xenoglot.codec.framing import EVENT_STREAM
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.gateway.vault import kept, keys, restored
from xenoglot.model.content import Extra, Reasoning, Text
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

SEAL = "c2VhbA=="
THOUGHT = {"text": "plan", "thought": True}
PIECES: dict[str, list[JSONObject]] = {
    "on-the-last-piece": [{"text": "Hel"}, {"text": "lo", "thoughtSignature": SEAL}],
    "in-an-empty-part": [{"text": "Hel"}, {"text": "lo"}, {"text": "", "thoughtSignature": SEAL}],
    "on-the-only-piece": [{"text": "Hello", "thoughtSignature": SEAL}],
    "before-more-words": [{"text": "Hel", "thoughtSignature": SEAL}, {"text": "lo"}],
    "after-a-thought": [THOUGHT, {"text": "Hello"}, {"text": "", "thoughtSignature": SEAL}],
}
LOST = "thoughtSignature dropped (only gemini has it)"


def chunk(*parts: JSON, **more: JSON) -> JSONObject:
    return {
        "candidates": [{"content": {"parts": [*parts], "role": "model"}, "index": 0, **more}],
        "modelVersion": "m",
        "responseId": "r",
    }


def streamed(pieces: list[JSONObject]) -> bytes:
    """Each piece in a chunk of its own, the reason of the end behind them."""
    chunks = [*map(chunk, pieces), chunk({"text": ""}, finishReason="STOP")]
    return b"".join(b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in chunks)


def read(name: str, data: bytes) -> Response:
    dialect = get(name)
    response = fold(through([data], Pipeline(dialect.framing.decoder(), dialect.stream_decoder())))
    assert isinstance(response, Response)
    return response


@pytest.mark.parametrize("name", [name for name in names() if name != "gemini"])
@pytest.mark.parametrize("case", PIECES)
def test_words_are_one_text_and_nothing_follows_them_clients_claude_code(case: str, name: str) -> None:
    """Claude Code prints the last block: where that is an empty thought it prints nothing."""
    losses = Losses()
    written = b"".join(through([streamed(PIECES[case])], stream_translator("gemini", name, losses)))
    (candidate,) = read(name, written).candidates
    kinds = [type(part) for part in candidate.content]
    assert kinds[-1:] == [Text]
    assert kinds.count(Text) == 1
    assert [part.text for part in candidate.content if isinstance(part, Text)] == ["Hello"]
    assert [str(loss).partition(" ")[2] for loss in losses].count(LOST) == 1


@pytest.mark.parametrize("case", PIECES)
def test_streamed_signatures_go_home(case: str) -> None:
    once = read("gemini", streamed(PIECES[case]))
    written = b"".join(through([streamed(PIECES[case])], stream_translator("gemini", "gemini")))
    assert read("gemini", written) == once
    parts = [
        part
        for event in through([written], EVENT_STREAM.decoder())
        for part in json.loads(event.data)["candidates"][0]["content"]["parts"]
    ]
    assert "".join(part["text"] for part in parts if not part.get("thought")) == "Hello"
    assert [part["thoughtSignature"] for part in parts if "thoughtSignature" in part] == [SEAL]


@pytest.mark.parametrize("case", PIECES)
def test_whole_signatures_go_home_where_they_stood(case: str) -> None:
    losses = Losses()
    body = chunk(*PIECES[case], finishReason="STOP")
    dialect = get("gemini")
    response = dialect.decode_response(body)
    assert not isinstance(response.candidates[0].content[-1], Reasoning)
    assert dialect.encode_response(response, Request(model="m"), losses) == body
    assert [*losses] == []


@pytest.mark.parametrize("case", PIECES)
def test_histories_go_home_where_they_stood(case: str) -> None:
    dialect, turns = get("gemini"), [{"role": "model", "parts": PIECES[case]}]
    body = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}, *turns]}
    assert dialect.encode_request(dialect.decode_request(body), Losses(), Target()) == body


def test_preserved_signatures_return_to_their_words() -> None:
    """The client brings back the words alone; the signature stands beside them again, where the server had it."""
    (candidate,) = read("gemini", streamed(PIECES["in-an-empty-part"])).candidates
    found = kept(candidate.content)
    assert found is not None
    turn = Message(role="assistant", content=(Text(text="Hello"),))
    assert keys(turn.content) == keys(candidate.content)
    asked = Message(role="user", content=(Text(text="Hi"),))
    request = Request(model="m", messages=(asked, restored(turn, found), asked))
    sent = get("gemini").encode_request(request, Losses(), Target())
    assert sent["contents"][1]["parts"] == [{"text": "Hello"}, {"text": "", "thoughtSignature": SEAL}]


def test_citations_of_signed_words_come_across() -> None:
    grounding = {"groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}]}
    chunks = [
        *map(chunk, PIECES["in-an-empty-part"]),
        chunk({"text": ""}, finishReason="STOP", groundingMetadata=grounding),
    ]
    data = b"".join(b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in chunks)
    (text,) = read("gemini", data).candidates[0].content
    assert isinstance(text, Text)
    assert [citation.url for citation in text.citations] == ["https://a.example"]
    assert isinstance(text.extra, Extra)
    assert text.extra.fields == {"thoughtSignature": SEAL}


CALL = {"functionCall": {"id": "c1", "name": "f", "args": {}}, "thoughtSignature": SEAL}
EXTRA = {"google": {"thought_signature": SEAL}}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_calls_carry_their_signature_to_chat_and_back_clients_5(*, stream: bool) -> None:
    losses = Losses()
    if stream:
        data = b"".join(through([streamed([CALL])], stream_translator("gemini", "chat", losses)))
        body = get("chat").encode_response(read("chat", data), Request(model="m"), Losses())
    else:
        response = get("gemini").decode_response(chunk(CALL, finishReason="STOP"))
        body = get("chat").encode_response(response, Request(model="m"), losses)
    (call,) = body["choices"][0]["message"]["tool_calls"]
    assert call["extra_content"] == EXTRA
    assert [loss.how for loss in losses if loss.what == "thoughtSignature"] == ["emulated"]
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    request = get("chat").decode_request({"model": "m", "messages": turns})
    sent = get("gemini").encode_request(request, Losses(), Target())
    assert sent["contents"][1]["parts"] == [CALL]
