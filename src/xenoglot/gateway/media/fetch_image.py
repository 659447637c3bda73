"""Fetches images by URL, for upstreams that do not (off by default): allowed URLs and addresses (R21, S12).

The URL is read by the parser of the transport that opens it, and by no other: what is checked is what is opened. A name
does not show where it leads, so its addresses are checked, all of them, and the connection is made to one of those.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final, TypeAlias

from xenoglot.backends.http.client import Deadlines, Transport, TransportLimits
from xenoglot.backends.http.connect import AddressLookup
from xenoglot.backends.http.http1 import locate
from xenoglot.backends.http.timeouts import TransportError
from xenoglot.errors import FailureError
from xenoglot.model.content import Inline
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from xenoglot.backends.http.connect import Resolve
    from xenoglot.backends.http.http1 import RequestURL
    from xenoglot.gateway.config.settings import FetchSettings


if TYPE_CHECKING:
    Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST_URL: Final = 8192

_NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""A name of several labels whose last begins with a letter: whatever reads as an address, in any base, does not."""

_LOCAL: Final = frozenset({"arpa", "corp", "home", "internal", "intranet", "lan", "local", "localdomain", "localhost"})
"""Last labels that no public name has (RFC 6761, RFC 6762, RFC 8375, ICANN's list of collisions)."""

_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
_TUNNELS: Final = tuple(
    ipaddress.IPv6Network(network) for network in ("2001::/23", "2002::/16", "3fff::/20", "64:ff9b::/96")
)
"""What holds IPv4 addresses, or is for no public host: 6to4, Teredo and its neighbours, documentation, NAT64."""
_RELAY: Final = ipaddress.IPv4Network("192.88.99.0/24")

_SIGNATURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
"""Signatures of the four image types of models (https://mimesniff.spec.whatwg.org/#matching-an-image-type-pattern)."""


class BlockedError(Exception):
    """The URL is not to be opened; the text is the reason, without any of the URL."""


def checked(url: str, ports: Collection[int]) -> RequestURL:
    """Return where `url` leads, in the parts that the transport asks for.

    Raises:
        BlockedError: it is not to be opened, whatever its host is.
    """
    if len(url) > LONGEST_URL:
        raise BlockedError("it is too long")
    try:
        location = locate(url)
    except TransportError:
        raise BlockedError("it is not a plain https URL") from None
    origin = location.origin
    if origin.scheme != "https":
        raise BlockedError("it is not https")
    if origin.port not in ports:
        raise BlockedError("its port is not allowed")
    if _NAME.fullmatch(origin.host) is None or len(origin.host) > 253:  # noqa: PLR2004  RFC 1035 section 2.3.4
        raise BlockedError("its host is not the name of a public one")
    if origin.host.rpartition(".")[2] in _LOCAL:
        raise BlockedError("its host is not the name of a public one")
    return location


def onward(url: str, location: str) -> str:
    """Return where a redirect from `url` (checked) leads: another URL, or another path of the same host.

    Raises:
        BlockedError: it is written in another form, which two parsers may read in two ways.
    """
    if location.startswith("/") and not location.startswith("//"):
        scheme, _, rest = url.partition("://")
        host = re.split(r"[/?]", rest, maxsplit=1)[0]
        return f"{scheme}://{host}{location}"
    if location.lower().startswith("https://"):
        return location
    raise BlockedError("it leads on to what is no https URL")


def is_public(address: str) -> bool:
    """Return whether `address` is that of a host that everybody can reach: not of this machine, its net or a tunnel."""
    try:
        found: Address = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None or found not in _GLOBAL_6 or any(found in net for net in _TUNNELS):
            return False
    elif found in _RELAY:
        return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def kind_of(data: bytes) -> str | None:
    """Return the media type of an image by its signature; `None` if it is none that models take."""
    return next((media_type for signature, media_type in _SIGNATURES if signature.match(data)), None)


OK: Final = 200
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
MOST_REDIRECTS: Final = 3
HEADERS: Final = [("accept", "image/png, image/jpeg, image/gif, image/webp"), ("user-agent", "xenoglot")]
"""All headers that the server receives: nothing about the client, and no key."""


class ImageFetcher:
    """Fetches images. `resolve` gives the addresses of a host, `transport` makes what connects to them."""

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
        """Return the images at `urls`, each fetched once, all of them within the settings' time.

        Raises:
            FailureError: one cannot be had. It shows no more of the reason than the URL itself does: an address that
            shows
                    another's answers could also be used to read them.
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
        """Return one image, following redirects; each URL is checked as the first was."""
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
                raise BlockedError("it is not an image")
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
