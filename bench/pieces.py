"""What is measured of the hot path, piece by piece: each stage of it alone, and the whole of it without sockets.

A piece is made when it is its turn, and only then imports what it measures: where another tree of the sources is
measured that has not all of them, or has them otherwise, the others are measured all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bench.inmemory import Answer, Load, asked, spent, streamed, whole
from bench.samples import MODEL, agent, answer, body, frames, small, spoken, written
from xenoglot.codec.json.json_io import decode_answer, decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.checks import bounded
from xenoglot.codec.stage import Pipeline, Stage, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.fold import Folder, unfold
from xenoglot.translate import stream_translator, translate_request, translate_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xenoglot.model.events import Event
    from xenoglot.model.request import Request

    Item = TypeVar("Item")

    Make = Callable[[], Callable[[], object]]

ROUND_SECONDS = 0.008
"""How long one round is: long for the clock, short for whatever else the machine does."""

DIALECTS = ("chat", "messages", "responses")
PAIRS = (("messages", "chat"), ("chat", "messages"), ("responses", "chat"), ("chat", "responses"))
BATCH = 16
"""Events of one read, where several come at once."""

STREAM = 500
"""Tokens of a stream that is read or written whole."""

SHORT, LONG = 50, 250
"""Tokens of two streams whose difference is what the tokens cost."""


class Piece(Struct, frozen=True):
    """One row: where it belongs, its name, what it is for one of, and how it is measured.

    `measure` gives the seconds of CPU for one unit, for each of so many rounds.
    """

    part: str
    name: str
    unit: str
    measure: Callable[[int], list[float]]


def timed(make: Make, units: int = 1) -> Callable[[int], list[float]]:
    """Return a measurement of the function that `make` gives, which does so many units in a call."""
    return partial(_timed, make, units)


def _timed(make: Make, units: int, rounds: int) -> list[float]:
    work = make()
    work()
    times = _calls(work)
    return [_round(work, times) / (times * units) for _ in range(rounds)]


def _calls(work: Callable[[], object]) -> int:
    """Return how many calls take about as long as a round has to."""
    for power in count():
        taken = _round(work, 1 << power)
        if taken > ROUND_SECONDS / 4:
            return max(1, round((1 << power) * ROUND_SECONDS / taken))
    raise AssertionError("count() does not end")


def _round(work: Callable[[], object], times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        work()
    return time.process_time() - begun


def pieces() -> Iterator[Piece]:
    """Yield every piece, in the order of a request's way."""
    yield Piece("server", "head of a request", "request", timed(_head))
    yield from _requests("1 kB", small())
    yield from _requests("agent", agent())
    yield Piece("upstream", "head of its response", "request", timed(_response_head))
    yield Piece("upstream", "a chunk of it", "event", timed(partial(_chunk, 1)))
    yield from _answers()
    yield from _streams()
    yield from _gateway()


# Requests.


def _requests(size: str, request: Request) -> Iterator[Piece]:
    part = f"request, {size}"
    yield Piece(part, "JSON read", "request", timed(partial(_read, request)))
    for name in DIALECTS:
        yield Piece(part, f"{name}: decode", "request", timed(partial(_decode, name, request)))
    for name in DIALECTS:
        yield Piece(part, f"{name}: bytes to request", "request", timed(partial(_from_bytes, name, request)))
    for name in DIALECTS:
        yield Piece(part, f"{name}: encode", "request", timed(partial(_encode, name, request)))
    yield Piece(part, "JSON written", "request", timed(partial(_write, request)))
    yield Piece(part, "same bytes: duplicate names", "request", timed(partial(_unambiguous, request)))
    for source, target in PAIRS:
        yield Piece(part, f"{source} > {target}, bytes", "request", timed(partial(_across, source, target, request)))


def _read(request: Request) -> Callable[[], object]:
    return partial(decode_json, written("messages", request))


def _write(request: Request) -> Callable[[], object]:
    return partial(encode_json, body("chat", request))


def _decode(name: str, request: Request) -> Callable[[], object]:
    return partial(get(name).decode_request, body(name, request))


def _from_bytes(name: str, request: Request) -> Callable[[], object]:
    """Read a request as the gateway does."""
    data, decode = written(name, request), get(name).decode_request
    return lambda: bounded(decode(decode_json(data)))


def _encode(name: str, request: Request) -> Callable[[], object]:
    encode, target = get(name).encode_request, Target()
    return lambda: encode(request, Losses(), target)


def _unambiguous(request: Request) -> Callable[[], object]:
    from xenoglot.codec.json.json_io import unambiguous  # noqa: PLC0415  the head of this module says why

    data = written("chat", request)
    return partial(unambiguous, data, decode_json(data))


def _across(source: str, target: str, request: Request) -> Callable[[], object]:
    data = written(source, request)
    return lambda: encode_json(translate_request(decode_json(data), source, target, Losses()))


# HTTP.


def _head() -> Callable[[], object]:
    from xenoglot.http1.request_head import decode_head, find_end  # noqa: PLC0415  as above

    data = asked("/v1/messages", b"{}")
    return lambda: decode_head(data[: find_end(data, 0)])


def _response_head() -> Callable[[], object]:
    from xenoglot.backends.http.http1 import ResponseParser  # noqa: PLC0415  as above
    from xenoglot.backends.http.timeouts import TransportLimits  # noqa: PLC0415

    parser, data = ResponseParser(TransportLimits()), whole(answer("chat").body).reads[0]

    def work() -> None:
        parser.begin("POST")
        parser.feed(data)

    return work


def _chunk(events: int) -> Callable[[], object]:
    from xenoglot.backends.http.http1 import ResponseParser  # noqa: PLC0415  as above
    from xenoglot.backends.http.timeouts import TransportLimits  # noqa: PLC0415

    reads = streamed("text/event-stream", (frames("chat").token * events,) * 3).reads
    parser = ResponseParser(TransportLimits())
    parser.begin("POST")
    parser.feed(reads[0])
    return partial(parser.feed, reads[1])


# Answers.


def _answers() -> Iterator[Piece]:
    for name in DIALECTS:
        yield Piece("answer", f"{name}: JSON read and decode", "answer", timed(partial(_decode_answer, name)))
        yield Piece("answer", f"{name}: usage and end of one that passes", "answer", timed(partial(_glimpse, name)))
    yield Piece("answer", "unfold and fold", "answer", timed(_folded))
    for name in DIALECTS:
        yield Piece("answer", f"{name}: encode, JSON written", "answer", timed(partial(_encode_answer, name)))
    for source, target in PAIRS:
        yield Piece("answer", f"{target} > {source}, bytes", "answer", timed(partial(_answer_across, target, source)))


def _decode_answer(name: str) -> Callable[[], object]:
    decode, data = get(name).decode_response, answer(name).body
    return lambda: decode(decode_answer(data))


def _glimpse(name: str) -> Callable[[], object]:
    """Read of an answer what the log wants to know, as the gateway does where the bytes pass."""
    glimpse, data = getattr(get(name), "glimpse", None), answer(name).body
    if glimpse is not None and glimpse(data) is not None:
        return partial(glimpse, data)
    return _decode_answer(name)


def _folded() -> Callable[[], object]:
    response = answer("chat").response

    def work() -> object:
        folder = Folder()
        for event in unfold(response):
            folder.feed(event)
        return folder.response()

    return work


def _encode_answer(name: str) -> Callable[[], object]:
    encode, response, request = get(name).encode_response, answer(name).response, small()
    return lambda: encode_json(encode(response, request, Losses()))


def _answer_across(source: str, target: str) -> Callable[[], object]:
    data, request = answer(source).body, small()
    return lambda: encode_json(translate_response(decode_answer(data), source, target, Losses(), request))


# Streams.


def _streams() -> Iterator[Piece]:
    for name in DIALECTS:
        yield Piece("stream", f"{name}: bytes to events", "event", timed(partial(_decode_stream, name), STREAM))
    for name in DIALECTS:
        yield Piece("stream", f"{name}: events to bytes", "event", timed(partial(_encode_stream, name), STREAM))
    for name in DIALECTS:
        yield Piece("stream", f"{name}: decode, the general way", "event", timed(partial(_decode_event, name)))
        yield Piece("stream", f"{name}: encode, the general way", "event", timed(partial(_encode_event, name)))
    yield Piece("stream", "server-sent events told apart", "event", timed(_split))
    for source, target in PAIRS:
        for together, read in ((1, "a read each"), (BATCH, f"{BATCH} a read")):
            work = partial(_stream_across, target, source, together)
            yield Piece("stream", f"{target} > {source}, bytes, {read}", "event", timed(work, STREAM))


def _decode_stream(name: str) -> Callable[[], object]:
    """Read a whole stream, as the gateway does."""
    dialect, frames = get(name), spoken(name, STREAM).frames
    try:
        from xenoglot.codec.framing.stream_reader import StreamReader  # noqa: PLC0415  as above
    except ImportError:
        return lambda: _fed(Pipeline(dialect.framing.decoder(), dialect.stream_decoder()), frames)
    return lambda: _fed(StreamReader(dialect.framing, dialect.stream_decoder()), frames)


def _encode_stream(name: str) -> Callable[[], object]:
    """Write one, as the gateway does, each event for itself."""
    dialect, request = get(name), small(stream=True)
    events = [[event] for event in through(spoken(name, STREAM).frames, _reading(name))]
    try:
        from xenoglot.codec.framing.stream_writer import StreamWriter  # noqa: PLC0415  as above
    except ImportError:
        return lambda: _fed(
            Pipeline(dialect.stream_encoder(request, Losses()), dialect.framing.encoder()),
            [event for (event,) in events],
        )

    def work() -> None:
        write = StreamWriter(_Same(), dialect.stream_encoder(request, Losses()), dialect.framing).write
        for batch in events:
            write(batch)

    return work


class _Same:
    """A stage that changes nothing."""

    def feed(self, item: Event, /) -> tuple[Event, ...]:
        return (item,)

    def close(self) -> tuple[Event, ...]:
        return ()


def _fed(stage: Stage[Item, object], items: Iterable[Item]) -> None:
    feed = stage.feed
    for item in items:
        feed(item)
    stage.close()


def _reading(name: str) -> Pipeline:
    return Pipeline(get(name).framing.decoder(), get(name).stream_decoder())


def _split() -> Callable[[], object]:
    splitter = get("chat").framing.decoder()
    return partial(splitter.feed, frames("chat").token)


def _decode_event(name: str) -> Callable[[], object]:
    splitter, decoder, parts = get(name).framing.decoder(), get(name).stream_decoder(), frames(name)
    for wire in through(parts.first, splitter):
        decoder.feed(wire)
    (token,) = get(name).framing.decoder().feed(parts.token)
    return partial(decoder.feed, token)


def _encode_event(name: str) -> Callable[[], object]:
    encoder, reading, parts = get(name).stream_encoder(small(stream=True), Losses()), _reading(name), frames(name)
    for frame in parts.first:
        for event in reading.feed(frame):
            encoder.feed(event)
    (token,) = reading.feed(parts.token)
    return partial(encoder.feed, token)


def _stream_across(source: str, target: str, together: int) -> Callable[[], object]:
    frames = spoken(source, STREAM).frames
    reads = [b"".join(frames[at : at + together]) for at in range(0, len(frames), together)]
    return lambda: _fed(stream_translator(source, target, Losses()), reads)


# All of it.


def _gateway() -> Iterator[Piece]:
    for client, upstream in (("chat", "chat"), ("messages", "messages"), *PAIRS):
        name = f"{client} to {upstream}"
        load = Load(upstream, _asked(client, small()), whole(answer(upstream).body))
        yield Piece("gateway, no sockets", f"{name}, 1 kB", "request", partial(spent, load, 4))
        load = replace(load, request=_asked(client, agent()), connections=4)
        yield Piece("gateway, no sockets", f"{name}, agent", "request", partial(spent, load, 2))
        load = Load(upstream, _asked(client, small(stream=True)), Answer(()), stream=True, connections=4)
        yield Piece("gateway, no sockets", f"{name}, token", "event", partial(_token, load))
    load = Load("chat", asked("/health", b"", "GET"), whole(b""))
    yield Piece("gateway, no sockets", "health, where nobody else is asked", "request", partial(spent, load, 8))


def client_request(client: str, *, stream: bool) -> bytes:
    """Return a small request of a client of a dialect, as it is on the wire."""
    return _asked(client, small(stream=stream))


def _asked(client: str, request: Request) -> bytes:
    dialect = get(client)
    path = (dialect.stream_path or dialect.path) if request.stream else dialect.path
    return asked(path.replace("{model}", MODEL), written(client, request))


def _token(load: Load, rounds: int) -> list[float]:
    """Return what one token costs: the difference of a long stream and a short one."""
    short, long = (spent(replace(load, answer=told(load.upstream, tokens)), 1, rounds) for tokens in (SHORT, LONG))
    least = min(short)
    return [(taken - least) / (LONG - SHORT) for taken in long]


def told(dialect: str, tokens: int) -> Answer:
    """Return a stream of `dialect` in which each event is a read of its own."""
    return streamed(get(dialect).framing.media_type, spoken(dialect, tokens).frames)
