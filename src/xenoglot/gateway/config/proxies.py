"""The proxies of upstreams: their settings, and the choice of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.http.proxies import Proxy, proxy_for, read_proxy
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.schema import join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.gateway.config.file_permissions import Secrets
    from xenoglot.gateway.config.schema import Problems
    from xenoglot.gateway.config.settings import UpstreamSettings


def check_proxy(upstream: UpstreamSettings, environ: Mapping[str, str], path: str, problems: Problems) -> None:
    """Note an invalid proxy, one that is set twice, and one with its password in the file."""
    said, variable = upstream.proxy, upstream.proxy_env
    if said is not None and variable is not None:
        problems.add(join(path, "proxy"), "stands in `proxy_env` where that is there")
    elif said is not None and "@" in said:
        told = "holds a user or password; name the environment variable with the URL in `proxy_env`"
        problems.add(join(path, "proxy"), told)
    elif said is not None:
        _try(lambda: proxy_for(upstream.base_url, said, environ), join(path, "proxy"), problems)
    elif variable is not None and (url := environ.get(variable, "").strip()):  # without one it is complained of already
        _try(lambda: read_proxy(url, variable), join(path, "proxy_env"), problems)


def _try(read: Callable[[], object], path: str, problems: Problems) -> None:
    try:
        read()
    except ConfigurationError as error:
        problems.add(path, str(error))


def proxy_of(upstream: UpstreamSettings, secrets: Secrets, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for requests to a server, `None` for a direct connection.

    Raises:
        ConfigurationError: the environment names one that is none.
    """
    if upstream.proxy_env is not None:
        return read_proxy(secrets[upstream.proxy_env], upstream.proxy_env)
    return proxy_for(upstream.base_url, upstream.proxy, environ)
