"""Recorded exchanges as files: request, answer and timing in one folder each, in the layout of test vectors.

`request.json` and `response.json`, `stream.sse` or `stream.ndjson` hold exact bodies (`request.bin` and `response.bin`
if not JSON), `error.json` the status and body of an error, `meta.toml` everything else.
"""

from __future__ import annotations

import os
import re
import tomllib
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, field

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.dialect_registry import get, names
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.testing.canned import paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON

META = "meta.toml"
STREAMS = {"text/event-stream": "stream.sse", "application/x-ndjson": "stream.ndjson"}
REFUSED = 400
MASK = b"*"

SECRET_HEADERS = frozenset(
    ("api-key", "authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key", "x-goog-api-key")
)
SECRET_PARAMETERS = re.compile(
    r"(?P<name>(?:^|&)(?:key|api[-_]?key|access_token|token|sig)=)(?P<secret>[^&]*)", re.IGNORECASE
)
SHORTEST = 8
"""Secrets shorter than this are not redacted in bodies: they would match ordinary text."""

_SAFE = re.compile(r"[^a-z0-9]+")
_NOT_IN_TOML = re.compile("\x7f")


class Meta(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of `meta.toml`. `chunks` are the reads of the answer: seconds since the request, and bytes.

    `ending` is `cut` if the upstream ended the answer early; `status` is 0 if there was no answer.
    """

    method: str
    path: str
    query: str = ""
    dialect: str = ""
    status: int = 0
    ending: Literal["whole", "cut"] = "whole"
    request_headers: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    chunks: tuple[tuple[float, int], ...] = ()


class RecordedExchange(Struct, kw_only=True):
    """One exchange: its `meta`, the `request` body and the answer's `body`."""

    meta: Meta
    request: bytes = b""
    body: bytes = b""
    name: str = field(default="")

    @property
    def media_type(self) -> str:
        """Media type of the answer, without parameters."""
        said = next((value for name, value in self.meta.headers if name == "content-type"), "")
        return said.partition(";")[0].strip().lower()

    @property
    def streamed(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.meta.status < REFUSED and self.media_type in STREAMS


def dialect_at(path: str) -> Dialect | None:
    """Return the dialect of requests at `path`; `None` for other paths."""
    found = [(len(pattern), name) for name in names() for pattern in paths(get(name)) if _matches(path, pattern)]
    return get(max(found)[1]) if found else None


def _matches(path: str, pattern: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), path) is not None


def redacted(exchange: RecordedExchange, secrets: Iterable[str]) -> RecordedExchange:
    """Return the exchange without secrets: the given ones, and those in credential headers and query parameters.

    In bodies each byte of a secret becomes an asterisk, so that sizes and offsets stay.
    """
    meta = exchange.meta
    headers = (*meta.request_headers, *meta.headers)
    known = {secret for secret in secrets if len(secret) >= SHORTEST}
    for name, value in headers:
        if name in SECRET_HEADERS:
            known |= {word for word in (value, *value.split()) if len(word) >= SHORTEST}
    known |= {found["secret"] for found in SECRET_PARAMETERS.finditer(meta.query) if len(found["secret"]) >= SHORTEST}
    hidden = sorted((secret.encode() for secret in known), key=len, reverse=True)
    return RecordedExchange(
        meta=msgspec.structs.replace(
            meta,
            path=_masked_text(meta.path, hidden),
            query=SECRET_PARAMETERS.sub(lambda found: found["name"] + "***", _masked_text(meta.query, hidden)),
            request_headers=_masked_headers(meta.request_headers, hidden),
            headers=_masked_headers(meta.headers, hidden),
        ),
        request=_masked(exchange.request, hidden),
        body=_masked(exchange.body, hidden),
        name=exchange.name,
    )


def save(exchange: RecordedExchange, folder: Path, number: int) -> Path:
    """Write an exchange into a new folder under `folder`; return its path. `meta.toml` is written last."""
    meta = exchange.meta
    words = _SAFE.sub("-", meta.path.lower()).strip("-")[-60:]
    place = folder / f"{number:04}-{words or 'root'}"
    place.mkdir(parents=True, exist_ok=True)
    if exchange.request:
        (place / f"request.{_kind(exchange.request)}").write_bytes(exchange.request)
    if exchange.body:
        (place / _answer_file(exchange)).write_bytes(_error(exchange) or exchange.body)
    (place / META).write_text(encode_meta(meta), encoding="utf-8")
    return place


def load(folder: Path) -> list[RecordedExchange]:
    """Return the exchanges in the folders under `folder`, in the order of their names.

    Raises:
        ConfigurationError: none, or an incomplete one.
    """
    found = [_load(path.parent) for path in sorted(folder.glob(f"*/{META}"))]
    if not found:
        raise ConfigurationError(f"`{folder}` holds no recorded exchange: no folder in it has a `{META}`")
    return found


def encode_meta(meta: Meta) -> str:
    """Return `meta` as TOML; JSON's strings and arrays are TOML's too."""
    lines = [f"{name} = {encode_json(value).decode()}" for name, value in msgspec.to_builtins(meta).items()]
    return _NOT_IN_TOML.sub(r"\\u007f", "\n".join(lines)) + "\n"


def _load(folder: Path) -> RecordedExchange:
    try:
        meta = msgspec.convert(tomllib.loads((folder / META).read_text(encoding="utf-8")), Meta)
        exchange = RecordedExchange(meta=meta, name=folder.name, request=_read(folder, ("request.json", "request.bin")))
        exchange.body = _read(folder, ("response.json", "response.bin", *STREAMS.values()))
        if refusal := _read(folder, ("error.json",)):
            exchange.body = encode_json(_body_of(decode_json(refusal)))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, WireError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"`{folder}`: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"`{folder}`: its values are nested too deeply to be read") from None
    except OSError as error:
        raise ConfigurationError(f"`{folder}` cannot be read: {os.strerror(error.errno or 0)}") from None
    return exchange


def _read(folder: Path, files: Sequence[str]) -> bytes:
    return next(((folder / file).read_bytes() for file in files if (folder / file).exists()), b"")


def _body_of(error: JSON) -> JSON:
    return error.get("body") if isinstance(error, dict) else None


def _answer_file(exchange: RecordedExchange) -> str:
    if exchange.streamed:
        return STREAMS[exchange.media_type]
    if _error(exchange) is not None:
        return "error.json"
    return f"response.{_kind(exchange.body)}"


def _error(exchange: RecordedExchange) -> bytes | None:
    """Return an error in the form of vectors; `None` for other answers, or if the bytes could not be restored."""
    if exchange.meta.status < REFUSED or _kind(exchange.body) != "json":
        return None
    body = decode_json(exchange.body)
    return None if encode_json(body) != exchange.body else encode_json({"status": exchange.meta.status, "body": body})


def _kind(data: bytes) -> str:
    try:
        decode_json(data)
    except WireError:
        return "bin"
    return "json"


def _masked(data: bytes, hidden: Sequence[bytes]) -> bytes:
    for secret in hidden:
        data = data.replace(secret, MASK * len(secret))
    return data


def _masked_text(text: str, hidden: Sequence[bytes]) -> str:
    return _masked(text.encode(), hidden).decode()


def _masked_headers(headers: Sequence[tuple[str, str]], hidden: Sequence[bytes]) -> tuple[tuple[str, str], ...]:
    return tuple((name, "***" if name in SECRET_HEADERS else _masked_text(value, hidden)) for name, value in headers)
