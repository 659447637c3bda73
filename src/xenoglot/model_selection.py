"""Which model a command asks: the flags that say it, and the configuration that they stand for."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from xenoglot.dialect_registry import names
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from xenoglot.backends.backend import Backend
    from xenoglot.client.results.costs import Prices
    from xenoglot.gateway.config.load import Config

ANY_MODEL = "any"
"""A name nobody has: the embedded model answers to every name."""

FLAGS = (
    "host",
    "port",
    "workers",
    "client_key_env",
    "upstream",
    "dialect",
    "model",
    "key_env",
    "text_syntax",
    "gguf",
    "preserve",
    "also",
)
"""What flags may say that a configuration file can say."""

_BESIDE = ("host", "port", "workers")
"""Those of them that may stand beside a file."""

_BESIDE_PYTHON = ("host", "port", "client_key_env", "text_syntax")
"""Those of them that may stand beside `--python`."""


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a configuration file."""
    parser.add_argument("--config", metavar="FILE", help="a TOML file that names upstreams and models")


def add_upstream(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say who answers; without any of them, the embedded model does."""
    parser.add_argument(
        "--upstream",
        metavar="URL",
        help="base URL of a server to put behind, with or without /v1; or a provider's name",
    )
    parser.add_argument("--dialect", choices=names(), help="what that server speaks (chat, or what the provider does)")
    parser.add_argument("--model", metavar="NAME", help="the model to ask there; without it names pass as they are")
    parser.add_argument("--key-env", metavar="NAME", help="the variable that holds the server's key")
    parser.add_argument(
        "--text-syntax", metavar="NAME", help="how its models write tool calls and thoughts in text: `auto`, or a name"
    )
    parser.add_argument("--gguf", metavar="PATH", help="a model file for the embedded engine")


def add_python(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a model of the user's own."""
    parser.add_argument("--python", metavar="MODULE:OBJECT", help="a model of your own: a Python object to import")


def add_price(parser: argparse.ArgumentParser) -> None:
    """Add the flag that sets the prices of a model that no table lists."""
    parser.add_argument(
        "--price",
        metavar="IN/OUT",
        help="US dollars per million tokens of prompts and answers, as in 0.25/2 "
        "(IN/OUT/CACHE_READ/CACHE_WRITE where cached tokens have prices of their own)",
    )


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
    config = config_of(options)
    embedded = backend is None and options.upstream is None and getattr(options, "config", None) is None
    return ModelSelection(
        config, partial(open_gateway_backend, config, ready=ready, own=backend), backend is not None, embedded
    )


def load_python_backend(options: argparse.Namespace) -> Backend | None:
    """Return the backend of the object that `--python` names, if it is given.

    Raises:
        ConfigurationError: it cannot be imported, is no model, or another flag says which model answers.
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
    from xenoglot.client.results.costs import Price, Prices  # noqa: PLC0415  only where something is counted

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
        choices=names(),
        help="a further dialect that the server speaks, for clients of that dialect; may be repeated",
    )


def add_preserve(parser: argparse.ArgumentParser, usual: str) -> None:
    """Add the flag that says whether what clients strip is kept; `usual` is what holds without it."""
    parser.add_argument(
        "--preserve",
        action=argparse.BooleanOptionalAction,
        help=f"keep reasoning and signatures that clients strip, and put them back into their requests ({usual})",
    )


def config_of(options: argparse.Namespace) -> Config:
    """Return the configuration that flags say: that of a file, or of one upstream, or of the embedded model.

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
        return from_flags(os.environ, **flags)
    clashing = [name for name in flags if name not in _BESIDE]
    if clashing:
        flag = clashing[0].replace("_", "-")
        raise ConfigurationError(f"`--{flag}` and `--config` exclude each other: write it into the file")
    return load(path, os.environ, **flags)
