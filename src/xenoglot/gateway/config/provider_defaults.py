"""Settings of an upstream from the row of its provider, if the file does not set them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends.remote.sign_in.settings import is_sign_in
from xenoglot.codec.glob import matches
from xenoglot.codec.target import TargetRule, Targets
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.extra_endpoints import check_extra_endpoints, default_endpoints, moved, tables
from xenoglot.gateway.config.local_models import check_syntax
from xenoglot.gateway.config.schema import join, shown, unknown
from xenoglot.providers import catalog
from xenoglot.providers.provider import base_url, endpoint_of, required_settings, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.config.extra_endpoints import ExtraEndpoint, ModelOverrides
    from xenoglot.gateway.config.schema import Problems
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.providers.provider import ModelRule, Provider, ProviderEndpoint

_PATH = re.compile(r"/[!-\"$->@-~]*")
_NOWHERE = {"dialect": "chat", "base_url": "http://127.0.0.1"}
"""What stands for an upstream whose provider is a mistake, so that nothing else is complained of."""


def with_provider_defaults(plain: JSONObject, environ: Mapping[str, str], problems: Problems) -> JSONObject:
    """Return the data of a file, each upstream that names a provider filled from its row."""
    upstreams = plain.get("upstreams")
    if not isinstance(upstreams, dict):
        return plain
    named = {name: _canonical(one) for name, one in upstreams.items()}
    filled = {name: _upstream(one, join("upstreams", name), environ, problems) for name, one in named.items()}
    return {**plain, "upstreams": filled}


def _canonical(said: JSON) -> JSON:
    """Return an upstream with the dialects under their own names: `openai` is another name of `chat`."""
    if not isinstance(said, dict):
        return said
    named = {**said, "dialect": dialects.canonical_json(said["dialect"])} if "dialect" in said else dict(said)
    also = named.get("also")
    if isinstance(also, list):
        named["also"] = [_canonical(one) if isinstance(one, dict) else dialects.canonical_json(one) for one in also]
    return named


def _upstream(said: JSON, path: str, environ: Mapping[str, str], problems: Problems) -> JSON:
    if not isinstance(said, dict):
        return said
    name = said.get("provider")
    if not isinstance(name, str):
        if "settings" in said and isinstance(said["settings"], dict):
            problems.add(join(path, "settings"), "of a provider, and none is named")
        return _with_facts(said) if name is None else _NOWHERE | said
    if name not in catalog.names():
        problems.add(join(path, "provider"), f"found {shown(name)}: {unknown(name, catalog.names())}")
        return _NOWHERE | said
    try:
        row = catalog.get(name)
    except ConfigurationError as error:
        problems.add(join(path, "provider"), str(error))
        return _NOWHERE | said
    try:
        face = endpoint_of(row, said.get("dialect"))
    except ConfigurationError as error:
        problems.add(join(path, "dialect"), str(error))
        return _NOWHERE | said
    table = _Table(said, row, path, environ, problems)
    filled = _filled(said, row, face, _address(table, face))
    named = said.get("also", default_endpoints(face.dialect, row))
    if isinstance(named, list) and named:
        filled["also"] = [_spoken(one, table, face) if isinstance(one, dict) else one for one in tables(named)]
    return filled


class _Table(NamedTuple):
    """The table of an upstream in the file, the row of its provider, and where its mistakes are noted."""

    said: JSONObject
    row: Provider
    path: str
    environ: Mapping[str, str]
    problems: Problems


def _spoken(said: JSONObject, table: _Table, main: ProviderEndpoint) -> JSONObject:
    """Return a further dialect of an upstream, filled from the row where the file does not set it."""
    upstream, row = table.said, table.row
    face = next((face for face in row.faces if face.dialect == said.get("dialect")), None)
    if face is None:
        return said
    address = _address(table, face)
    if "base_url" in upstream and isinstance(address, str):
        address = moved(address, main, face)
    told = _table(upstream, "target") | _table(said, "target")
    auth = upstream["auth"] if is_sign_in(upstream.get("auth")) else face.auth or row.auth
    paths: JSONObject = {
        "hosted_by": face.hosted_by,
        "path": face.path,
        "stream_path": face.stream_path,
        "count_path": face.count_path,
    }
    from_row: JSONObject = {"auth": auth, **paths}
    return {
        "models": list(face.models),
        **{key: value for key, value in from_row.items() if value is not None},
        "base_url": address,
        **said,
        "target": catalog.merged(row.quirks, face.quirks) | told,
        "model_overrides": [*_own_facts(upstream, _sound(told)), *_facts_of(row, face, _sound(told))],
    }


def _address(table: _Table, face: ProviderEndpoint) -> JSON:
    said, row, path, environ, problems = table
    settings = said.get("settings", {})
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        return _NOWHERE["base_url"]  # it is complained of where it is read
    path = join(path, "settings")
    for name in settings.keys() - row.settings.keys():
        problems.add(join(path, name), unknown(name, row.settings) if row.settings else f"`{row.name}` has none")
    if "base_url" in said:
        return said["base_url"]
    values: dict[str, str] = {}
    for name in required_settings(face):
        try:
            values[name] = value_of(row, name, settings, environ)
        except ConfigurationError as error:
            problems.add(join(path, name), str(error))
    return base_url(face, values) if values.keys() >= {*required_settings(face)} else _NOWHERE["base_url"]


def _filled(said: JSONObject, row: Provider, face: ProviderEndpoint, address: JSON) -> JSONObject:
    told = _table(said, "target")
    load = said.get("load_metrics")
    if isinstance(load, dict):
        said = said | {"load_metrics": {"gauges": list(row.gauges)} | load}
    auth = said.get("auth", face.auth or row.auth)
    usual: JSONObject = {
        "key_env": None if is_sign_in(auth) else row.key_env,
        "auth": face.auth or row.auth,
        "hosted_by": face.hosted_by,
        "path": face.path,
        "stream_path": face.stream_path,
        "count_path": face.count_path,
        "models_path": face.models_path,
        "text_syntax": row.text_syntax,
    }
    return {
        **{key: value for key, value in usual.items() if value is not None},
        **said,
        "dialect": face.dialect,
        "base_url": address,
        "headers": {**row.headers, **face.headers, **_table(said, "headers")},
        "target": catalog.merged(row.quirks, face.quirks) | told,
        "model_overrides": [*_own_facts(said, _sound(told)), *_facts_of(row, face, _sound(told))],
    }


def _facts_of(row: Provider, face: ProviderEndpoint, told: JSONObject) -> list[JSON]:
    return [
        _facts(models, row, face, told) for models in row.models if face.dialect in (models.dialects or face.dialect)
    ]


def _facts(models: ModelRule, row: Provider, face: ProviderEndpoint, told: JSONObject) -> JSONObject:
    quirks = catalog.merged(row.quirks, face.quirks, models.quirks) | told
    fields: JSONObject = {"context": models.context, "text_syntax": models.text_syntax}
    known = {key: value for key, value in fields.items() if value is not None}
    return {"names": list(models.names), "target": quirks, **known}


def _with_facts(said: JSONObject) -> JSONObject:
    named = said.get("also", default_endpoints(said.get("dialect")))
    more: JSONObject = {"also": tables(named)} if isinstance(named, list) and named else {}
    if "model_overrides" in said:
        more["model_overrides"] = _own_facts(said, _sound(_table(said, "target")))
    return said | more


def _own_facts(said: JSONObject, target: JSONObject) -> list[JSON]:
    """Return the facts of the file, completed by those of all models."""
    facts = said.get("model_overrides", [])
    if not isinstance(facts, list):
        return [facts]  # it is complained of where it is read
    return [{**one, "target": target | _table(one, "target")} if isinstance(one, dict) else one for one in facts]


def _sound(target: JSONObject) -> JSONObject:
    """Return the facts of the file where they are such, and nothing else: a mistake is complained of once."""
    try:
        catalog.target_of(target)
    except ConfigurationError:
        return {}
    return target


def _table(said: JSONObject, key: str) -> JSONObject:
    value = said.get(key, {})
    return value if isinstance(value, dict) else {}


def check_provider(upstream: UpstreamSettings, path: str, problems: Problems) -> None:
    """Note paths of a server that are none, further dialects that do not exist, and unknown text syntaxes."""
    _check_path(upstream.models_path, join(path, "models_path"), problems)
    for key in ("path", "stream_path", "count_path"):
        _check_path(getattr(upstream, key), join(path, key), problems, upstream.dialect)
    _check_host(upstream, path, problems)
    for index, one in enumerate(upstream.also):
        _check_host(one, f"{join(path, 'also')}[{index}]", problems)
    check_extra_endpoints(upstream.dialect, upstream.also, path, problems)
    for index, also in enumerate(upstream.also):
        _check_path(also.path, f"{join(path, 'also')}[{index}].path", problems, also.dialect)
    for index, facts in enumerate(upstream.model_overrides):
        check_syntax(facts.text_syntax, f"{join(path, 'facts')}[{index}]", problems)


def sign_in_advice(upstream: UpstreamSettings) -> str:
    """Return how to do without the key of an upstream, if its provider accepts a sign-in: the end of an error."""
    row = catalog.get(upstream.provider) if upstream.provider in catalog.names() else None
    if row is None or row.sign_in is None:
        return ""
    flag = row.sign_in.replace("_", "-")
    return f'; or sign in without a key: `auth = "{row.sign_in}"` (`--auth {flag}`)'


def _check_host(spoken: UpstreamSettings | ExtraEndpoint, path: str, problems: Problems) -> None:
    """Note a dialect that does not host the other, and paths set together with it."""
    if spoken.hosted_by is None or spoken.dialect not in dialects.names():
        return
    try:
        dialects.hosted_by(spoken.hosted_by, spoken.dialect)
    except ConfigurationError as error:
        problems.add(join(path, "hosted_by"), str(error))
    for key in ("path", "stream_path", "count_path"):
        if getattr(spoken, key) is not None:
            problems.add(join(path, key), "cannot be set together with `hosted_by`, which has the paths")


def check_load_metrics(upstream: UpstreamSettings, path: str, problems: Problems) -> None:
    """Note that the load of a server is to be read, and nothing is known of its metrics."""
    load, place = upstream.load_metrics, join(path, "load_metrics")
    if load is None:
        return
    _check_path(load.path, join(place, "path"), problems)
    if not load.gauges:
        problems.add(join(place, "gauges"), "missing; set the names of the gauges that count requests at the server")


def check_cache_marks(upstream: UpstreamSettings, path: str, problems: Problems) -> None:
    """Note that prompts are to be marked for a server that takes no marks."""
    spoken = [name for name in (upstream.dialect, *(one.dialect for one in upstream.also)) if name in dialects.names()]
    targets = [upstream.target, *(facts.target for facts in upstream.model_overrides)]
    takes = any(dialects.get(name).marked_caches for name in spoken) or any(target.cache_marks for target in targets)
    if upstream.cache_marks == "auto" and not takes:
        problems.add(
            join(path, "cache_marks"),
            'found "auto", and the server caches without marks, as far as is known; leave it out, or set '
            "`target.cache_marks = true` if it takes them",
        )


def _check_path(value: str | None, path: str, problems: Problems, dialect: str = "") -> None:
    if value is None:
        return
    if not _PATH.fullmatch(value):
        problems.add(path, f"found {shown(value)}; expected a path that begins with `/`, without a query")
    if dialect in dialects.names() and dialects.get(dialect).stream_path is not None:
        problems.add(path, f"the paths of {dialect} cannot be others")


def upstream_of_endpoint(upstream: UpstreamSettings, also: ExtraEndpoint) -> UpstreamSettings:
    """Return an upstream as clients of a further dialect find it: what `also` sets, and else what the upstream does."""
    facts = upstream.model_overrides if also.target is None and not also.model_overrides else also.model_overrides
    return replace(
        upstream,
        dialect=also.dialect,
        base_url=also.base_url or upstream.base_url,
        hosted_by=also.hosted_by,
        path=also.path,
        stream_path=also.stream_path,
        count_path=also.count_path,
        models_path=None,
        auth=upstream.auth if is_sign_in(upstream.auth) else also.auth or upstream.auth,
        target=also.target or upstream.target,
        model_overrides=facts,
        also=(),
    )


def dialect_of(upstream: UpstreamSettings) -> Dialect:
    """Return the dialect of a server, with the paths that are its own."""
    if upstream.hosted_by is not None:
        return dialects.hosted_by(upstream.hosted_by, upstream.dialect)
    dialect = dialects.get(upstream.dialect)
    names = ("path", "stream_path", "count_path", "models_path")
    told = {name: value for name in names if (value := getattr(upstream, name)) is not None}
    if "stream_path" in told:
        return replace(dialect, stream_in_body=True, **told)
    return replace(dialect, **told) if told else dialect


def targets_of(upstream: UpstreamSettings) -> Targets:
    """Return what is known of a server and of its models."""
    return Targets(
        upstream.target, [TargetRule(names=facts.names, target=facts.target) for facts in upstream.model_overrides]
    )


def syntax_of(facts: Iterable[ModelOverrides], model: str, usual: str) -> str:
    """Return the syntax of calls and reasoning of `model`; `usual` if the facts have none."""
    for one in facts:
        if one.text_syntax is not None and any(matches(pattern, model) for pattern in one.names):
            return one.text_syntax
    return usual


def context_of(facts: Iterable[ModelOverrides], model: str) -> int | None:
    """Return the context window of `model` in tokens; `None` if the facts have none."""
    for one in facts:
        if one.context is not None and any(matches(pattern, model) for pattern in one.names):
            return one.context
    return None
