"""A gateway from Python: in front of a model of your own, or as the upstream of a client."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from xenoglot.backends.backend import Backend
    from xenoglot.backends.local_models.adapt import LocalModelOptions

_logger = logging.getLogger("xenoglot.client")

_ARGUMENTS = {"server.host": "host", "server.port": "port", "keys.env[0]": "client_key_env"}


def serve(
    model: Any,  # noqa: ANN401  its type is detected by `backend_of`
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    client_key_env: str | None = None,
    **options: Unpack[LocalModelOptions],
) -> None:
    """Serve a model in every dialect until the process gets a signal, as `xenoglot serve` does.

    The server answers requests for any model name, and reports its own name. It prints its URL to standard output.

    Args:
        model: A function of a prompt or of a `Request`, a pipeline of the transformers library, a model of it with its
            `tokenizer`, an engine with `generate_async` and a tokenizer that has `apply_chat_template`, or a backend.
        host: The address to listen on. Default: `"127.0.0.1"`.
        port: The port to listen on; 0 is a free one. Default: `8080`.
        client_key_env: The environment variable with the API keys of clients. `None` needs no key.

    Keyword Args:
        tokenizer: The tokenizer of a transformers model, or one that counts the tokens of a function of a prompt.
        name: The name of the model. `None` is that of the object.
        prompts: Whether a function gets the prompt as text (`True`) or the `Request`. `None` reads its first parameter.
        text_syntax: How the model writes tool calls and reasoning in its text: `"auto"`, the name of a syntax, or
            `"off"`. Default: `"auto"`.
        emulate: How to make answers match JSON schemas. `None` does nothing.

    Raises:
        ConfigurationError: The object cannot be served, the address is not available, or others could reach it without
            a key.

    Example::

        def shout(prompt: str) -> str:
            return prompt.upper()


        xenoglot.serve(shout, port=8000)
    """
    from xenoglot.backends.local_models.adapt import backend_of  # noqa: PLC0415  to import xenoglot loads nothing but codecs
    from xenoglot.gateway.config.load import check  # noqa: PLC0415
    from xenoglot.gateway.process.gateway_backend import single_backend  # noqa: PLC0415
    from xenoglot.gateway.process.serve import serve as serve_config  # noqa: PLC0415

    options.setdefault("text_syntax", "auto")
    backend = backend_of(model, **options)
    keys = {} if client_key_env is None else {"keys": {"env": [client_key_env]}}
    config = check({"server": {"host": host, "port": port}, **keys}, os.environ, "xenoglot.serve", _ARGUMENTS)
    serve_config(config, say=_say, assemble=single_backend(backend))


def configured(
    config: Path | str | Mapping[str, Any], *, ready: bool = True
) -> Callable[[], AbstractAsyncContextManager[Backend]]:
    """Return an upstream for a client that answers as the gateway of a configuration would, without opening a socket.

    Model names, fallbacks, retries and limits are those of the configuration.

    Args:
        config: The path of a configuration file, or its content as a dict.
        ready: Whether to load the embedded model, if configured, before the first call. Default: `True`.

    Returns:
        The first argument of `Client` or `AsyncClient`.

    Raises:
        ConfigurationError: The configuration is not valid, or the file is unreadable.

    Example::

        with xenoglot.Client(xenoglot.configured("xenoglot.toml"), model="fast") as client:
            print(client.complete("Hello"))
    """
    from functools import partial  # noqa: PLC0415  to import xenoglot loads nothing but codecs

    from xenoglot.gateway.config.load import check, load  # noqa: PLC0415
    from xenoglot.gateway.process.gateway_backend import open_gateway_backend  # noqa: PLC0415

    if isinstance(config, str | Path):
        told = load(config, os.environ)
    else:
        told = check(dict(config), os.environ, "xenoglot.configured")
    return partial(open_gateway_backend, told, ready=ready)


def default_upstream(
    model: str | None, environ: Mapping[str, str] = os.environ
) -> tuple[str | Callable[[], AbstractAsyncContextManager[Backend]] | None, str | None]:
    """Return the upstream of a client that names none, and its model: those of the commands.

    The upstream is `None` for the embedded model. `model` is the one that the client names.

    Raises:
        ConfigurationError: the configuration is not valid, or `./xenoglot.toml` needs to be trusted.
    """
    from functools import partial  # noqa: PLC0415  as above

    from xenoglot.gateway.config import discovery  # noqa: PLC0415
    from xenoglot.gateway.config.load import load  # noqa: PLC0415

    server = discovery.default_server(environ, Path(), model or environ.get(discovery.MODEL_VARIABLE) or None)
    if server.config is None:
        return server.upstream, model if server.upstream is None else server.model
    from xenoglot.gateway.process.gateway_backend import open_gateway_backend  # noqa: PLC0415  as above

    config = load(server.config, environ)
    if server.found is not None and server.found.local:
        _logger.info("using %s of this directory: %s", server.found.path.name, discovery.servers(server.found.path))
    return partial(open_gateway_backend, config), server.model or config.first_model


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  where it serves is what its caller wants to know
