"""The command `xenoglot health`: whether a gateway is ready, as an exit code for health checks of containers."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse

PATHS = {"ready": "/readyz", "live": "/livez"}
"""What is checked -> the path that reports it."""

HEALTHY, UNHEALTHY = 0, 1
_OK = 200
_LONGEST = 4096


def run(options: argparse.Namespace) -> int:
    """Print the state of the gateway; return 0 if it is ready, 1 if it is not or cannot be reached.

    Raises:
        ConfigurationError: the URL is not one.
    """
    healthy, line = check(options.url, "live" if options.live else "ready", options.timeout)
    print(line, file=sys.stdout if healthy else sys.stderr)
    return HEALTHY if healthy else UNHEALTHY


def check(url: str, what: str, timeout: float) -> tuple[bool, str]:
    """Return whether the gateway at `url` is `ready` or `live`, and a line with the reason; at most `timeout` seconds.

    Proxies of the environment are not used and redirects are not followed: only this server's own answer counts.

    Raises:
        ConfigurationError: the URL is not one.
    """
    if not is_url(url):
        raise ConfigurationError(f'health: found "{url}"; expected a URL like http://127.0.0.1:8080')
    return asyncio.run(_check(f"{url.rstrip('/')}{PATHS[what]}", timeout))


def is_url(text: str) -> bool:
    """Return whether a text is the URL of a server."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, an address that is none
        return False


async def _check(place: str, seconds: float) -> tuple[bool, str]:
    from xenoglot.backends.http.client import Deadlines, Transport, TransportError  # noqa: PLC0415  only to connect

    transport = Transport(deadlines=Deadlines(connect=seconds, first_byte=seconds, idle=seconds, total=seconds))
    try:
        async with await transport.send("GET", place, []) as response:
            body = (await response.read(_LONGEST)).decode("utf-8", "replace").strip()
    except TransportError as error:
        return False, f"{place}: {str(error).replace('the upstream', 'the gateway')}"
    finally:
        await transport.aclose()
    told = f"{place}: HTTP {response.status}"
    return response.status == _OK, f"{told}: {body}" if body.startswith("{") and body.isprintable() else told
