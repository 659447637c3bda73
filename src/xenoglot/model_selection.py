"""Selects the model of a command: flags, environment variables, a configuration file, the embedded model."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from xenoglot.dialect_registry import argument, names
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.load import Config
    from xenoglot.providers.costs import Prices

ANY_MODEL = "any"
"""A name of no model: the embedded model answers to every name."""

FLAGS = (
    "host",
    "port",
    "workers",
    "client_key_env",
    "upstream",
    "dialect",
    "model",
    "key_env",
    "auth",
    "setting",
    "text_syntax",
    "gguf",
    "preserve",
    "also",
)
"""Flags that correspond to settings of a configuration file."""

MOST_LISTED = 20
"""Models that an error lists."""

_BESIDE = ("host", "port", "workers")
"""Those of them that are allowed with a file."""

_BESIDE_PYTHON = ("host", "port", "client_key_env", "text_syntax")
"""Those of them that are allowed with `--python`."""


SIGN_IN_FLAGS = {auth.replace("_", "-"): auth for auth in ("google", "azure", "aws", "anthropic_identity", "client")}
"""The ways to sign in, by their names on the command line."""


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a configuration file; without it see `find_defaults`.

    A command that has none of the flags of `add_upstream` uses the configuration that `xenoglot serve` would.
    """
    if parser.get_default("finds_defaults") is None:
        parser.set_defaults(finds_defaults=True, serves=True, **dict.fromkeys(FLAGS))
    parser.add_argument(
        "--config", metavar="FILE", help="configuration file (default: ./xenoglot.toml, then the user's config.toml)"
    )


def add_upstream(parser: argparse.ArgumentParser, *, serves: bool = False, logins: bool = False) -> None:
    """Add the flags that choose the server; without any of them see `find_defaults`.

    A command that `serves` requests no model of its own, so it ignores `XENOGLOT_MODEL` with a file. With
    `serves` or `logins` the upstream may get the login of each client.
    """
    parser.set_defaults(finds_defaults=True, serves=serves)
    parser.add_argument(
        "--upstream",
        metavar="URL",
        help="base URL of a server, with or without /v1, or the name of a provider",
    )
    parser.add_argument(
        "--dialect",
        type=argument,
        choices=names(),
        help="dialect of the server (default: chat, or that of the provider)",
    )
    parser.add_argument("--model", metavar="NAME", help="model to request; without it, names are passed on unchanged")
    parser.add_argument("--key-env", metavar="NAME", help="environment variable with the API key of the server")
    add_sign_in(parser, clients=serves or logins)
    parser.add_argument(
        "--text-syntax", metavar="NAME", help="syntax of tool calls and reasoning in text: `auto`, `off`, or a name"
    )
    parser.add_argument("--gguf", metavar="PATH", help="model file for the embedded engine")


def add_sign_in(parser: argparse.ArgumentParser, *, clients: bool = False) -> None:
    """Add the flags that sign in at the server in place of a key; with `clients`, also with each client's own."""
    parser.add_argument(
        "--auth",
        type=lambda text: SIGN_IN_FLAGS.get(text, text),
        choices=[auth for auth in SIGN_IN_FLAGS.values() if clients or auth != "client"],
        metavar="WAY",
        help=f"sign in in place of a key: {', '.join(flag for flag in SIGN_IN_FLAGS if clients or flag != 'client')}",
    )
    parser.add_argument(
        "--setting",
        action="append",
        metavar="NAME=VALUE",
        help="setting of the provider or of the sign-in, such as project, location, region, resource; repeatable",
    )


def add_python(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a model of the user's own."""
    parser.add_argument("--python", metavar="MODULE:OBJECT", help="model of your own: a Python object to import")


def add_price(parser: argparse.ArgumentParser) -> None:
    """Add the flag that sets the prices of a model that no table lists."""
    parser.add_argument(
        "--price",
        metavar="IN/OUT",
        help="US dollars per million tokens of input and output, such as 0.25/2 "
        "(with prices of cached tokens: IN/OUT/CACHE_READ/CACHE_WRITE)",
    )


def find_defaults(options: argparse.Namespace, environ: Mapping[str, str], folder: Path) -> None:
    """Set the options that no flag sets: from the environment, from a configuration file, from `PROVIDER/MODEL`.

    The first that names a server applies: flags, `XENOGLOT_UPSTREAM`, `XENOGLOT_CONFIG`, `./xenoglot.toml`, the user's
    file, the provider in `--model PROVIDER/MODEL`. If none does, the embedded model answers.

    Raises:
        ConfigurationError: `./xenoglot.toml` needs to be trusted, see `gateway.config.discovery`.
    """
    from xenoglot.gateway.config.discovery import MODEL_VARIABLE, default_server  # noqa: PLC0415  only commands that use a model

    options.found = None
    if any(getattr(options, name, None) is not None for name in ("python", "gguf", "gateway")):
        return
    model = options.model or environ.get(MODEL_VARIABLE) or None
    named = getattr(options, "config", None)
    if options.upstream is None and named is None:
        options.upstream, options.config, options.found, model = default_server(environ, folder, model)
        named = options.config
        _report_found(options, environ)
    if options.model is not None or (options.upstream if named is None else not options.serves):
        options.model = model


def _report_found(options: argparse.Namespace, environ: Mapping[str, str]) -> None:
    """Print that a file of the current directory is used, and where requests go."""
    from xenoglot.gateway.config.discovery import servers  # noqa: PLC0415  as above

    found = options.found
    if found is not None and found.local and not (options.serves and _is_worker(environ)):
        print(f"xenoglot: using {found.path.name} of this directory: {servers(found.path)}", file=sys.stderr)  # noqa: T201  a user must know


def _is_worker(environ: Mapping[str, str]) -> bool:
    """Whether this process is one of several of a gateway: the first process has reported which file is used."""
    from xenoglot.gateway.process.worker import read_worker_env  # noqa: PLC0415  only beside a gateway's file

    return read_worker_env(environ) is not None


class ModelSelection(NamedTuple):
    """The model that a command uses.

    `open` gives its backend. A `python_backend` and the `embedded` model answer to every model name.
    """

    config: Config
    open: Callable[[], AbstractAsyncContextManager[Backend]]
    python_backend: bool
    embedded: bool


def chosen(options: argparse.Namespace, *, ready: bool = True) -> ModelSelection:
    """Return the model that flags choose: with `ready`, the embedded one is loaded as it is opened.

    Raises:
        ConfigurationError: a flag or the configuration is wrong, or the object of `--python` is no model.
    """
    from xenoglot.gateway.process.gateway_backend import open_gateway_backend  # noqa: PLC0415  `translate` must not need the extra

    backend = load_python_backend(options)
    if getattr(options, "config", None) is not None:  # the name is the request's: the file keeps its own
        options = argparse.Namespace(**{**vars(options), "model": None})
    config = config_of(options)
    embedded = backend is None and options.upstream is None and getattr(options, "config", None) is None
    return ModelSelection(
        config, partial(open_gateway_backend, config, ready=ready, own=backend), backend is not None, embedded
    )


def default_model(chosen: ModelSelection) -> str:
    """Return the model to request if none is named: the first in the file, or the only one of the server that writes.

    Raises:
        ConfigurationError: the server has several models, or lists none.
        FailureError: the server cannot be reached.
    """
    from xenoglot.gateway.config.discovery import MODEL_VARIABLE  # noqa: PLC0415  as above

    if chosen.python_backend or chosen.embedded:
        return ANY_MODEL
    first = chosen.config.first_model
    if first is not None:
        return first
    names = asyncio.run(_listed(chosen))
    if len(names) == 1:
        return names[0]
    if not names:
        raise ConfigurationError(f"the server lists no models: name one with `--model` or `{MODEL_VARIABLE}`")
    more = ", ..." if len(names) > MOST_LISTED else ""
    raise ConfigurationError(
        f"the server has {len(names)} models: name one with `--model` or `{MODEL_VARIABLE}`: "
        f"{', '.join(names[:MOST_LISTED])}{more}"
    )


async def _listed(chosen: ModelSelection) -> Sequence[str]:
    from xenoglot.client.async_ import AsyncClient  # noqa: PLC0415  only where a server is asked

    async with AsyncClient(chosen.open) as client:
        return [model.id for model in await client.models() if model.writes_text()]


def load_python_backend(options: argparse.Namespace) -> Backend | None:
    """Return the backend of the object that `--python` names, if it is given.

    Raises:
        ConfigurationError: it cannot be imported, is no model, or another flag selects the model.
    """
    if options.python is None:
        return None
    from xenoglot.backends.local_models.adapt import backend_of  # noqa: PLC0415
    from xenoglot.backends.local_models.load_object import load  # noqa: PLC0415  only for models of one's own

    for name in ("config", *FLAGS):
        if name not in _BESIDE_PYTHON and getattr(options, name, None) is not None:
            raise ConfigurationError(f"`--{name.replace('_', '-')}` and `--python` exclude each other")
    return backend_of(load(options.python), text_syntax=options.text_syntax or "auto")


def prices_of(options: argparse.Namespace) -> Prices | None:
    """Return the prices that `--price` sets for every model, if it is given.

    Raises:
        ConfigurationError: they are no prices.
    """
    if options.price is None:
        return None
    from xenoglot.providers.costs import Price, Prices  # noqa: PLC0415  only where something is counted

    fields = dict(zip(("input", "output", "cache_read", "cache_write"), options.price.split("/"), strict=False))
    if not 2 <= options.price.count("/") + 1 <= 4 or not all(text.strip() for text in fields.values()):  # noqa: PLR2004  see the flag
        raise ConfigurationError(f"`--price {options.price}`: expected IN/OUT, as in 0.25/2")
    try:
        return Prices({"*": Price(**fields)}, packaged=False)
    except ConfigurationError as error:
        raise ConfigurationError(f"`--price {options.price}`: {error}") from None


def add_also(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a further dialect of the upstream."""
    parser.add_argument(
        "--also",
        action="append",
        type=argument,
        choices=names(),
        help="another dialect of the server, for clients of that dialect; repeatable",
    )


def add_preserve(parser: argparse.ArgumentParser, usual: str) -> None:
    """Add the flag that sets whether data that clients strip is kept; `usual` is its default."""
    parser.add_argument(
        "--preserve",
        action=argparse.BooleanOptionalAction,
        help=f"keep reasoning and signatures that clients strip, and restore them in later requests ({usual})",
    )


def config_of(options: argparse.Namespace) -> Config:
    """Return the configuration of the flags: that of a file, or of one upstream, or of the embedded model.

    Raises:
        ConfigurationError: something is wrong with it.
    """
    from xenoglot.gateway.config.from_flags import from_flags  # noqa: PLC0415
    from xenoglot.gateway.config.load import load  # noqa: PLC0415  `translate` must not need the extra

    flags = {name: value for name in FLAGS if (value := getattr(options, name, None)) is not None}
    if getattr(options, "python", None) is not None:
        flags.pop("text_syntax", None)  # it is the backend's, see `own_backend`
    path = getattr(options, "config", None)
    if path is None:
        if options.upstream is None and _is_embedded(options.model):
            flags.pop("model", None)
        return from_flags(os.environ, **flags)
    clashing = [name for name in flags if name not in _BESIDE]
    if clashing:
        flag, file = clashing[0].replace("_", "-"), "--config" if getattr(options, "found", None) is None else path
        raise ConfigurationError(f"`--{flag}` and `{file}` exclude each other: write it into the file")
    return load(path, os.environ, **flags)


def _is_embedded(model: str | None) -> bool:
    """Whether the name is that of the embedded model, which needs no server."""
    if model is None:
        return False
    from xenoglot.gateway.process.engines import USUAL_NAME  # noqa: PLC0415  only where a name has to be resolved

    return model in (USUAL_NAME, ANY_MODEL)
