"""The fields of a provider row: URLs, dialects, authentication and quirks."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from xenoglot.model.json import JSONObject

AuthForm: TypeAlias = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "none"]
"""How a key is shown: as `authorization: Bearer KEY`, or alone in the header of that name."""


class Setting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands in the braces of a URL: `title` says what it is, `env` is the variable that many keep it in."""

    title: str
    default: str | None = None
    env: str | None = None


class ProviderEndpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One dialect that a provider speaks, and where.

    `base_url` may hold settings in braces, and a query that goes with every request. `path` stands in place of the
    dialect's own, `{model}` in it is the model's name as one segment, `{+model}` as several where the name has slashes;
    `models_path` in place of where it lists models. `quirks` stand before those of the row, `auth` and `headers` too.
    `models` are patterns of the models that are asked here for clients of the dialect where another face is the
    upstream's; none: all.
    """

    dialect: str
    base_url: str
    path: str | None = None
    models_path: str | None = None
    auth: AuthForm | None = None
    headers: dict[str, str] = field(default_factory=dict)
    quirks: JSONObject = field(default_factory=dict)
    models: tuple[str, ...] = ()


Face = ProviderEndpoint
"""Its name in the last release: an alias for one release."""


class ModelRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about some models of a provider, where they are not those of the row; of several that fit the first holds.

    `names` are patterns (`*` is any number of characters). `dialects` are those of the faces for which the facts hold;
    none: for all. `context` is the most tokens of prompt and answer together. `quirks` stand before those of the face:
    the longest answer is `max_tokens_limit` there, how it is told to think `thinking`, and so on. `text_syntax` is what
    it writes calls and thoughts in, where the server does not read them.
    """

    names: tuple[str, ...]
    dialects: tuple[str, ...] = ()
    context: int | None = None
    quirks: JSONObject = field(default_factory=dict)
    text_syntax: str | None = None


class Provider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row. `quirks` are fields of `codec.target.Target`, as in a configuration file's `target`: those not usual.

    The first of the `faces` is the one that is taken where nothing is said. `key_env` is the variable that its own
    programs keep the key in; `None` where it needs none. `auth` is `None` where a key is shown as the dialect has it.
    `local` is for servers that people run themselves. `prices` is its name in the table of prices, where that is
    another. `sources` give the address that tells each fact: `key_env`, `auth`, `faces.<dialect>`,
    `faces.<dialect>.quirks.<field>`, `quirks.<field>`, `settings.<name>`, `models` and `models.<field>`.
    """

    name: str
    title: str
    docs: str
    faces: tuple[ProviderEndpoint, ...]
    key_env: str | None = None
    auth: AuthForm | None = None
    headers: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    quirks: JSONObject = field(default_factory=dict)
    text_syntax: str = "off"
    models: tuple[ModelRule, ...] = ()
    local: bool = False
    prices: str | None = None
    note: str = ""
    sources: dict[str, str] = field(default_factory=dict)
