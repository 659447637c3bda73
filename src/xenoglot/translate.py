"""Translation as plain functions: a request, a response or a stream of one dialect, written in another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, overload

from xenoglot.codec.framing.formats import JSON_LINES
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import is_placeholder
from xenoglot.codec.requests.adapt_request import encode_fitted
from xenoglot.codec.requests.custom_tools import UnwrapCustom
from xenoglot.codec.requests.names import RestoreNames
from xenoglot.codec.responses.answer_repair import FinishLosses, UniqueIds, with_finish
from xenoglot.codec.responses.reasoning import reasoning_filter
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import canonical, get
from xenoglot.errors import WireError
from xenoglot.model.fold import Folder, unfold
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Response

_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?(?:data|event|id|retry)?:")
_HEAD = 9
"""Bytes after which it is known whether `_STREAM` begins here: a byte order mark and `event:`."""

_UNTOLD = 200
"""The status of an error without one, like an error inside a stream."""


def translate_request(
    body: JSON, source: str, target: str, losses: Losses | None = None, server: Target | None = None
) -> JSONObject:
    """Return a request of one dialect, translated to another.

    Args:
        body: The request, as JSON.
        source: Its dialect.
        target: The dialect to translate to.
        losses: Collects what could not be translated. `None` discards it.
        server: What the server that will get the request supports. `None` is all of its dialect.

    Raises:
        WireError: `body` is not a request of `source`, or needs something that `target` cannot do at all.
        FailureError: It needs something that no gateway can do.
        LossError: Something was lost, and `losses` are strict.
        ConfigurationError: The dialect does not exist.

    Example:
        >>> import xenoglot
        >>> body = {"model": "m", "input": "Hi"}
        >>> xenoglot.translate_request(body, "responses", "chat")["messages"]
        [{'role': 'user', 'content': 'Hi'}]
    """
    return _encode(get(source).decode_request(body), canonical(target), _collector(losses), server or Target())


def translate_response(
    body: JSON, source: str, target: str, losses: Losses | None = None, request: Request | None = None
) -> JSONObject:
    """Return a response of one dialect, translated to another.

    Args:
        body: The response, as JSON.
        source: Its dialect.
        target: The dialect of the client.
        losses: Collects what could not be translated. `None` discards it.
        request: The client's request in canonical form (`dialect_registry.get(target).decode_request(body)`). It
            restores the client's names of tools, and removes reasoning that the client did not request.

    Raises:
        WireError: `body` is not a response of `source`.
        FailureError: `body` is an error.
        LossError: Something was lost, and `losses` are strict.
        ConfigurationError: The dialect does not exist.

    Example:
        >>> import xenoglot
        >>> body = {"choices": [{"index": 0, "message": {"content": "Hello!"}, "finish_reason": "stop"}]}
        >>> xenoglot.translate_response(body, "chat", "messages")["content"]
        [{'type': 'text', 'text': 'Hello!'}]
    """
    source, target = canonical(source), canonical(target)
    asked, lost = request or Request(model=""), _collector(losses)
    response = UniqueIds(request).response(_response(body, get(source), lost))
    if stages := _for_client(source, target, request, lost):
        folder = Folder()
        for event in through(unfold(response), Pipeline(*stages)):
            folder.feed(event)
        response = folder.response()
    return _encode_response(response, asked, target, lost)


def stream_translator(
    source: str, target: str, losses: Losses | None = None, request: Request | None = None
) -> Stage[bytes, bytes]:
    r"""Return a translator of the bytes of an event stream, piece by piece.

    Args:
        source: The dialect of the stream.
        target: The dialect to translate to.
        losses: Collects what could not be translated. `None` discards it.
        request: As in `translate_response`.

    Returns:
        A stage: `feed(chunk)` takes bytes as they arrive and returns the translated pieces, `close()` returns the rest.

    Raises:
        ConfigurationError: The dialect does not exist.

    Example:
        >>> import xenoglot
        >>> stage = xenoglot.stream_translator("chat", "ollama")
        >>> chunk = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}\n\n'
        >>> b'"content":"Hi"' in b"".join(stage.feed(chunk))
        True
    """
    source, target = canonical(source), canonical(target)
    asked = request or Request(model="", stream=True, stream_usage=True)
    reader, writer, lost = get(source), get(target), _collector(losses)
    reading = StreamReader(reader.framing, reader.stream_decoder(), UniqueIds(request))
    writing = StreamWriter(Pipeline(), writer.stream_encoder(asked, lost), writer.framing)
    return Pipeline(reading, FinishLosses(lost), *_for_client(source, target, request, lost), writing)


@overload
def translate(
    data: bytes, source: str, target: str, losses: Losses | None = None, server: Target | None = None
) -> bytes: ...
@overload
def translate(
    data: Mapping[str, JSON], source: str, target: str, losses: Losses | None = None, server: Target | None = None
) -> JSONObject: ...


def translate(
    data: bytes | Mapping[str, JSON],
    source: str,
    target: str,
    losses: Losses | None = None,
    server: Target | None = None,
) -> bytes | JSONObject:
    """Return a request, a response, an error or a whole event stream of one dialect, translated to another.

    Args:
        data: Bytes, or a dict with the JSON object. What it is, is detected.
        source: The dialect of `data`: `"chat"`, `"responses"`, `"messages"`, `"gemini"`, ...
        target: The dialect to translate to.
        losses: Collects what could not be translated. `None` discards it.
        server: What the server that will get a request supports. `None` is all of its dialect.

    Returns:
        Bytes for bytes, a dict for a dict.

    Raises:
        WireError: `data` is none of these, or needs something that `target` cannot do at all.
        FailureError: It needs something that no gateway can do.
        LossError: Something was lost, and `losses` are strict. Losses of a stream do not raise.
        ConfigurationError: The dialect does not exist.

    Example:
        >>> import xenoglot
        >>> body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        >>> xenoglot.translate(body, "chat", "gemini")["contents"]
        [{'role': 'user', 'parts': [{'text': 'Hi'}]}]
    """
    if isinstance(data, bytes):
        return b"".join(through((data,), Translator(source, target, _collector(losses), server)))
    if not isinstance(data, Mapping):
        raise WireError("$", f"found a `{type(data).__name__}`; expected bytes or a dict")
    return _translate_request(dict(data), canonical(source), canonical(target), _collector(losses), server or Target())


class Translator:
    """`translate` as a stage: events of a stream are translated as they arrive, any other document when it is complete.

    `feed` and `close` raise what `translate` raises; the constructor raises `ConfigurationError`.
    """

    __slots__ = ("_chosen", "_head", "_is_stream", "_stages")

    def __init__(self, source: str, target: str, losses: Losses, server: Target | None = None) -> None:
        source, target = canonical(source), canonical(target)
        document = _Document(source, target, losses, server or Target())
        self._stages = (stream_translator(source, target, losses), document)
        self._is_stream = _lines_follow if get(source).framing is JSON_LINES else _names_a_field
        self._chosen: Stage[bytes, bytes] | None = None
        self._head = b""

    def feed(self, chunk: bytes, /) -> Sequence[bytes]:
        """Take bytes as they came; return those of the other dialect."""
        if self._chosen is None:
            chunk = self._head = (self._head + chunk).lstrip()
            streamed = self._is_stream(chunk)
            if streamed is None:
                return ()
            self._chosen = self._stages[0 if streamed else 1]
        return self._chosen.feed(chunk)

    def close(self) -> Sequence[bytes]:
        """There is no more; return what was held back."""
        if self._chosen is not None:
            return self._chosen.close()
        chosen = self._stages[0 if self._is_stream(self._head.ljust(_HEAD)) else 1]
        return [*chosen.feed(self._head), *chosen.close()]


def _collector(losses: Losses | None) -> Losses:
    """Return `losses`, or a collector that is discarded."""
    return Losses() if losses is None else losses


def _names_a_field(head: bytes) -> bool | None:
    """Return whether `head` begins a stream of server-sent events; `None` while that is unknown."""
    return bool(_STREAM.match(head)) if len(head) >= _HEAD else None


def _lines_follow(head: bytes) -> bool | None:
    """Return whether `head` begins a stream of lines: a second one follows a whole value. `None` while that is open."""
    first, _, rest = head.partition(b"\n")
    try:
        decode_json(first)
    except WireError:
        return False if rest else None
    return True if rest.strip() else None


class _Document:
    """A stage for what is one JSON value: all of it is read before anything is written."""

    def __init__(self, source: str, target: str, losses: Losses, server: Target) -> None:
        self._source = source
        self._target = target
        self._losses = losses
        self._server = server
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes, /) -> Sequence[bytes]:
        self._pieces.append(chunk)
        return ()

    def close(self) -> Sequence[bytes]:
        data = b"".join(self._pieces)
        if not data.startswith((b"{", b"[")):
            raise WireError("$", "neither a JSON object nor an event stream" if data else "nothing was given")
        made = _translate_request(decode_json(data), self._source, self._target, self._losses, self._server)
        return (encode_json(made),)


def _translate_request(body: JSON, source: str, target: str, losses: Losses, server: Target) -> JSONObject:
    """Return what `body` is, in the other dialect."""
    reader, writer = get(source), get(target)
    try:
        request = reader.decode_request(body)
    except WireError as error:
        no_request = error
    else:
        return _encode(request, target, losses, server)
    if isinstance(body, dict) and not is_placeholder(body.get("error")):
        return writer.encode_error(reader.decode_error(_UNTOLD, body))[1]
    try:
        return _encode_response(_response(body, reader, losses), Request(model=""), target, losses)
    except WireError as no_response:
        problem = f"neither a request of `{source}` ({no_request}) nor a response ({no_response})"
        raise WireError("$", problem) from None


def _response(body: JSON, dialect: Dialect, losses: Losses) -> Response:
    response = dialect.decode_response(body)
    return with_finish(response, losses, unfinished=dialect.tells_unfinished)


def _for_client(source: str, target: str, request: Request | None, losses: Losses) -> list[Stage[Event, Event]]:
    """Return the stages that restore the tools' names and filter reasoning for the client; often none."""
    if request is None:
        return []
    names, custom = RestoreNames(request, get(source).tool_name_limit), UnwrapCustom(request)
    shown = None if source == target else reasoning_filter(get(target), request, losses)
    return [
        *((names,) if names else ()),
        *((custom,) if custom else ()),
        *(() if shown is None else (shown,)),
    ]


def _encode_response(response: Response, request: Request, target: str, losses: Losses) -> JSONObject:
    body = get(target).encode_response(response, request, losses)
    losses.settle()
    return body


def _encode(request: Request, target: str, losses: Losses, server: Target) -> JSONObject:
    body = encode_fitted(get(target), request, server, losses)
    losses.settle()
    return body
