"""Proxy settings: how proxy URLs are parsed, which proxy the environment names, and for which hosts.

HTTP proxies are supported, in the clear (`http://`) or in TLS (`https://`), with or without user name and password.
Requests to an https upstream go through a tunnel (`CONNECT`, RFC 9110 section 9.3.6), which the proxy cannot read;
requests to an http upstream are sent to the proxy (RFC 9112 section 3.2.2).
"""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

import msgspec

from xenoglot.backends.http.timeouts import TransportError
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.backends.http.http1 import Origin

ENVIRONMENT: Final = "environment"
"""The setting that takes the proxy which `HTTPS_PROXY` and its kind name."""

_URL = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?"
    r"(?:(?P<user>[!-.0-9;-?A-~]*)(?P<password>:[!-.0-?A-~]*)?@)?"
    r"(?P<host>(?:[\w-]{1,63}\.)*[\w-]{1,63}\.?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?/?",
    re.ASCII | re.IGNORECASE,
)
_PORTS: Final = {"http": 80, "https": 443}
_LARGEST_PORT: Final = 65_535
_SEPARATORS = re.compile(r"[\s,]+")


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy; `authorization` is the value of the field that it knows us by, and never shown."""

    scheme: str
    host: str
    """Without the brackets of an IPv6 literal."""
    port: int
    authorization: str | None = None

    def __repr__(self) -> str:
        known = ", authorization=..." if self.authorization else ""
        return f"Proxy(scheme={self.scheme!r}, host={self.host!r}, port={self.port}{known})"


def read_proxy(url: str, where: str = "proxy") -> Proxy:
    """Return the proxy at `url`: `http(s)://[user:password@]host[:port]`, percent-encoded where it must be.

    Raises:
        ConfigurationError: it is not supported; the text has `where` it was set, but not the address.
    """
    found = _URL.fullmatch(url.strip())
    scheme = (found["scheme"] or "http").lower() if found else ""
    if scheme.startswith("socks") or url.strip().lower().startswith("socks"):
        raise ConfigurationError(f"`{where}`: a SOCKS proxy, and only HTTP proxies are spoken to")
    port = int(found["port"] or _PORTS.get(scheme, 0)) if found else 0
    if found is None or scheme not in _PORTS or not 0 < port <= _LARGEST_PORT:
        expected = "http(s)://[user:password@]host[:port], percent-encoded"
        raise ConfigurationError(f"`{where}` is no address of a proxy; expected {expected}")
    authorization = None
    if found["user"] or found["password"]:
        credentials = unquote_to_bytes(found["user"] + (found["password"] or ":"))
        authorization = f"Basic {b64encode(credentials).decode()}"
    return Proxy(scheme=scheme, host=found["host"].lower().strip("[]"), port=port, authorization=authorization)


def proxy_for(url: str, setting: str | None, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for requests to the upstream at `url`, by a `setting`; `None` is a direct connection.

    `setting` is `None`, the address of a proxy, or `environment`: then `HTTPS_PROXY` counts for https, `HTTP_PROXY` for
    http, `ALL_PROXY` if that is not set, each in lower case first; except for the hosts of `NO_PROXY`, and
    never for this machine itself.

    Raises:
        ConfigurationError: what is named is no proxy that is spoken to.
    """
    if setting is None:
        return None
    if setting != ENVIRONMENT:
        return read_proxy(setting)
    from xenoglot.backends.http.http1 import locate  # noqa: PLC0415  an extra, and configurations are read without it

    try:
        origin = locate(url).origin
    except TransportError:  # whoever asks it hears of that
        return None
    name = (
        None
        if _is_here(origin.host) or is_bypassed(origin, _first(environ, "no_proxy")[1])
        else _named(origin, environ)
    )
    return None if name is None else read_proxy(environ[name], name)


def _named(origin: Origin, environ: Mapping[str, str]) -> str | None:
    """Return the variable that names the proxy; an empty one disables the proxy."""
    for wanted in (f"{origin.scheme}_proxy", "all_proxy"):
        name, value = _first(environ, wanted)
        if (
            name == "HTTP_PROXY" and "REQUEST_METHOD" in environ
        ):  # the header `Proxy` of a CGI request: https://httpoxy.org
            continue
        if name is not None:
            return name if value.strip() else None
    return None


def _first(environ: Mapping[str, str], name: str) -> tuple[str | None, str]:
    for spelled in (name, name.upper()):
        if spelled in environ:
            return spelled, environ[spelled]
    return None, ""


def is_bypassed(origin: Origin, listed: str) -> bool:
    """Return whether `listed`, as in `NO_PROXY`, has the host: its name or a domain around it, its address or a net.

    An entry may have a port, and then counts for that alone; `*` is every host.
    """
    return any(_fits(entry, origin) for entry in _SEPARATORS.split(listed.lower()) if entry)


def _fits(entry: str, origin: Origin) -> bool:
    if entry == "*":
        return True
    address = _address(origin.host)
    if (net := _net(entry)) is not None:
        return address is not None and address in net
    name, colon, port = entry.rpartition(":")
    if not colon:
        name = entry
    elif port != str(origin.port):
        return False
    if (net := _net(name)) is not None:
        return address is not None and address in net
    name, host = name.removeprefix("*").strip("."), origin.host.rstrip(".")
    return address is None and bool(name) and (host == name or host.endswith(f".{name}"))


def _net(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry.removeprefix("[").removesuffix("]"), strict=False)
    except ValueError:
        return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_here(host: str) -> bool:
    address, name = _address(host), host.rstrip(".")
    return name == "localhost" or name.endswith(".localhost") or (address is not None and address.is_loopback)
