"""Which URLs of a request may be opened, at which addresses, and what may come from there (R21, S12). Pure.

The URL is read by the parser of the transport that opens it, and by no other: what is checked is what is asked. A name
says nothing of where it leads, so its addresses are checked, all of them, and the connection is made to one of those.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from xenoglot.backends.http.http1 import locate
from xenoglot.backends.http.timeouts import TransportError

if TYPE_CHECKING:
    from collections.abc import Collection

    from xenoglot.backends.http.http1 import RequestURL

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
"""How the four kinds of pictures begin that models take (https://mimesniff.spec.whatwg.org/#matching-an-image-type-pattern)."""


class BlockedError(Exception):
    """The URL is not to be opened; the text says why, without any of it."""


def checked(url: str, ports: Collection[int]) -> RequestURL:
    """Return where `url` leads, in the parts that the transport asks for.

    Raises:
        BlockedError: it is not to be opened, wherever its host is.
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
        BlockedError: it says so in another way, which two readers may read in two ways.
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
    """Return the media type of a picture by how it begins; `None` if it is none that models take."""
    return next((media_type for signature, media_type in _SIGNATURES if signature.match(data)), None)
