"""Fetches images by URL for upstreams that do not fetch them; disabled by default."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from xenoglot.backends.http.client import Deadlines, Transport, TransportError, TransportLimits
from xenoglot.backends.http.connect import AddressLookup
from xenoglot.errors import FailureError
from xenoglot.gateway.media.image_url import BlockedError, checked, is_public, kind_of, onward
from xenoglot.model.content import Inline
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.backends.http.connect import Resolve
    from xenoglot.gateway.config.settings import FetchSettings

OK: Final = 200
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
MOST_REDIRECTS: Final = 3
HEADERS: Final = [("accept", "image/png, image/jpeg, image/gif, image/webp"), ("user-agent", "xenoglot")]
"""All that the other side is told: nothing of who asks, and no key."""


class ImageFetcher:
    """Fetches pictures. `resolve` gives the addresses of a host, `transport` makes what connects to them."""

    def __init__(
        self,
        settings: FetchSettings,
        *,
        resolve: Resolve | None = None,
        transport: Callable[..., Transport] = Transport,
    ) -> None:
        self._settings = settings
        self._resolve = resolve or AddressLookup()
        self._transport = transport(
            deadlines=Deadlines(connect=settings.seconds, first_byte=settings.seconds, total=settings.seconds),
            limits=TransportLimits(body_bytes=settings.max_bytes, idle_connections=1, idle_seconds=1.0),
            resolve=self._public,
        )

    async def images(self, urls: Sequence[str]) -> dict[str, Inline]:
        """Return the pictures at `urls`, each fetched once, all of them within the settings' time.

        Raises:
            FailureError: one cannot be had. It says no more of why than the URL itself does: an address that somebody
                else's answers could be learnt from is one that they can be read from.
        """
        wanted = tuple(dict.fromkeys(urls))
        if len(wanted) > self._settings.max_images:
            raise _refused(f"more than {self._settings.max_images} images are given by URL")
        for url in wanted:
            self._check(url)
        try:
            async with asyncio.timeout(self._settings.seconds):
                return {url: await self._image(url) for url in wanted}
        except (TimeoutError, TransportError, BlockedError):
            raise _refused("an image given by URL could not be had: send its data instead") from None

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._transport.aclose()

    def _check(self, url: str) -> None:
        try:
            checked(url, self._settings.ports)
        except BlockedError as error:
            raise _refused(f"the URL of an image is not opened here: {error}") from None

    async def _image(self, url: str) -> Inline:
        """Return one picture, wherever its URL leads on to; each place on the way is checked as the first was."""
        for _ in range(MOST_REDIRECTS + 1):
            checked(url, self._settings.ports)
            async with await self._transport.send("GET", url, HEADERS) as reply:
                if reply.status in REDIRECTS:
                    url = onward(url, reply.header("location") or "")
                    continue
                if reply.status != OK:
                    raise BlockedError("there is nothing")
                data = await reply.read(self._settings.max_bytes)
            media_type = kind_of(data)
            if media_type is None:
                raise BlockedError("it is no picture")
            return Inline(data=b64encode(data).decode(), media_type=media_type)
        raise BlockedError("it leads on and on")

    async def _public(self, host: str) -> Sequence[str]:
        """Return the addresses of `host`: they are what is connected to. One that is not public spoils them all."""
        addresses = await self._resolve(host)
        if not addresses or not all(is_public(address) for address in addresses):
            raise TransportError("connect", "connect", "the host is not a public one", sent=False)
        return addresses


def _refused(message: str) -> FailureError:
    return FailureError(Failure(kind="invalid_request", message=message, non_retryable=True))
