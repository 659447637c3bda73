"""Attributes of the upstreams of a configuration, for spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from xenoglot.gateway.telemetry.request_spans import RequestTracing, TracedUpstream
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.gateway.telemetry.exporters import Telemetry

_PORTS: Final = {"http": 80, "https": 443}


def tracing(config: Config, telemetry: Telemetry, redact: Callable[[str], str]) -> RequestTracing:
    """Return what makes the spans of requests to the upstreams of `config`."""
    upstreams = {name: traced_upstream(name, upstream) for name, upstream in config.upstreams.items()}
    return RequestTracing(telemetry, upstreams, redact)


def traced_upstream(name: str, upstream: UpstreamSettings) -> TracedUpstream:
    """Return the attributes of the upstream `name`; without a provider that is known, it is its own."""
    url = urlsplit(upstream.base_url)
    provider = name
    if upstream.provider is not None:
        row = catalog.get(upstream.provider)
        provider = row.telemetry or row.name
    return TracedUpstream(provider, upstream.dialect, url.hostname, url.port or _PORTS.get(url.scheme))
