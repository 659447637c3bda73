"""Creates a first configuration file from the answers of `xenoglot init`: commented TOML, validated."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from msgspec import Struct, field

from xenoglot.codec.json.json_io import to_text
from xenoglot.gateway.config.load import check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSON

EVERY = "*"
"""Among the models: any name goes to the upstream as it is."""

_UNSET = "not-set-yet"
"""What stands for a key while the file is checked, where its variable is still to be set."""


class UpstreamChoice(Struct, frozen=True, kw_only=True):
    """The chosen upstream: a `provider` of the catalogue, or the server at `base_url` with its `dialect`."""

    name: str
    provider: str | None = None
    base_url: str | None = None
    dialect: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    key_env: str | None = None


class InitAnswers(Struct, frozen=True, kw_only=True):
    """The answers for a first configuration; without an upstream (`upstream`) only the embedded model answers."""

    upstream: UpstreamChoice | None = None
    models: tuple[str, ...] = ()
    embedded: bool = True
    port: int = 8080
    client_key_env: str | None = None
    store: str = "sqlite"


def validate_answers(answers: InitAnswers, environ: Mapping[str, str], where: str) -> Config:
    """Return the configuration of the answers; a key variable that is not set yet is accepted.

    Raises:
        ConfigurationError: a value is invalid.
    """
    named = [answers.client_key_env, answers.upstream.key_env if answers.upstream else None]
    known = {name: environ.get(name) or _UNSET for name in named if name}
    return check(tomllib.loads(render_config(answers)), {**environ, **known}, where)


def render_config(answers: InitAnswers) -> str:
    """Return the text of the file. It contains no key: keys are in environment variables."""
    return "\n".join(_lines(answers)) + "\n"


def _lines(answers: InitAnswers) -> Iterator[str]:
    yield "# Configuration of `xenoglot serve`. All settings: docs/configuration.md."
    yield "# Keys are in environment variables, never in this file."
    yield from ("", "[server]", 'host = "127.0.0.1"  # this machine only; other addresses require client keys')
    yield f"port = {answers.port}"
    yield from _keys(answers.client_key_env)
    if answers.upstream is not None:
        yield from _upstream(answers.upstream)
    yield from _embedded(answers)
    yield from _models(answers)
    yield from ("", "# Store: responses to continue, conversations, files.", "[store]")
    yield f'url = {_value(answers.store)}  # or "sqlite:///PATH", "memory", "off"; a PostgreSQL URL goes into `url_env`'
    yield "max_age_days = 30"


def _keys(variable: str | None) -> Iterator[str]:
    yield from ("", "# Client keys: environment variables, each with one or more keys separated by spaces.")
    lines = ("[keys]", f"env = [{_value(variable or 'XENOGLOT_CLIENT_KEYS')}]")
    yield from (lines if variable else (f"# {line}" for line in lines))


def _upstream(who: UpstreamChoice) -> Iterator[str]:
    yield from ("", "# The upstream server.", f"[upstreams.{who.name}]")
    said = {"provider": who.provider, "dialect": who.dialect, "base_url": who.base_url}
    yield from (f"{name} = {_value(value)}" for name, value in said.items() if value is not None)
    if who.settings:
        settings = ", ".join(f"{name} = {_value(value)}" for name, value in who.settings.items())
        yield f"settings = {{ {settings} }}"
    if who.key_env is not None:
        yield f"key_env = {_value(who.key_env)}  # environment variable with the API key"
    yield "# deadlines = { first_byte = 60.0, idle = 120.0 }"


def _embedded(answers: InitAnswers) -> Iterator[str]:
    alone = answers.upstream is None
    yield from (
        "",
        f"# The embedded model answers requests for {'every model name' if alone else 'its own name'}.",
        "[embedded]",
    )
    yield f"enabled = {'true' if alone or answers.embedded else 'false'}"


def _models(answers: InitAnswers) -> Iterator[str]:
    if answers.upstream is None:
        return
    if not answers.models or EVERY in answers.models:
        yield from (
            "",
            "# All model names are sent on unchanged. An alias, or a pattern of names (`*`), is set like this:",
        )
        yield from (
            "# [[models]]",
            '# name = "fast"',
            f"# upstream = {_value(answers.upstream.name)}",
            '# model = "..."',
        )
        return
    yield from ("", "# Models that clients can request; set `model` if the upstream uses another name.")
    for index, name in enumerate(answers.models):
        yield from ("",) if index else ()
        yield from ("[[models]]", f"name = {_value(name)}", f"upstream = {_value(answers.upstream.name)}")


def _value(value: JSON) -> str:
    """Return a text as a TOML string, which has the same form in JSON (https://toml.io/en/v1.0.0#string)."""
    return to_text(value).replace("\x7f", "\\u007f")
