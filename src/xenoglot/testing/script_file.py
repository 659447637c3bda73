"""Scripts in TOML files: the rules of a server, with canned answers."""

from __future__ import annotations

import os
import tomllib
from base64 import b64decode
from binascii import Error as Base64Error
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError
from xenoglot.testing.canned import BROKEN, CUT, END, SILENT, answers, polyglot
from xenoglot.testing.script import Headers, RequestMatcher, ScriptRule, Split, Step, Steps

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

ENDINGS = {"end": END, "cut": CUT, "broken": BROKEN, "silent": SILENT}
_WORDS = {"do": tuple(step.__struct_config__.tag for step in get_args(Step)), "then": tuple(ENDINGS)}
"""Keys that have one of a few words, and these."""
_BYTES = ("data", "body", "contains")
"""Keys whose text is converted to bytes."""


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """A call in a ready answer."""

    name: str
    arguments: str = "{}"


class AnswerRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A canned answer: its content (see `answers`), and its streaming (see `Answers.streamed`)."""

    dialect: str
    text: str | tuple[str, ...] = ("Hel", "lo.")
    reasoning: str | None = None
    tool: Tool | None = None
    model: str = "scripted"
    headers: Headers = ()
    upto: int | None = None
    then: Literal["end", "cut", "broken", "silent"] = "end"
    split: Split = 0
    pause: float = 0.0


class RuleRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[rule]]`: `steps`, or a canned `answer`, which is streamed if requested."""

    steps: Steps = ()
    answer: AnswerRow | None = None
    when: RequestMatcher = RequestMatcher()
    times: int | None = None
    reads: Literal["all", "head"] = "all"


class ServerTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[server]`: the address to listen at, and how."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    door: Literal["open", "refuse", "stall"] = "open"
    greeting: Steps = ()


class ScriptFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A complete file. Without rules every dialect is answered."""

    server: ServerTable = ServerTable()
    rule: tuple[RuleRow, ...] = field(default=())

    def rules(self) -> tuple[ScriptRule, ...]:
        """Return the rules of the server.

        Raises:
            ConfigurationError: a dialect does not exist.
        """
        return tuple(rule for row in self.rule for rule in _rules(row)) if self.rule else polyglot()


def load(path: str | Path) -> ScriptFile:
    """Return the script in a TOML file. Paths in it are relative to the file.

    Raises:
        ConfigurationError: unreadable, or not a script; the message has the path.
    """
    try:
        text = Path(path).read_bytes()
        return read(text.decode(), Path(path).parent)
    except OSError as error:
        raise ConfigurationError(f"`{path}` cannot be read: {os.strerror(error.errno or 0)}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"`{path}`: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"`{path}`: byte {error.start} is not UTF-8") from None


def read(text: str, folder: Path) -> ScriptFile:
    """Return the script in `text`. Raises `ConfigurationError` if it is not one."""
    try:
        return msgspec.convert(_prepared(tomllib.loads(text), folder), ScriptFile, builtin_types=(bytes,))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(str(error)) from None
    except RecursionError:
        raise ConfigurationError("its values are nested too deeply to be read") from None
    except msgspec.ValidationError as error:
        known = next((words for key, words in _WORDS.items() if str(error).endswith(f".{key}`")), ())
        raise ConfigurationError(f"{error}; expected one of {', '.join(known)}" if known else str(error)) from None


def _rules(row: RuleRow) -> tuple[ScriptRule, ...]:
    if row.answer is None:
        when = row.when
        if when.dialect is not None:
            when = replace(when, dialect=get(when.dialect).name)
        return (ScriptRule(steps=row.steps, when=when, times=row.times, reads=row.reads),)
    ready = row.answer
    tool = None if ready.tool is None else (ready.tool.name, ready.tool.arguments)
    made = answers(ready.dialect, text=ready.text, reasoning=ready.reasoning, tool=tool, model=ready.model)
    streamed = made.streamed(
        upto=ready.upto, then=ENDINGS[ready.then], headers=ready.headers, split=ready.split, pause=ready.pause
    )
    stream, whole, listing = made.rules()
    stream = replace(stream, steps=streamed)
    whole = replace(whole, steps=made.complete(headers=ready.headers, split=ready.split))
    return (*(_limited(rule, row) for rule in (stream, whole)), listing)


def _limited(rule: ScriptRule, row: RuleRow) -> ScriptRule:
    """Return the rule of a canned answer with the other settings of its row."""
    said = {name: value for name in ("method", "path", "contains") if (value := getattr(row.when, name)) is not None}
    return replace(rule, when=replace(rule.when, **said), times=row.times)


def _prepared(value: JSON, folder: Path) -> object:
    """Return a TOML value with bytes and header fields in the form of the structs."""
    if isinstance(value, list):
        return [_prepared(item, folder) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _field(name, item, folder) for name, item in value.items()}


def _field(name: str, value: JSON, folder: Path) -> object:
    if name in _BYTES:
        return _bytes(value, folder)
    if name == "headers" and isinstance(value, dict):
        return [
            (header, each) for header, said in value.items() for each in (said if isinstance(said, list) else [said])
        ]
    return _prepared(value, folder)


def _bytes(value: JSON, folder: Path) -> object:
    """Return bytes from text or from a table: `text` or `base64` or `file`, and how many `times`."""
    if isinstance(value, str):
        return value.encode()
    return _placeholders(value, folder) if isinstance(value, dict) else value


def _placeholders(value: JSONObject, folder: Path) -> object:
    times = value.get("times", 1)
    match value:
        case {"text": str(text), **rest}:
            data = text.encode()
        case {"base64": str(text), **rest}:
            try:
                data = b64decode(text, validate=True)
            except Base64Error as error:
                raise ConfigurationError(f"`base64`: {error}") from None
        case {"file": str(name), **rest}:
            data = (folder / name).read_bytes()
        case _:
            return value
    unknown = sorted(rest.keys() - {"times"})
    if unknown or not isinstance(times, int):
        raise ConfigurationError(f"bytes are set by `text`, `base64` or `file`, and `times`; found {unknown or times}")
    return data * times
