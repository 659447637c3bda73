"""What is fuzzed: functions that take any bytes, and raise nothing where all is well.

Each reads as a stranger's bytes are read in the house; the errors that the house has for what cannot be read are well,
everything else is a crash. `corpus` gives the lawful bytes to begin with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tests.laws.vectors import framed_lines
from tests.laws.vendor_streams import VENDORS
from tests.shortcuts import switched
from xenoglot.backends.http.http1 import ResponseParser
from xenoglot.backends.http.timeouts import TransportLimits
from xenoglot.backends.retry_after import retry_after
from xenoglot.codec.framing.formats import ArrayDecoder, LineDecoder
from xenoglot.codec.framing.sse import SSEDecoder
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_answer, decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.checks import bounded
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target as Server
from xenoglot.dialect_registry import get, names
from xenoglot.engine.errors import EngineError
from xenoglot.engine.server.weights import from_path
from xenoglot.errors import ConfigurationError, FailureError, WireError
from xenoglot.gateway.config.load import check
from xenoglot.http1.body import ChunkedBody
from xenoglot.http1.request_head import decode_head, find_end
from xenoglot.http1.syntax import FramingError
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Request
from xenoglot.testing.raw_http import MessageReader
from xenoglot.testing.script_file import read as read_script
from xenoglot.text import registry
from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.json.partial import PartialJSON
from xenoglot.text.parser.text_parser import parser

if TYPE_CHECKING:
    from xenoglot.codec.stage import Stage
    from xenoglot.model.json import JSON

VECTORS = Path(__file__).parent.parent / "vectors"
CRASHES = Path(__file__).parent / "crashes"
"""What once crashed a target, in a folder of its name: part of its corpus for ever."""

WELL = (WireError, FailureError)
ASKING = Request(model="m", stream=True, stream_usage=True)
STATUSES = (400, 401, 404, 408, 413, 422, 429, 500, 502, 503, 529)


class Target(Struct, frozen=True):
    """A function that is fuzzed, and the bytes to begin with."""

    fuzz: Callable[[bytes], None]
    corpus: Callable[[], Iterable[bytes]]


def halves(data: bytes) -> tuple[bytes, bytes]:
    """Return the data cut where its first byte says, the rest of it in two pieces."""
    if not data:
        return b"", b""
    at = data[0] * (len(data) - 1) // 255 + 1
    return data[1:at], data[at:]


def cut_anywhere(make: Callable[[], Stage[bytes, object]], data: bytes) -> None:
    """Read two pieces, and the whole of them: both give the same, or both refuse."""

    def made(*pieces: bytes) -> object:
        try:
            return list(through(pieces, make()))
        except WireError:
            return "refused"

    first, second = halves(data)
    assert made(first, second) == made(first + second)


def read_json(data: bytes) -> None:
    """Read JSON strictly and leniently: what is read is what another reader reads, and goes home."""
    try:
        value = decode_json(data)
    except WireError:
        with suppress(WireError):
            encode_json(decode_answer(data))
        return
    assert decode_answer(data) == value
    assert json.loads(data) == value
    assert decode_json(encode_json(value)) == value


def read_partial(data: bytes) -> None:
    """Read JSON as it comes: what is whole is what is read at once, and cuts make no difference."""
    text = data.decode("utf-8", "replace")
    at = len(text) * data[0] // 256 if data else 0
    once, twice = PartialJSON(), PartialJSON()
    once.feed(text)
    twice.feed(text[:at])
    _ = twice.value
    twice.feed(text[at:])
    assert (once.value, once.complete, once.invalid_at) == (twice.value, twice.complete, twice.invalid_at)
    once.close()
    if once.complete:
        assert decode_json(text) == once.value


def read_request(name: str, data: bytes) -> None:
    """Read a request of a dialect; what is read can be written again, and then read."""
    dialect = get(name)
    with suppress(*WELL):
        request = dialect.decode_request(decode_json(data))
        written = dialect.encode_request(request, Losses(), Server())
        dialect.decode_request(decode_json(encode_json(written)))


def read_response(name: str, data: bytes) -> None:
    """Read a whole answer of a dialect; what is read can be written, unfolded and folded."""
    dialect = get(name)
    with suppress(*WELL):
        response = dialect.decode_response(decode_answer(data))
        encode_json(dialect.encode_response(response, Request(model="m"), Losses()))
        fold(unfold(response))


def read_error(name: str, data: bytes) -> None:
    """Read a refusal of a dialect; whatever it is, it is one, and can be written as one."""
    dialect = get(name)
    status = STATUSES[data[0] % len(STATUSES)] if data else STATUSES[0]
    body: JSON = None
    with suppress(WireError):
        body = decode_answer(data[1:])
    status, told = dialect.encode_error(dialect.decode_error(status, body))
    assert 400 <= status <= 599
    encode_json(told)


def read_stream(name: str, data: bytes) -> None:
    """Read a stream of a dialect, in two pieces: its events are lawful, and can be written as a stream."""
    dialect = get(name)
    decoder = Pipeline(dialect.framing.decoder(), dialect.stream_decoder(), Grammar())
    asked = Request(model="m", stream=True, stream_usage=True)
    encoder = Pipeline(dialect.stream_encoder(asked, Losses()), dialect.framing.encoder())
    with suppress(*WELL):
        for event in through(halves(data), decoder):
            encoder.feed(event)
        encoder.close()


def shortcut_stream(name: str, data: bytes) -> None:
    """Read a stream in two pieces and translate it, with and without shortcuts: events, bytes, losses are the same."""
    dialect, client = get(name), get(names()[data[0] % len(names())] if data else names()[0])
    pieces = halves(data[1:])

    def told() -> object:
        losses = Losses()
        reading = StreamReader(dialect.framing, dialect.stream_decoder())
        writing = StreamWriter(Pipeline(), client.stream_encoder(ASKING, losses), client.framing)
        said: list[object] = []
        try:
            for piece in pieces:
                said += [events := reading.feed(piece), writing.write(events)]
            said += [events := reading.close(), writing.write(events), writing.close()]
        except WELL as error:
            said.append(str(error))
        return said, [*losses]

    same_without_shortcuts(told)


def shortcut_request(name: str, data: bytes) -> None:
    """Read a request and write it for another server, with shortcuts and without."""
    dialect, server = get(name), get(names()[data[0] % len(names())] if data else names()[0])

    def told() -> object:
        losses = Losses()
        try:
            request = bounded(dialect.decode_request(decode_json(data[1:])))
        except WELL as error:
            return str(error)
        try:
            return request, encode_json(server.encode_request(request, losses, Server())), [*losses]
        except WELL as error:
            return request, str(error), [*losses]

    same_without_shortcuts(told)


def shortcut_response(name: str, data: bytes) -> None:
    """Read a whole answer and write it for a client, with shortcuts and without; a glimpse of it is the same, too."""
    dialect, client = get(name), get(names()[data[0] % len(names())] if data else names()[0])

    def told() -> object:
        losses = Losses()
        glimpsed = None if dialect.glimpse is None else dialect.glimpse(data[1:])
        try:
            response = dialect.decode_response(decode_answer(data[1:]))
        except WELL as error:
            assert glimpsed is None
            return str(error)
        if glimpsed is not None:
            usage, (candidate,) = response.usage, response.candidates
            plain = None if usage is None else replace(usage, extra=None)
            assert candidate.finish is not None
            assert glimpsed == (plain, candidate.finish.reason)
        try:
            return response, encode_json(client.encode_response(response, ASKING, losses)), [*losses]
        except WELL as error:
            return response, str(error), [*losses]

    same_without_shortcuts(told)


def same_without_shortcuts(told: Callable[[], object]) -> None:
    """Do the same with shortcuts and in the general way."""
    with switched(on=True):
        short = told()
    with switched(on=False):
        assert told() == short


def read_response_head(data: bytes) -> None:
    """Read what an upstream sends: the parser ends each body, or says what is wrong."""
    reader = ResponseParser(TransportLimits())
    reader.begin("POST")
    for piece in halves(data):
        reader.feed(piece)
        assert not (reader.complete and reader.error and reader.reusable)
    reader.end()
    assert reader.complete or reader.error
    if reader.head is not None:
        retry_after(dict(reader.head.headers), 0.0)


def read_request_head(data: bytes) -> None:
    """Read what a client sends: a head, or a refusal with a status."""
    with suppress(FramingError):
        end = find_end(data, 0)
        if end:
            decode_head(data[:end])
            ChunkedBody().feed(data[end:])


def read_message(kind: str, data: bytes) -> None:
    """Read what a raw client or a scripted server gets: anything at all, and none of it twice."""
    whole, cut = MessageReader(kind), MessageReader(kind)  # type: ignore[arg-type]  # one of the two
    first, second = halves(data)
    whole.feed(first + second)
    cut.feed(first)
    if not cut.complete:
        cut.feed(second)
        assert (whole.status, whole.body, whole.complete, whole.surplus) == (
            cut.status,
            cut.body,
            cut.complete,
            cut.surplus,
        )


def read_text(data: bytes) -> None:
    """Read what a model wrote, in two pieces, by the syntax that the first byte names."""
    rows = (*registry.names(), registry.AUTO)
    row = registry.get(rows[data[0] % len(rows)] if data else rows[0])
    first, second = (piece.decode("utf-8", "replace") for piece in halves(data[1:]))
    stage = parser(row, DeclaredTools.of(()), thinking=False)
    stage.feed(first)
    stage.feed(second)
    stage.close()


def read_weights(data: bytes) -> None:
    """Read a model file's head."""
    with TemporaryDirectory() as folder, suppress(EngineError):
        path = Path(folder) / "model.gguf"
        path.write_bytes(data)
        from_path(path)


def read_configuration(data: bytes) -> None:
    """Check a configuration."""
    with suppress(WireError, ConfigurationError):
        plain = decode_json(data)
        if isinstance(plain, dict):
            check(plain, {}, "the fuzzer")


def read_bench(data: bytes) -> None:
    """Read a script of the test bench."""
    with suppress(ConfigurationError):
        read_script(data.decode("utf-8", "replace"), CRASHES).rules()


def files(*patterns: str) -> Iterator[bytes]:
    """Yield the vectors of these patterns."""
    for pattern in patterns:
        for path in sorted(VECTORS.glob(pattern)):
            yield path.read_bytes()


def after(*prefixes: bytes, of: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each of `of` behind a byte that steers the target, in turns."""
    for number, data in enumerate(of):
        yield prefixes[number % len(prefixes)] + data


MIDDLE = (b"\0", b"\x80", b"\xff")
HEADS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 X\r\nRetry-After: 3\r\nretry-after-ms: 9\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 204 No Content\r\nX: \xff\r\n\r\n",
)
ASKED = (
    b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: y\r\n\r\n",
    b"GET /health?x=y HTTP/1.0\r\nHost: [::1]:80\r\nConnection: keep-alive, x\r\n\r\n",
    b"POST http://x/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)
CONFIGURATIONS: tuple[JSON, ...] = (
    {
        "server": {"port": 0},
        "upstreams": {"one": {"dialect": "chat", "base_url": "http://x/v1", "retry": {"attempts": 2}}},
        "models": [{"name": "*", "upstream": "one", "model": "m"}],
        "store": {"url": "off"},
        "keys": {"env": ["K"]},
    },
    {
        "models": [{"name": "a", "targets": [{"upstream": "one", "weight": 2.5}], "strategy": "ordered"}],
        "upstreams": {
            "one": {
                "dialect": "messages",
                "base_url": "https://x",
                "limits": {"requests": ["60/1m"], "concurrency": 3},
            },
        },
    },
)
SCRIPTS = (
    b'[[rule]]\nwhen = { path = "/v1/*" }\nsteps = [{ do = "respond", status = 503, headers = { a = "b" } }]\n',
    b'[[rule]]\nanswer = { dialect = "chat", text = ["a"], then = "cut", upto = 2 }\ntimes = 1\n',
)


def texts() -> Iterator[bytes]:
    """Yield what models wrote, each for the syntax whose number stands before it."""
    rows = (*registry.names(), registry.AUTO)
    for path in sorted(VECTORS.glob("text/*/*.json")):
        vector = json.loads(path.read_bytes())
        if path.parent.name in rows and isinstance(vector.get("text"), str):
            steer = bytes([rows.index(path.parent.name) % 256, 128])
            yield steer + vector["text"].encode("utf-8", "replace")


def of_dialect(name: str) -> dict[str, Target]:
    """Return the targets that read what a dialect's clients and servers write."""
    errors = partial(files, f"{name}/*/error.json")
    streams = partial(framed, name)
    return {
        f"{name}-request": Target(partial(read_request, name), partial(files, f"{name}/*/request.json")),
        f"{name}-response": Target(partial(read_response, name), partial(files, f"{name}/*/response.json")),
        f"{name}-error": Target(partial(read_error, name), lambda: after(b"\0", b"\4", b"\7", of=errors())),
        f"{name}-stream": Target(partial(read_stream, name), lambda: after(*MIDDLE, of=streams())),
        f"{name}-shortcut-stream": Target(partial(shortcut_stream, name), lambda: steered(vendor_streams(name))),
        f"{name}-shortcut-request": Target(
            partial(shortcut_request, name), lambda: steered(files(f"{name}/*/request.json"))
        ),
        f"{name}-shortcut-response": Target(
            partial(shortcut_response, name), lambda: steered(files(f"{name}/*/response.json"))
        ),
    }


def framed(name: str) -> Iterator[bytes]:
    """Yield the streams of a dialect's vectors as they are on the wire."""
    yield from files(f"{name}/*/stream.sse", f"{name}/*/stream.ndjson")
    yield from map(framed_lines, files(f"{name}/*/stream.jsonl"))


def vendor_streams(name: str) -> Iterator[bytes]:
    """Yield streams of a dialect as vendors write them, each behind a byte that says where it is cut."""
    of_vendors = (vendor.stream(4) for vendor in VENDORS if vendor.dialect_name == name)
    return after(*MIDDLE, of=(*of_vendors, *hello_streams(name)))


def hello_streams(name: str) -> Iterator[bytes]:
    """Yield the streams of the least answers of a dialect."""
    yield from files(f"{name}/hello*/stream.sse", f"{name}/hello*/stream.ndjson")
    yield from map(framed_lines, files(f"{name}/hello*/stream.jsonl"))


def steered(of: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each behind a byte that says which dialect it is translated to, in turns."""
    return after(*(bytes([number]) for number in range(len(names()))), of=of)


@cache
def targets() -> dict[str, Target]:
    """Return all targets by their names."""
    streams = partial(files, "*/*/stream.sse")
    lines = partial(files, "*/*/stream.ndjson")
    values = partial(files, "*/*/response.json")
    common = {
        "sse": Target(partial(cut_anywhere, SSEDecoder), lambda: after(*MIDDLE, of=streams())),
        "lines": Target(partial(cut_anywhere, LineDecoder), lambda: after(*MIDDLE, of=lines())),
        "array": Target(
            partial(cut_anywhere, ArrayDecoder), lambda: after(*MIDDLE, of=(b"[%b]" % one for one in values()))
        ),
        "json": Target(read_json, values),
        "partial-json": Target(read_partial, values),
        "response-head": Target(read_response_head, lambda: after(*MIDDLE, of=HEADS)),
        "request-head": Target(read_request_head, lambda: iter(ASKED)),
        "raw-response": Target(partial(read_message, "response"), lambda: after(*MIDDLE, of=HEADS)),
        "raw-request": Target(partial(read_message, "request"), lambda: after(*MIDDLE, of=ASKED)),
        "text": Target(read_text, texts),
        "weights": Target(read_weights, lambda: iter((b"GGUF\3\0\0\0", b"GGUF\1\0\0\0"))),
        "configuration": Target(read_configuration, lambda: map(encode_json, CONFIGURATIONS)),
        "script": Target(read_bench, lambda: iter(SCRIPTS)),
    }
    return common | {key: target for name in names() for key, target in of_dialect(name).items()}


def crashes(name: str) -> list[bytes]:
    """Return what once crashed a target."""
    return [path.read_bytes() for path in sorted((CRASHES / name).glob("*")) if path.is_file()]
