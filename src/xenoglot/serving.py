"""One's own model behind a gateway, from Python."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config import Config
    from xenoglot.gateway.gateway import Gateway

_ARGUMENTS = {"server.host": "host", "server.port": "port", "keys.env[0]": "client_key_env"}


def serve(backend: Backend, *, host: str = "127.0.0.1", port: int = 8080, client_key_env: str | None = None) -> None:
    """Serve `backend` in every dialect until a signal ends it, as `xenoglot serve` does.

    It answers to its own name and, saying so, in place of any other. Port 0 takes a free one; the line that says where
    it serves goes to standard output. `client_key_env` names the environment variable that holds the clients' keys.

    Raises:
        ConfigurationError: the address cannot be used, or others could reach it without a key.
    """
    from xenoglot.gateway.config import EMBEDDED, check  # noqa: PLC0415  to import xenoglot loads nothing but codecs
    from xenoglot.gateway.gateway import Gateway  # noqa: PLC0415
    from xenoglot.gateway.server import serve as serve_config  # noqa: PLC0415

    @asynccontextmanager
    async def alone(config: Config) -> AsyncGenerator[Gateway]:
        gateway = Gateway(config, {EMBEDDED: backend}, embedded_model=backend.name)
        try:
            yield gateway
        finally:
            await gateway.aclose()

    keys = {} if client_key_env is None else {"keys": {"env": [client_key_env]}}
    config = check({"server": {"host": host, "port": port}, **keys}, os.environ, "xenoglot.serve", _ARGUMENTS)
    serve_config(config, say=_say, assemble=alone)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  where it serves is what its caller wants to know
