"""Replay of recorded exchanges, and a round-trip check of recordings by our codecs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.json import encode
from msgspec.json import format as formatted
from msgspec.structs import replace

from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.url_params import addressed, informed
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import XenoglotError
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.testing.cassette import REFUSED
from xenoglot.testing.script import Body, Close, End, Pause, RequestMatcher, ResponseHead, ScriptRule, canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Request
    from xenoglot.testing.cassette import RecordedExchange
    from xenoglot.testing.script import Step, Steps

SHOWN = 200
"""Characters of a difference that are shown."""


def replayed(exchanges: Sequence[RecordedExchange], *, timing: bool = False) -> tuple[ScriptRule, ...]:
    """Return rules that answer each request as recorded, matched by method, path and the JSON value of the body.

    Several equal requests get their answers in order, and the last one from then on. With `timing` the recorded pauses
    are kept.
    """
    keys = [_key(exchange) for exchange in exchanges]
    return tuple(
        ScriptRule(
            steps=steps(exchange, timing=timing),
            when=keys[index],
            times=1 if keys[index] in keys[index + 1 :] else None,
        )
        for index, exchange in enumerate(exchanges)
        if exchange.meta.status
    )


def steps(exchange: RecordedExchange, *, timing: bool = False) -> Steps:
    """Return the steps of a recorded answer, read by read."""
    meta = exchange.meta
    told = [(name, value) for name, value in meta.headers if name not in {"content-length", "content-encoding"}]
    length = None if exchange.streamed or meta.ending == "cut" else len(exchange.body)
    made: list[Step] = [ResponseHead(status=meta.status, headers=tuple(told), length=length)]
    at = 0
    for (before, _), (seconds, size) in pairwise(((0.0, 0), *meta.chunks)):
        if timing:
            made.append(Pause(max(seconds - before, 0.0)))
        made.append(Body(exchange.body[at : at + size]))
        at += size
    if rest := exchange.body[at:]:  # a folder written by hand need not tell its reads
        made.append(Body(rest))
    return (*made, Close() if meta.ending == "cut" else End())


def recheck(exchange: RecordedExchange) -> Iterator[str]:
    """Decode and encode a recording by the codecs of its dialect; yield the differences, a line each."""
    meta = exchange.meta
    if not meta.dialect:
        return
    dialect = get(meta.dialect)
    for what, check in _checks(exchange):
        try:
            difference = check(exchange, dialect)
        except XenoglotError as error:
            difference = str(error)
        if difference:
            yield f"{what}: {difference}"


def _checks(exchange: RecordedExchange) -> tuple[tuple[str, Callable[[RecordedExchange, Dialect], str | None]], ...]:
    """Return what can be compared; a rejected request may be invalid in the dialect."""
    if exchange.meta.status >= REFUSED:
        return (("error", _answer),)
    return (("request", _request), ("stream", _stream) if exchange.streamed else ("response", _answer))


def _key(exchange: RecordedExchange) -> RequestMatcher:
    meta = exchange.meta
    return RequestMatcher(method=meta.method, path=_literal(meta.path), body=canonical(exchange.request))


def _literal(path: str) -> str:
    """Return a path as a pattern that only it meets."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def _decode_request(exchange: RecordedExchange, dialect: Dialect) -> Request:
    said = informed(decode_json(exchange.request), exchange.meta.path, _variables(exchange, dialect), dialect)
    return dialect.decode_request(said)


def _variables(exchange: RecordedExchange, dialect: Dialect) -> dict[str, str]:
    """Return the variables in the path, like the model's name."""
    if "{model}" not in dialect.path:
        return {}
    before = dialect.path.partition("{model}")[0].rpartition("/v1")[2].lstrip("abcdefghijklmnopqrstuvwxyz0123456789")
    return {"model": exchange.meta.path.partition(before)[2].rpartition(":")[0]}


def _request(exchange: RecordedExchange, dialect: Dialect) -> str | None:
    losses = Losses()
    home = dialect.encode_request(_decode_request(exchange, dialect), losses, Target())
    _, _, body = addressed(home, dialect)
    return _difference(decode_json(exchange.request), body)


def _answer(exchange: RecordedExchange, dialect: Dialect) -> str | None:
    body = decode_json(exchange.body)
    if exchange.meta.status >= REFUSED:
        status, again = dialect.encode_error(dialect.decode_error(exchange.meta.status, body))
        return _difference([exchange.meta.status, body], [status, again])
    return _difference(
        body, dialect.encode_response(dialect.decode_response(body), _decode_request(exchange, dialect), Losses())
    )


def _stream(exchange: RecordedExchange, dialect: Dialect) -> str | None:
    """Compare the response of a stream with that of the stream encoded again."""
    decoder = Pipeline(dialect.framing.decoder(), dialect.stream_decoder(), Grammar())
    events = list(through((exchange.body,), decoder))
    asked = replace(_decode_request(exchange, dialect), stream=True, stream_usage=True)
    written = through(events, dialect.stream_encoder(asked, Losses()))
    once, again = fold(events), fold(through(written, dialect.stream_decoder()))
    if isinstance(once, Failure) and isinstance(again, Failure):
        return _difference([once.kind, once.message], [again.kind, again.message])
    return None if once == again else _first_difference(formatted(encode(once)), formatted(encode(again)))


def _difference(was: JSON, now: JSON) -> str | None:
    before, after = (formatted(encode(value, order="sorted")) for value in (was, now))
    return None if before == after else _first_difference(before, after)


def _first_difference(before: bytes, after: bytes) -> str:
    lines = zip((*before.splitlines(), b""), (*after.splitlines(), b""), strict=False)
    was, now = next(((one.strip(), other.strip()) for one, other in lines if one != other), (b"", b""))
    return f"`{was.decode()[:SHOWN]}` became `{now.decode()[:SHOWN]}`"
