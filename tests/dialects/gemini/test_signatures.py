"""Signatures of words and calls: where they come, what other dialects get of them, and where they return to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot import stream_translator
from xenoglot.codec.framing.formats import EVENT_STREAM
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.gateway.upstream.reasoning_cache import kept, keys, restored
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
WRITTEN = "thoughtSignature emulated (written as `extra_content.google.thought_signature`)"


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
    (loss,) = [str(loss).partition(" ")[2] for loss in losses if loss.what == "thoughtSignature"]
    assert loss == (WRITTEN if name == "chat" else LOST)


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


SIGNED_WORDS = [{"text": "Hello", "thoughtSignature": SEAL}]


def in_chat(pieces: list[JSONObject], losses: Losses, *, stream: bool) -> JSONObject:
    """Return the message that a client of `chat` gets of an answer of these parts."""
    if stream:
        data = b"".join(through([streamed(pieces)], stream_translator("gemini", "chat", losses)))
        body = get("chat").encode_response(read("chat", data), Request(model="m"), Losses())
    else:
        response = get("gemini").decode_response(chunk(*pieces, finishReason="STOP"))
        body = get("chat").encode_response(response, Request(model="m"), losses)
    message: JSONObject = body["choices"][0]["message"]
    return message


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", PIECES)
def test_words_carry_their_signature_to_chat_and_back_clients_5(case: str, *, stream: bool) -> None:
    """Google's server of `chat` writes it beside `content`, and takes it back there."""
    losses = Losses()
    message = in_chat(PIECES[case], losses, stream=stream)
    assert (message["content"], message["extra_content"]) == ("Hello", EXTRA)
    assert [loss.how for loss in losses if loss.what == "thoughtSignature"] == ["emulated"]
    asked = {"role": "user", "content": "Hi"}
    brought = {key: message[key] for key in ("role", "content", "extra_content")}
    request = get("chat").decode_request({"model": "m", "messages": [asked, brought, asked]})
    losses = Losses()
    sent = get("gemini").encode_request(request, losses, Target())
    assert sent["contents"][1]["parts"] == SIGNED_WORDS
    assert [str(loss) for loss in losses] == ["$.messages[1] extra_content emulated (written as `thoughtSignature`)"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_message_has_the_signature_of_its_last_words(*, stream: bool) -> None:
    other = "b3RoZXI="
    pieces: list[JSONObject] = [{"text": "One", "thoughtSignature": other}, CALL, *SIGNED_WORDS]
    losses = Losses()
    message = in_chat(pieces, losses, stream=stream)
    assert (message["content"], message["extra_content"]) == ("OneHello", EXTRA)
    assert message["tool_calls"][0]["extra_content"] == EXTRA
    assert sorted(f"{loss.where} {loss.how}" for loss in losses if loss.what == "thoughtSignature") == [
        "$.candidates[0].content[0] dropped",
        "$.candidates[0].content[1] emulated",
        "$.candidates[0].content[2] emulated",
    ]


def test_a_chat_stream_has_the_signature_once_after_its_words() -> None:
    """Clients join strings of a field that comes twice."""
    data = b"".join(through([streamed(PIECES["in-an-empty-part"])], stream_translator("gemini", "chat", Losses())))
    events = [event.data for event in through([data], EVENT_STREAM.decoder()) if event.data != b"[DONE]"]
    deltas = [choice["delta"] for data in events for choice in json.loads(data)["choices"]]
    assert [delta for delta in deltas if delta] == [
        {"role": "assistant", "content": None},
        {"content": "Hel"},
        {"content": "lo"},
        {"extra_content": EXTRA},
    ]


VERTEX = {"vertex": {"thought_signature": SEAL}}
CHUNKS: dict[str, list[JSONObject]] = {
    "of-vertex": [{"role": "assistant", "content": "Hello", "extra_content": VERTEX}],
    "beside-the-words": [{"role": "assistant", "content": "Hello", "extra_content": EXTRA}],
    "beside-the-first-words": [{"role": "assistant", "content": "Hel", "extra_content": EXTRA}, {"content": "lo"}],
    "after-the-words": [{"role": "assistant", "content": "Hello"}, {"extra_content": EXTRA}],
}


def spoken(**choice: JSON) -> JSONObject:
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, **choice}]}


def test_an_answer_in_chat_gives_gemini_the_signature_of_its_words() -> None:
    message = {"role": "assistant", "content": "Hello", "extra_content": EXTRA}
    response = get("chat").decode_response(spoken(message=message, finish_reason="stop"))
    losses = Losses()
    body = get("gemini").encode_response(response, Request(model="m"), losses)
    assert body["candidates"][0]["content"]["parts"] == SIGNED_WORDS
    assert [str(loss) for loss in losses if loss.what == "extra_content"] == [
        "$.candidates[0].message extra_content emulated (written as `thoughtSignature`)"
    ]
    home = get("chat").encode_response(response, Request(model="m"), Losses())
    assert home["choices"][0]["message"] == message


@pytest.mark.parametrize("case", CHUNKS)
def test_a_stream_in_chat_gives_gemini_the_signature_of_its_words(case: str) -> None:
    chunks = [spoken(delta=delta, finish_reason=None) for delta in CHUNKS[case]]
    chunks.append(spoken(delta={}, finish_reason="stop"))
    data = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"
    (text,) = read("gemini", b"".join(through([data], stream_translator("chat", "gemini")))).candidates[0].content
    assert isinstance(text, Text)
    assert text.text == "Hello"
    assert isinstance(text.extra, Extra)
    assert text.extra.fields == {"thoughtSignature": SEAL}
    home = read("chat", b"".join(through([data], stream_translator("chat", "chat"))))
    whole = get("chat").encode_response(home, Request(model="m"), Losses())
    assert whole["choices"][0]["message"]["extra_content"] == (VERTEX if case == "of-vertex" else EXTRA)


def test_what_else_stands_beside_a_signature_is_a_loss() -> None:
    message = {"role": "assistant", "content": "Hello", "extra_content": EXTRA, "mood": "fine"}
    response = get("chat").decode_response(spoken(message=message, finish_reason="stop"))
    losses = Losses()
    body = get("gemini").encode_response(response, Request(model="m"), losses)
    assert body["candidates"][0]["content"]["parts"] == SIGNED_WORDS
    assert "$.candidates[0] message dropped (only chat has it)" in [str(loss) for loss in losses]
