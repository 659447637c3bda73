"""The configuration that a few flags of the command line stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.remote.sign_in.settings import OPTIONS, option_value
from xenoglot.codec.glob import matches
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.providers import catalog
from xenoglot.providers.provider import endpoint_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.config.settings import Preserve
    from xenoglot.model.json import JSON, JSONObject

FLAGS_UPSTREAM = "upstream"
"""Name of the upstream that flags configure."""

_FLAGS = {
    "upstreams.upstream.base_url": "--upstream",
    "upstreams.upstream.provider": "--upstream",
    "upstreams.upstream.dialect": "--dialect",
    "upstreams.upstream.key_env": "--key-env",
    "upstreams.upstream.auth": "--auth",
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
    auth: str | None = None,
    setting: list[str] | None = None,
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
    alone |= {"--auth": auth, "--setting": setting, "--preserve": preserve}
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
        where: dict[str, JSON] = {"base_url": upstream, "dialect": dialect or "chat"}
        if "/" not in upstream and ":" not in upstream:
            where = {"provider": upstream, "dialect": usual_dialect(upstream, dialect, model)}
        main = {**where, "auth": auth, "key_env": key_env, "text_syntax": text_syntax, "preserve_reasoning": preserve}
        main |= {"also": also, **_settings(upstream, auth, setting or [])}
        plain["upstreams"] = {FLAGS_UPSTREAM: {key: value for key, value in main.items() if value is not None}}
    if model is not None:
        plain["models"] = [{"name": name, "upstream": FLAGS_UPSTREAM, "model": model} for name in (model, "*")]
    return check(plain, environ, "the command line", _FLAGS | _setting_flags(upstream, auth))


def usual_dialect(upstream: str, dialect: str | None, model: str | None) -> str | None:
    """Return `dialect`; without one, that of the endpoint of a provider for `model`, if it has one of its own."""
    if dialect is not None or model is None or upstream not in catalog.names():
        return dialect
    row = catalog.get(upstream)
    face = endpoint_of(row, None, model)
    return None if face is row.faces[0] else face.dialect


def _settings(upstream: str, auth: str | None, said: Sequence[str]) -> JSONObject:
    """Return the tables `settings` and `sign_in` of an upstream, from values of `--setting`.

    Raises:
        ConfigurationError: one is no `NAME=VALUE`, or neither the provider nor the sign-in has it.
    """
    named, options = _setting_names(upstream, auth)
    settings: JSONObject = {}
    sign_in: JSONObject = {}
    for text in said:
        name, _, value = text.partition("=")
        if not value:
            raise ConfigurationError(f"--setting: found `{name}`; expected NAME=VALUE")
        if name in named:
            settings[name] = value
        elif name in options:
            sign_in[name] = option_value(name, value)
        else:
            known = ", ".join((*named, *options))
            advice = f"expected one of {known}" if known else "neither the server nor its sign-in has settings"
            raise ConfigurationError(f"--setting: found `{name}`; {advice}")
    return {"settings": settings or None, "sign_in": sign_in or None}


def _setting_flags(upstream: str | None, auth: str | None) -> dict[str, str]:
    """Return what the paths of these tables are called on the command line."""
    settings, options = _setting_names(upstream, auth)
    tables = [("settings", name) for name in settings] + [("sign_in", name) for name in options]
    return {f"upstreams.{FLAGS_UPSTREAM}.{table}.{name}": f"--setting {name}=..." for table, name in tables}


def _setting_names(upstream: str | None, auth: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the settings of the provider, and the options of the sign-in."""
    row = catalog.get(upstream) if upstream is not None and upstream in catalog.names() else None
    strategy = auth or (None if row is None else row.auth)
    return (() if row is None else tuple(row.settings)), OPTIONS.get(strategy or "", ())


def _advice(model: str | None) -> str:
    """Return how to choose a server; for a model that the catalogue has, its provider."""
    usual = "name one with `--upstream URL` or `--upstream PROVIDER`"
    rows = () if model is None else (catalog.get(name) for name in catalog.names())
    known = [row.name for row in rows if any(matches(name, str(model)) for rule in row.models for name in rule.names)]
    return f"did you mean `--model {known[0]}/{model}`? Else {usual}" if len(known) == 1 else usual
