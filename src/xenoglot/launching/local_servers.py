"""Finds model servers on this machine: those of the catalogue that run locally, at their usual ports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from xenoglot import dialect_registry as dialects
from xenoglot.backends.urls import endpoint
from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.launching.detect_gateway import LONGEST, OURS, owned_by_user
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.backends.http.client import Transport
    from xenoglot.providers.provider import Provider

SECONDS = 2.0
"""For each server: a port where nothing listens refuses at once."""

_HOST = "127.0.0.1"
_OK = 200


class LocalServer(Struct, frozen=True, kw_only=True):
    """A server that answered: its provider, its address, the models that it lists.

    `trusted` is whether the listener belongs to this user or the system; others could read what is sent to it.
    """

    provider: str
    title: str
    url: str
    models: Sequence[str]
    trusted: bool


def find_local_servers() -> Sequence[LocalServer]:
    """Ask all of them at once, and return those that list models."""
    return asyncio.run(_find(local_providers()))


def local_providers() -> Sequence[Provider]:
    """Return the rows of servers that run on the user's own machine."""
    rows = (catalog.get(name) for name in catalog.names())
    return [row for row in rows if row.local and urlsplit(row.faces[0].base_url or "").hostname == _HOST]


def providers_with_key(environ: Mapping[str, str]) -> Sequence[Provider]:
    """Return the rows whose key variable is set."""
    rows = (catalog.get(name) for name in catalog.names())
    return [row for row in rows if row.key_env and environ.get(row.key_env, "").strip()]


async def _find(rows: Sequence[Provider]) -> Sequence[LocalServer]:
    from xenoglot.backends.http.client import Deadlines, Transport  # noqa: PLC0415  only where one asks

    transport = Transport(deadlines=Deadlines(connect=SECONDS, first_byte=SECONDS, idle=SECONDS, total=SECONDS))
    try:
        found = await asyncio.gather(*(_ask(row, transport) for row in rows))
    finally:
        await transport.aclose()
    return [server for server in found if server is not None]


async def _ask(row: Provider, transport: Transport) -> LocalServer | None:
    from xenoglot.backends.http.client import TransportError  # noqa: PLC0415  as above

    face = row.faces[0]
    dialect, url = dialects.get(face.dialect), str(face.base_url)
    try:
        place = endpoint(url, face.models_path or dialect.models_path, dialect.models_query)
        async with await transport.send("GET", place, []) as reply:
            body = await reply.read(LONGEST)
            models = dialect.decode_models(decode_json(body)) if reply.status == _OK else ()
        if models and await _is_gateway(transport, url):
            return None
    except (TransportError, WireError, ValueError):
        return None
    if not models:
        return None
    port = urlsplit(url).port or 80
    return LocalServer(
        provider=row.name,
        title=row.title,
        url=url,
        models=tuple(model.id for model in models),
        trusted=owned_by_user(port, system=True),
    )


async def _is_gateway(transport: Transport, url: str) -> bool:
    """Whether a gateway of this project answers there: its usual port is that of another server, too."""
    async with await transport.send("GET", urljoin(url, "/"), []) as reply:
        return (await reply.read(LONGEST)).startswith(OURS)
