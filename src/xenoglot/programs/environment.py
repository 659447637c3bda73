"""Environment, arguments and files for one run of a program, from its row and the gateway's location (pure)."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from msgspec import Struct, json

from xenoglot.codec.json.json_io import encode_json, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xenoglot.model.json import JSON
    from xenoglot.programs.program import Program

_HOLE = re.compile(r'\{(url|key|model|context|folder|"model")\}')
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_DIRECT = ("127.0.0.1", "localhost")


class GatewayLocation(Struct, frozen=True, kw_only=True):
    """Location of the gateway (`url`, without `/v1`), its key and model, and the folder for the files of the run.

    `context` is the context window of the model in tokens, if known.
    """

    url: str
    key: str
    folder: str
    model: str | None = None
    context: int | None = None


class ProgramEnvironment(Struct, frozen=True, kw_only=True):
    """Variables, arguments and files with which a program is started, in addition to the inherited environment."""

    arguments: tuple[str, ...]
    env: dict[str, str]
    unset: tuple[str, ...]
    files: dict[str, str]


def program_environment(program: Program, place: GatewayLocation) -> ProgramEnvironment:
    """Return the environment of `program`."""
    filled = (_filled(group, place) for group in program.arguments)
    return ProgramEnvironment(
        arguments=tuple(argument for group in filled if group is not None for argument in group),
        env={name: text for name, value in program.env.items() if (text := _variable(value, place)) is not None},
        unset=program.unset,
        files={file.name: _text(file.content, place) for file in program.files},
    )


def environment(made: ProgramEnvironment, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the program's variables: those of `environ` and those set; a proxy is bypassed for the gateway."""
    kept = {name: value for name, value in environ.items() if name not in made.unset}
    return kept | dict(_direct(environ)) | made.env


def shown(made: ProgramEnvironment, command: Sequence[str], folder: str) -> Iterator[str]:
    """Yield the settings as lines for a shell."""
    for name in made.unset:
        yield f"unset {name}"
    for name, value in made.env.items():
        yield f"export {name}={shlex.quote(value)}"
    for name, text in made.files.items():
        yield f"cat > {folder}/{name} <<'END'"
        yield from text.rstrip("\n").splitlines()
        yield "END"
    yield shlex.join(command)


def _direct(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield variables that bypass a proxy for this machine, in both spellings, since programs read either."""
    if not any(environ.get(name) or environ.get(name.upper()) for name in _PROXIES):
        return
    for name in ("no_proxy", "NO_PROXY"):
        said = [host.strip() for host in environ.get(name, "").split(",") if host.strip()]
        yield name, ",".join(dict.fromkeys((*said, *_DIRECT)))


def _variable(value: JSON, place: GatewayLocation) -> str | None:
    filled = _filled(value, place)
    return filled if filled is None or isinstance(filled, str) else to_text(filled)


def _text(content: JSON, place: GatewayLocation) -> str:
    if isinstance(content, str):
        return _string(content, place) or ""
    return json.format(encode_json(_filled(content, place)), indent=2).decode() + "\n"


def _filled(value: JSON, place: GatewayLocation) -> JSON:
    """Return a value with its placeholders replaced; `None` for a placeholder of an unknown model or context."""
    match value:
        case "{=context}":
            return place.context
        case dict() if place.context is None and "{=context}" in value.values():
            return None
        case str():
            return _string(value, place)
        case list() | tuple():
            items = [_filled(item, place) for item in value]
            return None if None in items else items
        case dict():
            keys = ((_string(name, place), item) for name, item in value.items())
            return {
                name: made for name, item in keys if name is not None and (made := _filled(item, place)) is not None
            }
        case _:
            return value


def _string(text: str, place: GatewayLocation) -> str | None:
    if place.model is None and ("{model}" in text or '{"model"}' in text):
        return None
    if place.context is None and "{context}" in text:
        return None
    model, context = place.model or "", str(place.context)
    fill = {
        "context": context,
        "url": place.url,
        "key": place.key,
        "folder": place.folder,
        "model": model,
        '"model"': to_text(model),
    }
    return _HOLE.sub(lambda hole: fill[hole[1]], text)
