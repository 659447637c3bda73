"""Detects a running gateway: whether one listens, which user owns it, and which models it lists."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import ConfigurationError, WireError

if TYPE_CHECKING:
    from xenoglot.backends.http.client import Transport
    from xenoglot.model.json import JSONObject

OURS = b"Xenoglot"
"""The start of a gateway's answer to `GET /`."""

TIMEOUT = 5.0
"""Seconds for each of the questions."""

LONGEST = 4 * 1024 * 1024
"""Bytes of a list of models."""

FIRST_USER = 1000
"""Users below are accounts of the system's services (login.defs(5): `UID_MIN`)."""

_LISTENS = "0A"
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_OK, _UNAUTHORIZED = 200, 401


class DetectedGateway(Struct, frozen=True, kw_only=True):
    """Result: a gateway answers at the address (`ours`), it accepts the key (`welcome`), and the models it lists."""

    ours: bool = False
    welcome: bool = False
    models: Sequence[str] = ()


def detect(url: str, key: str | None) -> DetectedGateway:
    """Detect a gateway at `url`. The key is sent only if the health check succeeds and a key is required."""
    return asyncio.run(_detect(url.rstrip("/"), key))


def models_of(url: str, key: str | None) -> Sequence[str]:
    """Return the models of the gateway at `url`.

    Raises:
        ConfigurationError: no gateway answers, or it rejects the key.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or set(url) & set("\"'\\ "):
        raise ConfigurationError(f'--gateway: found "{url}"; expected a URL that begins with http:// or https://')
    found = detect(url, key)
    if not found.ours:
        raise ConfigurationError(f"--gateway: no Xenoglot gateway answers at {url}; start one with `xenoglot serve`")
    if not found.welcome:
        raise ConfigurationError(
            "--gateway: the gateway rejected the key: name the variable with a valid one with `--client-key-env`"
        )
    return found.models


def windows_of(url: str, key: str) -> Mapping[str, int | None]:
    """Return the models that the gateway at `url` lists, with their context windows in tokens where they are known."""
    return asyncio.run(_windows_of(url.rstrip("/"), key))


def owned_by_user(port: int, *, system: bool = False) -> bool:
    """Whether the listener at a port of this machine belongs to this user or to root; with `system`, or to a service.

    Any user of a machine can listen on the gateway's usual port, and would receive all requests of a program. On
    systems that do not report the owner of a socket (only Linux does), the result is false.
    """
    owners = {owner for table in _TABLES for owner in _owners(table, port)}
    return all(owner in (0, os.getuid()) or (system and owner < FIRST_USER) for owner in owners) and bool(owners)


def _owners(table: str, port: int) -> Sequence[int]:
    """Return the users with a listening socket at a port, from the kernel's table (proc(5): `/proc/net/tcp`)."""
    try:
        rows = [line.split() for line in Path(table).read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return ()
    return [int(row[7]) for row in rows if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port]


async def _detect(url: str, key: str | None) -> DetectedGateway:
    from xenoglot.backends.http.client import Deadlines, Transport, TransportError  # noqa: PLC0415  only where one asks

    transport = Transport(deadlines=Deadlines(connect=TIMEOUT, first_byte=TIMEOUT, idle=TIMEOUT, total=TIMEOUT))
    try:
        status, body = await _get(transport, f"{url}/health", None)
        if status != _OK or not _is_health(body):
            return DetectedGateway()
        status, body = await _get(transport, f"{url}/", None)
        if status == _UNAUTHORIZED and key is not None:
            status, body = await _get(transport, f"{url}/", key)
        if status == _UNAUTHORIZED:
            return DetectedGateway(ours=True)
        if status != _OK or not body.startswith(OURS):
            return DetectedGateway()
        status, body = await _get(transport, f"{url}/v1/models", key)
        return DetectedGateway(ours=True, welcome=True, models=_models(body) if status == _OK else ())
    except (TransportError, ValueError):
        return DetectedGateway()
    finally:
        await transport.aclose()


async def _windows_of(url: str, key: str) -> Mapping[str, int | None]:
    from xenoglot.backends.http.client import Deadlines, Transport, TransportError  # noqa: PLC0415  only where one asks

    transport = Transport(deadlines=Deadlines(connect=TIMEOUT, first_byte=TIMEOUT, idle=TIMEOUT, total=TIMEOUT))
    try:
        status, body = await _get(transport, f"{url}/v1/models", key)
    except (TransportError, ValueError):
        return {}
    finally:
        await transport.aclose()
    rows = _rows(body) if status == _OK else ()
    return {name: _window(row) for row in rows if isinstance(name := row.get("id"), str)}


def _window(row: JSONObject) -> int | None:
    tokens = row.get("context_length")
    return tokens if type(tokens) is int and tokens > 0 else None


async def _get(transport: Transport, url: str, key: str | None) -> tuple[int, bytes]:
    headers = [] if key is None else [("authorization", f"Bearer {key}")]
    async with await transport.send("GET", url, headers) as reply:
        return reply.status, await reply.read(LONGEST)


def _is_health(body: bytes) -> bool:
    try:
        return bool(decode_json(body) == {"status": "ok"})
    except WireError:
        return False


def _models(body: bytes) -> Sequence[str]:
    return tuple(name for row in _rows(body) if isinstance(name := row.get("id"), str))


def _rows(body: bytes) -> Sequence[JSONObject]:
    try:
        listed = decode_json(body)
    except WireError:
        return ()
    rows = listed.get("data") if isinstance(listed, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else ()
