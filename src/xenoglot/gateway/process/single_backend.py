"""A gateway in front of one backend that somebody else made."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.local_models import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.load import Config


def single_backend(backend: Backend) -> Callable[[Config], AbstractAsyncContextManager[Gateway]]:
    """Return what assembles a gateway of `backend` alone; it stands where the embedded model would."""

    @asynccontextmanager
    async def assemble(config: Config) -> AsyncGenerator[Gateway]:
        gateway = Gateway(config, {EMBEDDED: backend}, embedded_model=backend.name)
        try:
            yield gateway
        finally:
            await gateway.aclose()

    return assemble
