"""Which model a command asks: the flags that say it, and the configuration that they stand for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from xenoglot.codec.dialect import names
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse

    from xenoglot.gateway.config import Config

ANY_MODEL = "any"
"""A name nobody has: the embedded model answers to every name."""

FLAGS = ("host", "port", "workers", "client_key_env", "upstream", "dialect", "model", "key_env", "text_syntax", "gguf")
"""What flags may say that a configuration file can say."""

_BESIDE = ("host", "port", "workers")
"""Those of them that may stand beside a file."""


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


def config_of(options: argparse.Namespace) -> Config:
    """Return the configuration that flags say: that of a file, or of one upstream, or of the embedded model.

    Raises:
        ConfigurationError: something is wrong with it.
    """
    from xenoglot.gateway.config import load  # noqa: PLC0415  `translate` must not need the extra
    from xenoglot.gateway.flags import from_flags  # noqa: PLC0415

    flags = {name: value for name in FLAGS if (value := getattr(options, name, None)) is not None}
    path = getattr(options, "config", None)
    if path is None:
        return from_flags(os.environ, **flags)
    clashing = [name for name in flags if name not in _BESIDE]
    if clashing:
        flag = clashing[0].replace("_", "-")
        raise ConfigurationError(f"`--{flag}` and `--config` exclude each other: write it into the file")
    return load(path, os.environ, **flags)
