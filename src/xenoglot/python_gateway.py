"""A gateway from Python: one's own model behind it, or a configuration as what a client asks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from xenoglot.backends.backend import Backend
    from xenoglot.backends.local_models.adapt import LocalModelOptions

_ARGUMENTS = {"server.host": "host", "server.port": "port", "keys.env[0]": "client_key_env"}


def serve(
    model: Any,  # noqa: ANN401  its type is detected by `backend_of`
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    client_key_env: str | None = None,
    **options: Unpack[LocalModelOptions],
) -> None:
    """Serve `model` in every dialect until a signal ends it, as `xenoglot serve` does.

    A model is a function of a prompt or of a `Request` (`prompts` says of which, where the function itself does not), a
    pipeline of the transformers library, a model of it with its `tokenizer`, an object with a tokenizer that has
    `apply_chat_template` and with `generate_async`, or a backend. A `tokenizer` beside a function of a prompt counts.
    `text_syntax` is how it writes tool calls and thoughts: the name of a syntax, or `off`; `auto` goes by its name, or
    by what it writes. `emulate` is how its answers are brought to the JSON schemas that requests ask for. A backend
    says itself what they are.

    It answers to its own name and, saying so, in place of any other. Port 0 takes a free one; the line that says where
    it serves goes to standard output. `client_key_env` names the environment variable that holds the clients' keys.

    Raises:
        ConfigurationError: it is nothing that can be served, the address cannot be used, or others could reach it
            without a key.
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
    """Return what a client is given as its upstream, to be answered as the gateway of `config` would answer it.

    with xenoglot.Client(xenoglot.configured("xenoglot.toml"), model="fast") as client:
        ...

    `config` is the path of a configuration file, or what would stand in one. Names, fallbacks, retries, limits and
    readings are those of the file; no socket is opened for them. With `ready` the embedded model, if it is meant, is
    loaded before the first call.

    Raises:
        ConfigurationError: it is none.
    """
    from functools import partial  # noqa: PLC0415  to import xenoglot loads nothing but codecs

    from xenoglot.gateway.config.load import check, load  # noqa: PLC0415
    from xenoglot.gateway.process.gateway_backend import open_gateway_backend  # noqa: PLC0415

    if isinstance(config, str | Path):
        told = load(config, os.environ)
    else:
        told = check(dict(config), os.environ, "xenoglot.configured")
    return partial(open_gateway_backend, told, ready=ready)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  where it serves is what its caller wants to know
