"""Usage requested for a client that did not: its stream is the one that it would have got, byte for byte."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.mutations import cuttings
from tests.shortcuts import switched
from xenoglot.codec.loss import Loss, Losses
from xenoglot.dialects.openai import stream_usage
from xenoglot.dialects.openai.stream_usage import UsageChunks, request_usage

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
WORDS = ("Hi", ' ,"usage":null}', '"usage": null, ', "\u2028é", 'a\\","usage":null')
"""Texts that look like what is taken out."""

texts = st.one_of(st.sampled_from(WORDS), st.text(max_size=8))


def chunk(text: str, *, pretty: bool, **more: JSON) -> bytes:
    """Return a chunk as servers write it; `pretty` has blanks, as Python's `json` writes them."""
    choices: JSON = [{"index": 0, "delta": {"content": text, "tool": {"usage": None, "x": 1}}}]
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return json.dumps(body, separators=None if pretty else (",", ":"), ensure_ascii=False).encode()


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Return a stream without usage, and the same with the option."""
    pretty, end = draw(st.booleans()), draw(st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]))
    padded, null_first = draw(st.booleans()), draw(st.booleans())
    bare, full = [b": open" + end], [b": open" + end]
    for text in draw(st.lists(texts, max_size=6)):
        padding: JSONObject = {"obfuscation": "xY"} if padded else {}
        bare.append(b"data: " + chunk(text, pretty=pretty, **padding) + end)
        nulls: JSONObject = padding | {"usage": None} if null_first else {"usage": None} | padding
        full.append(b"data: " + chunk(text, pretty=pretty, **nulls) + end)
    last = json.dumps({"id": "c1", "choices": [], "usage": USAGE}, separators=None if pretty else (",", ":")).encode()
    done = b"data: [DONE]" + end
    return b"".join([*bare, done]), b"".join([*full, b"data: " + last + end, done])


def filtered(pieces: list[bytes]) -> bytes:
    stage = UsageChunks(Losses())
    return b"".join([*map(stage.feed, pieces), stage.close()])


def each_way(pieces: list[bytes], *, on: bool) -> tuple[list[bytes], list[Loss]]:
    """Return what is passed on of each piece, and what is lost, with shortcuts or without."""
    losses = Losses()
    stage = UsageChunks(losses)
    with switched(on=on):
        return [*map(stage.feed, pieces), stage.close()], [*losses]


@given(data=st.data(), pair=pairs())
def test_the_stream_is_as_without_the_option_pitfall_101(data: st.DataObject, pair: tuple[bytes, bytes]) -> None:
    bare, full = pair
    assert filtered(data.draw(cuttings(full))) == bare


@given(data=st.data(), pair=pairs())
def test_the_short_way_gives_what_the_general_one_gives(data: st.DataObject, pair: tuple[bytes, bytes]) -> None:
    pieces = data.draw(cuttings(pair[1]))
    assert each_way(pieces, on=True) == each_way(pieces, on=False)


ODD = (
    b'data: {"choices":[],"usage":{"prompt_tokens":1},"timings":{"n":1}}\n\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":1},"usage":null}\n\n',
    b'data: {"choices":[{"usage":1}],"usage":null}\n\n',
    b'data: {"choices":[ ],"usage":{"prompt_tokens":1},"obfuscation":"a"}\n\n',
    b'data:{"choices":[],"usage":{"prompt_tokens":1}}\n\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":1}}\r\n\n',
    b'data: {"choices":[],\rdata: "usage":{"prompt_tokens":1}}\n\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\ndata: [DONE]\n\n',
    b'event: a\ndata: {"choices":[],"usage":{"prompt_tokens":1}}\n\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":1}\n\n',
    b'data: {"choices":[{}],"usage":{"prompt_tokens":1}}\n\n',
    b'data: {"choices":[],"usage":[]}\n\n',
    b': "usage":1,"usage":null}\n\n',
    b'\n\ndata: {"choices":[],"usage":{"prompt_tokens":1}}\n\n',
)
"""Frames that are nearly as usual."""


@pytest.mark.parametrize("frame", ODD)
def test_at_every_cut_the_short_way_gives_what_the_general_one_gives(frame: bytes) -> None:
    data = b'data: {"choices":[{"delta":{"content":"a"}}],"usage":null}\n\n' + frame
    for at in range(len(data)):
        assert (at, each_way([data[:at], data[at:]], on=True)) == (at, each_way([data[:at], data[at:]], on=False))


@given(data=st.data(), pair=pairs())
def test_a_stream_without_usage_is_unchanged(data: st.DataObject, pair: tuple[bytes, bytes]) -> None:
    bare, _ = pair
    assert filtered(data.draw(cuttings(bare))) == bare


def test_each_read_leaves_at_once_as_far_as_its_frames_are_whole() -> None:
    stage = UsageChunks(Losses())
    frame = b"data: " + chunk("Hi", pretty=False) + b"\n\n"
    assert [stage.feed(frame + frame[:9]), stage.feed(frame[9:]), stage.close()] == [frame, frame, b""]


def nested(number: int) -> bytes:
    """Return a list of objects that each have a usage of null."""
    return b"[" + b",".join([b'{"a":1,"usage":null}'] * number) + b"]"


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        pytest.param(
            b'{"choices":%s,"x":1, "usage" : null }' % nested(2), b'{"choices":%s,"x":1 }' % nested(2), id="last"
        ),
        pytest.param(
            b'{"id":"c","usage": null, "choices":%s}' % nested(2), b'{"id":"c", "choices":%s}' % nested(2), id="first"
        ),
        pytest.param(
            b'{"x": %s,"usage": null, "choices": %s}' % (nested(2), nested(2)),
            b'{"x":%s,"choices":%s}' % (nested(2), nested(2)),
            id="between",
        ),
        pytest.param(b'{"us\\u0061ge": null, "choices": [] }', b'{"choices":[]}', id="escaped"),
    ],
)
def test_only_the_usage_of_the_chunk_itself_is_taken_out(chunk: bytes, expected: bytes) -> None:
    frame = b'data: %s\ndata2: "usage"\n\n'
    assert filtered([frame % chunk]) == frame % expected


def test_many_nested_nulls_cost_no_more_readings_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk of 1 MB with 50,000 of them was read once for each: minutes in the event loop."""
    read: list[int] = []
    members = stream_usage._members

    def counted(data: bytes) -> object:
        read.append(len(data))
        return members(data)

    monkeypatch.setattr(stream_usage, "_members", counted)
    frame = b'data: {"choices":%s, "usage" : null }\n\n' % nested(50_000)
    assert filtered([frame]) == b'data: {"choices":%s }\n\n' % nested(50_000)
    assert sum(read) <= 3 * len(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(
            b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}\n\n',
            id="usage-beside-a-choice",
        ),
        pytest.param(b'data: {"choices":[{"index":0,"delta":{},"usage":{"prompt_tokens":1}}]}\n\n', id="on-the-choice"),
        pytest.param(b'data: {"choices":[],"usage":7}\n\n', id="no-object"),
        pytest.param(b'data: {"choices":[],"usage":{}\n\n', id="no-json"),
        pytest.param(b'event: error\ndata: {"error":{"usage":null}}\n\n', id="an-error"),
    ],
)
def test_what_is_not_the_usage_chunk_stays(frame: bytes) -> None:
    assert filtered([frame]) == frame


def test_what_is_lost_with_the_chunk_is_reported() -> None:
    losses = Losses()
    stage = UsageChunks(losses)
    assert stage.feed(b'data: {"choices":[],"usage":{},"timings":{"prompt_n":1},"model":"m"}\n\n') == b""
    assert [(loss.where, loss.what, loss.how) for loss in losses] == [("$", "timings", "dropped")]


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        pytest.param(
            b'{"model":"m","stream":true} \n',
            b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
            id="not-set",
        ),
        pytest.param(
            b'{"model": "m","stream_options":{"include_usage":false,"include_obfuscation":false},"n": 1}',
            b'{"model":"m","stream_options":{"include_usage":true,"include_obfuscation":false},"n":1}',
            id="declined",
        ),
        pytest.param(b'{"stream_options":null}', b'{"stream_options":{"include_usage":true}}', id="null-is-not-set"),
        pytest.param(
            b'{"messages":"\\"stream_options\\""}',
            b'{"messages":"\\"stream_options\\"","stream_options":{"include_usage":true}}',
            id="a-text-with-the-name",
        ),
        pytest.param(b'{"stream_options":7}', b'{"stream_options":7}', id="invalid"),
    ],
)
def test_the_option_is_added_to_the_clients_bytes(body: bytes, sent: bytes) -> None:
    assert request_usage(body) == sent
