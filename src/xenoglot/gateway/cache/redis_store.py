"""Cached answers in a Redis or Valkey server that gateways share.

A server that fails or is slow must not delay requests: it is left alone for a few seconds, and meanwhile nothing is
cached.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.gateway.limits.redis import spelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PREFIX: Final = "xenoglot:answer:"
SECONDS: Final = 0.5
"""How long one answer of the server may take."""
REST_SECONDS: Final = 5.0
"""How long a server that failed is left alone."""
CONNECTIONS: Final = 32

_logger = logging.getLogger("xenoglot.gateway")


class RedisStore:
    """Answers in the server at `url`; `clock` gives seconds.

    Raises:
        ConfigurationError: redis-py is not installed, or the URL is none.
    """

    def __init__(self, url: str, clock: Callable[[], float], seconds: float = SECONDS) -> None:
        try:
            from redis import asyncio as redis  # noqa: PLC0415  an extra
            from redis.exceptions import RedisError  # noqa: PLC0415  as above
        except ImportError:
            raise ConfigurationError(missing_extra("redis")) from None
        self._errors: tuple[type[Exception], ...] = (RedisError, OSError, TimeoutError)
        self._redis = redis.Redis.from_url(spelled(url), max_connections=CONNECTIONS)
        self._clock = clock
        self._seconds = seconds
        self._rests_until = 0.0

    async def get(self, key: str) -> bytes | None:
        """Return what was put under `key`; `None` if it expired."""
        found: bytes | None = await self._ask(lambda: self._redis.get(PREFIX + key))
        return found

    async def put(self, key: str, data: bytes, seconds: float) -> None:
        """Keep `data` for so many seconds."""
        await self._ask(lambda: self._redis.set(PREFIX + key, data, px=max(1, int(seconds * 1000))))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _ask(self, ask: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401  whatever the command returns
        if self._clock() < self._rests_until:
            return None
        try:
            async with asyncio.timeout(self._seconds):
                return await ask()
        except self._errors as error:
            self._rests_until = self._clock() + REST_SECONDS
            _logger.error("the server of the cache cannot be used: %s; nothing is cached for %s s", error, REST_SECONDS)  # noqa: TRY400  no texts
            return None
