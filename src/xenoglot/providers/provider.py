"""The fields of a provider row (URLs, dialects, authentication, quirks), its base URLs and authentication."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from xenoglot.codec.glob import matches
from xenoglot.dialect_registry import canonical, get
from xenoglot.errors import ConfigurationError
from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.codec.dialect import Dialect, Headers


AuthForm: TypeAlias = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "none"]
"""How a key is shown: as `authorization: Bearer KEY`, or alone in the header of that name."""

Auth: TypeAlias = Literal[
    "key",
    "bearer",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "none",
    "google",
    "azure",
    "anthropic_identity",
    "aws",
    "client",
]
"""The same, or who signs requests in: `key` is a key as the dialect has it, `client` the client's own credential, the
others are strategies with a credential that expires (`backends.remote.sign_in`)."""

SIGN_INS: frozenset[str] = frozenset({"google", "azure", "anthropic_identity", "aws", "client"})
"""Those without a key."""


class Setting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands in the braces of a URL: `title` describes it, `env` is the variable that usually has it.

    The `default` may have other settings in braces. Where it `depends_on` another setting, `defaults` has those of
    some of its values.
    """

    title: str
    default: str | None = None
    env: str | None = None
    depends_on: str | None = None
    defaults: dict[str, str] = field(default_factory=dict)


class ProviderEndpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One dialect that a provider speaks, and where.

    `base_url` may hold settings in braces, and a query that goes with every request. `hosted_by` is the dialect whose
    servers take the bodies of this one. `path` stands in place of the
    dialect's own, `stream_path` for requests that stream, `count_path` for counts of tokens; `{model}` in it is the
    model's name as one segment, `{+model}` as several where the name has slashes; `models_path` in place of where it
    lists models. `quirks` stand before those of the row, `auth` and `headers` too. `models` are patterns of the models
    that are called here for clients of the dialect if another endpoint is configured for the upstream; none: all. A
    command or client with one of these models and no dialect uses this endpoint.
    """

    dialect: str
    base_url: str
    hosted_by: str | None = None
    path: str | None = None
    stream_path: str | None = None
    count_path: str | None = None
    models_path: str | None = None
    auth: Auth | None = None
    headers: dict[str, str] = field(default_factory=dict)
    quirks: JSONObject = field(default_factory=dict)
    models: tuple[str, ...] = ()


Face = ProviderEndpoint
"""Its name in the last release: an alias for one release."""


class ModelRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about some models of a provider, where they are not those of the row; of several that fit the first holds.

    `names` are patterns (`*` is any number of characters). `dialects` are those of the faces for which the facts hold;
    none: for all. `context` is the most tokens of prompt and answer together. `quirks` stand before those of the face:
    the longest answer is `max_tokens_limit` there, the form of reasoning options `thinking`, and so on. `text_syntax`
    is the syntax of its calls and reasoning, if the server does not parse them.
    """

    names: tuple[str, ...]
    dialects: tuple[str, ...] = ()
    context: int | None = None
    quirks: JSONObject = field(default_factory=dict)
    text_syntax: str | None = None


class Provider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row. `quirks` are fields of `codec.target.Target`, as in a configuration file's `target`: those not usual.

    The first of the `faces` is the default. `key_env` is the variable that its own
    programs keep the key in; `None` where it needs none. `sign_in` is the strategy that it accepts in place of a key.
    `auth` is `None` where a key is shown as the dialect has it.
    `local` is for servers that people run themselves. `prices` is its name in the table of prices, if that is
    different; `telemetry` is its name in the semantic conventions of OpenTelemetry, if that is. `gauges` are those of
    its metrics that count requests in progress and waiting. `sources` have the
    address of the documentation of each fact: `key_env`, `auth`, `faces.<dialect>`, `faces.<dialect>.quirks.<field>`,
    `quirks.<field>`, `settings.<name>`, `models` and `models.<field>`.
    """

    name: str
    title: str
    docs: str
    faces: tuple[ProviderEndpoint, ...]
    key_env: str | None = None
    sign_in: Auth | None = None
    auth: Auth | None = None
    headers: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    quirks: JSONObject = field(default_factory=dict)
    text_syntax: str = "off"
    models: tuple[ModelRule, ...] = ()
    local: bool = False
    prices: str | None = None
    telemetry: str | None = None
    gauges: tuple[str, ...] = ()
    note: str = ""
    sources: dict[str, str] = field(default_factory=dict)


def authorizer(form: Auth | None, dialect: Dialect) -> Callable[[str | None], Headers]:
    """Return what gives the headers of a server of `dialect` that wants its key as `form`; a sign-in adds its own."""
    return dialect.authorize if form in (None, "key") else partial(_headers, form, dialect)


def _headers(form: Auth, dialect: Dialect, key: str | None) -> Headers:
    """Return the headers that the dialect sends without a key, such as its version, and the key."""
    others = tuple(dialect.authorize(None))
    if key is None or form == "none" or form in SIGN_INS:
        return others
    return (*others, ("authorization", f"Bearer {key}") if form == "bearer" else (form, key))


_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
"""A part of the name of a host or one segment of a path; nothing that leads elsewhere."""

_BRACES = re.compile(r"\{([^{}]*)\}")


def endpoint_of(row: Provider, dialect: str | None, model: str | None = None) -> ProviderEndpoint:
    """Return the face that speaks `dialect`; without one, the face that names `model` as its own, else the first.

    Raises:
        ConfigurationError: there is none.
    """
    if dialect is None and model is not None:
        own = (face for face in row.faces if any(matches(pattern, model) for pattern in face.models))
        return next(own, row.faces[0])
    wanted = None if dialect is None else canonical(dialect)
    for face in row.faces:
        if wanted in (None, face.dialect):
            return face
    spoken = ", ".join(dict.fromkeys(face.dialect for face in row.faces))
    raise ConfigurationError(f"`{row.name}` does not speak `{dialect}`; it speaks {spoken}")


def setting_names(setting: Setting) -> frozenset[str]:
    """Return the names of the settings that the default of a setting is made of."""
    texts = (setting.default or "", *setting.defaults.values())
    named = {name for text in texts for name in _BRACES.findall(text)}
    return frozenset(named if setting.depends_on is None else named | {setting.depends_on})


def required_settings(face: ProviderEndpoint) -> tuple[str, ...]:
    """Return the names of the settings that an address needs."""
    return tuple(dict.fromkeys(_BRACES.findall(face.base_url)))


def value_of(row: Provider, name: str, said: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the value of a setting: the given one, that of the environment, or the default; in this order.

    Raises:
        ConfigurationError: there is nothing, or nothing that can stand in an address.
    """
    setting = row.settings[name]
    value = said.get(name) or environ.get(setting.env or "") or _default(row, setting, said, environ)
    if not value:
        place = f", or set the environment variable {setting.env}" if setting.env else ""
        raise ConfigurationError(f"required by `{row.name}`, {setting.title}: write it here{place}")
    if not _VALUE.fullmatch(value):
        raise ConfigurationError(f"found `{value[:60]}`; expected {setting.title}: letters, digits, `.`, `_` and `-`")
    return value


def _default(row: Provider, setting: Setting, said: Mapping[str, str], environ: Mapping[str, str]) -> str | None:
    """Return the default of a setting, the settings in it in their places. Raises as `value_of` does for these."""
    default = setting.default
    if setting.depends_on is not None:
        default = setting.defaults.get(value_of(row, setting.depends_on, said, environ), default)
    return default and _BRACES.sub(lambda found: value_of(row, found[1], said, environ), default)


def dialect_of(face: ProviderEndpoint) -> Dialect:
    """Return the dialect of an endpoint, with the paths that are its own."""
    names = ("path", "stream_path", "count_path", "models_path")
    own: dict[str, Any] = {name: value for name in names if (value := getattr(face, name)) is not None}
    if "stream_path" in own:
        own["stream_in_body"] = True
    return replace(get(face.dialect), **own) if own else get(face.dialect)


def base_url(face: ProviderEndpoint, values: Mapping[str, str]) -> str:
    """Return the address, every setting in its place."""
    return _BRACES.sub(lambda found: values[found[1]], face.base_url)
