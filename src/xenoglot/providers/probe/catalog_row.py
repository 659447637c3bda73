"""Writes the findings of a probe as a catalogue row and as a part of a configuration file, both in TOML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.providers.probe.discovery import auth_form
from xenoglot.providers.provider import ModelRule, Provider, ProviderEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.providers.probe.findings import Finding, Report, Scope

_USUAL: Final = msgspec.to_builtins(Target())
_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")
_FOREIGN: Final = re.compile(r"[^a-z0-9]+")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def quirks(report: Report, face: str, scope: Scope) -> JSONObject:
    """Return the fields of `Target` that are known and not the usual ones."""
    found = report.settings(face, scope)
    return {name: value for name, value in found.items() if name in _USUAL and _as_tuple(value) != _USUAL[name]}


def _as_tuple(value: JSON) -> JSON:
    return tuple(value) if isinstance(value, list) else value


def row_of(report: Report, name: str | None = None, key_env: str | None = None) -> Provider:
    """Return the row of the server, called `name`, or after its host; `sources` has the evidence of each quirk."""
    host = urlsplit(report.base_url).hostname or "server"
    called = name or _FOREIGN.sub("_", host.lower()).strip("_")
    faces = tuple(_endpoint(report, dialect) for dialect in report.faces)
    return Provider(
        name=called,
        title=name or host,
        docs=report.base_url,
        faces=faces,
        key_env=key_env,
        text_syntax=report.text_syntax or "off",
        models=tuple(_models(report)),
        local=host in _LOOPBACK,
        sources=dict(_sources(report)),
    )


def _endpoint(report: Report, dialect: str) -> ProviderEndpoint:
    form = report.auth.get(dialect)
    return ProviderEndpoint(
        dialect=dialect,
        base_url=report.base_url,
        auth=None if form == auth_form(get(dialect)) else form,
        quirks=quirks(report, dialect, "server"),
    )


def _models(report: Report) -> Iterator[ModelRule]:
    """Yield what is known of the tested model, in each endpoint where anything is; the first of several applies."""
    if report.model is None:
        return
    peculiar = {face: found for face in report.faces if (found := quirks(report, face, "model"))}
    for face, found in peculiar.items():
        yield ModelRule(names=(report.model,), dialects=(face,), context=report.context, quirks=found)
    if report.context is not None and len(peculiar) < len(report.faces):
        yield ModelRule(names=(report.model,), context=report.context)


def _sources(report: Report) -> Iterator[tuple[str, str]]:
    """Yield for each quirk the request and the answer."""
    for finding in report.findings:
        for name in finding.sets:
            if name in quirks(report, finding.face, finding.scope) and finding.confidence != "guess":
                place = f"models.{report.model}" if finding.scope == "model" else f"faces.{finding.face}"
                yield f"{place}.quirks.{name}", _describe(finding)
    for dialect in report.faces:
        finding = next(one for one in report.findings if one.face == dialect and one.what == "speaks")
        yield f"faces.{dialect}", _describe(finding)


def _describe(finding: Finding) -> str:
    said = "; ".join(f"asked {one.asked}, answered {one.answered}" for one in finding.evidence)
    return f"probe: {said}"


def row_toml(row: Provider) -> str:
    """Return the row as a file of the catalogue."""
    plain = {name: value for name, value in msgspec.to_builtins(row).items() if value not in (None, {}, (), [], "")}
    return "\n".join(_table(plain)) + "\n"


def config_toml(report: Report, name: str, key_env: str | None) -> str:
    """Return the upstream as a table of a configuration file, in the first dialect that the server supports."""
    if not report.faces:
        return ""
    face = report.faces[0]
    upstream: JSONObject = {"dialect": face, "base_url": report.base_url}
    if key_env is not None:
        upstream["key_env"] = key_env
    if report.text_syntax is not None:
        upstream["text_syntax"] = report.text_syntax
    facts = quirks(report, face, "server") | quirks(report, face, "model")
    upstream |= {"target": facts} if facts else {}
    return "\n".join(_table({"upstreams": {name: upstream}})) + "\n"


def _table(table: Mapping[str, JSON], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the lines of a table: its values first, for what follows a header belongs to that header."""
    inner = {key: value for key, value in table.items() if value is not None and value not in ({}, [], ())}
    for key, value in inner.items():
        if not _is_table(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        name = ".".join(_key(step) for step in (*path, key))
        if isinstance(value, dict):
            deeper = all(isinstance(item, dict) for item in value.values())
            yield from () if deeper else ("", f"[{name}]")
            yield from _table(value, (*path, key))
        elif _is_table(value):
            for item in value:
                yield from ("", f"[[{name}]]")
                yield from _table(item, (*path, key))


def _is_table(value: JSON) -> bool:
    """Whether TOML gives a value a header of its own."""
    return isinstance(value, dict) or (isinstance(value, list | tuple) and bool(value) and isinstance(value[0], dict))


def _key(key: str) -> str:
    return key if _WORD.fullmatch(key) else _value(key)


def _value(value: JSON) -> str:
    """Return a scalar or a list of them: TOML writes these as JSON does (https://toml.io/en/v1.0.0#string)."""
    return to_text(value).replace("\x7f", "\\u007f")
