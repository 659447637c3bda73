"""The upstream of a client that names none: the configuration that the commands use, else the embedded model."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.client.call.open_upstream import Upstream, UpstreamOptions

_logger = logging.getLogger("xenoglot.client")


def default_upstream(
    options: UpstreamOptions, environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> tuple[Upstream, UpstreamOptions]:
    """Return the upstream, `None` for the embedded model, and the options with the model to request.

    Raises:
        ConfigurationError: the configuration is wrong, or `./xenoglot.toml` needs to be trusted.
    """
    from xenoglot.gateway.config import discovery  # noqa: PLC0415  a client that names its upstream needs no gateway

    model = options.model or environ.get(discovery.MODEL_VARIABLE) or None
    server = discovery.default_server(environ, Path() if folder is None else folder, model)
    if server.config is None:
        return server.upstream, options if server.upstream is None else replace(options, model=server.model)
    from xenoglot.gateway.config.load import load  # noqa: PLC0415  as above
    from xenoglot.gateway.process.gateway_backend import open_gateway_backend  # noqa: PLC0415

    config = load(server.config, environ)
    if server.found is not None and server.found.local:
        _logger.info("using %s of this directory: %s", server.found.path.name, discovery.servers(server.found.path))
    model = server.model or next((one.name for one in config.models if "*" not in one.name), None)
    return partial(open_gateway_backend, config), replace(options, model=model)
