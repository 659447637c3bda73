"""The configuration that a few flags of the command line stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.glob import matches
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.config.settings import Preserve
    from xenoglot.model.json import JSONObject

FLAGS_UPSTREAM = "upstream"
"""Name of the upstream that flags configure."""

_FLAGS = {
    "upstreams.upstream.base_url": "--upstream",
    "upstreams.upstream.provider": "--upstream",
    "upstreams.upstream.dialect": "--dialect",
    "upstreams.upstream.key_env": "--key-env",
    "upstreams.upstream.text_syntax": "--text-syntax",
    "models[0].name": "--model",
    "models[1].name": "--model",
    "keys.env[0]": "--client-key-env",
    "keys.env": "--client-key-env",
    "server.host": "--host",
    "server.port": "--port",
    "server.workers": "--workers",
    "upstreams.upstream.preserve_reasoning": "--preserve",
    "upstreams.upstream.also[0].dialect": "--also",
    "upstreams.upstream.also[1].dialect": "--also",
    "embedded.gguf": "--gguf",
    "embedded.text_syntax": "--text-syntax",
}


def from_flags(  # noqa: PLR0913  one argument per flag
    environ: Mapping[str, str],
    *,
    upstream: str | None = None,
    dialect: str | None = None,
    model: str | None = None,
    key_env: str | None = None,
    text_syntax: str | None = None,
    client_key_env: str | None = None,
    host: str | None = None,
    port: int | None = None,
    workers: int | None = None,
    gguf: str | None = None,
    preserve: Preserve | None = None,
    also: list[str] | None = None,
) -> Config:
    """Return the configuration that a few flags stand for: one upstream, or the embedded model.

    Raises:
        ConfigurationError: something is wrong; the text names the flags.
    """
    alone: dict[str, object] = {"--dialect": dialect, "--also": also, "--model": model, "--key-env": key_env}
    alone["--preserve"] = preserve
    if gguf is None:
        alone["--text-syntax"] = text_syntax
    if upstream is None and any(alone.values()):
        needless = ", ".join(flag for flag, value in alone.items() if value)
        raise ConfigurationError(f"{needless}: no server is chosen; {_advice(model)}")
    server = {"host": host, "port": port, "workers": workers}
    plain: JSONObject = {"server": {key: value for key, value in server.items() if value is not None}}
    if client_key_env is not None:
        plain["keys"] = {"env": [client_key_env]}
    if gguf is not None:
        plain["embedded"] = {"gguf": gguf}
        if upstream is None and text_syntax is not None:
            plain["embedded"]["text_syntax"] = text_syntax
    if upstream is not None:
        where: dict[str, str | None] = {"base_url": upstream, "dialect": dialect or "chat"}
        if "/" not in upstream and ":" not in upstream:
            where = {"provider": upstream, "dialect": dialect}
        main = {**where, "key_env": key_env, "text_syntax": text_syntax, "preserve_reasoning": preserve, "also": also}
        plain["upstreams"] = {FLAGS_UPSTREAM: {key: value for key, value in main.items() if value is not None}}
    if model is not None:
        plain["models"] = [{"name": name, "upstream": FLAGS_UPSTREAM, "model": model} for name in (model, "*")]
    return check(plain, environ, "the command line", _FLAGS)


def _advice(model: str | None) -> str:
    """Return how to choose a server; for a model that the catalogue has, its provider."""
    usual = "name one with `--upstream URL` or `--upstream PROVIDER`"
    rows = () if model is None else (catalog.get(name) for name in catalog.names())
    known = [row.name for row in rows if any(matches(name, str(model)) for rule in row.models for name in rule.names)]
    return f"did you mean `--model {known[0]}/{model}`? Else {usual}" if len(known) == 1 else usual
