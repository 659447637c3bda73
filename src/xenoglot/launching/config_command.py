"""The command `xenoglot config`: shows, changes, locates and trusts the configuration that is found."""

from __future__ import annotations

import itertools
import os
import tempfile
import tomllib
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot import model_selection
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.gateway.config import discovery
from xenoglot.gateway.config.file_permissions import shown
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.schema import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSON, JSONObject

_FLAGS = ("upstream", "dialect", "model", "key_env", "text_syntax", "gguf", "python")
_ADDRESS = ("dialect", "base_url", "key_env")
"""What a provider's row sets that users look for."""

_DEFAULT = "default"
_WIDTH = 60
_NOT_SET = "is not set"
"""How the line of a missing environment variable ends: a file may be written before its variables are set."""


def show(options: Namespace, say: Callable[[str], None]) -> int:
    """Print what is set and where each value comes from; with `--all` the defaults too.

    Raises:
        ConfigurationError: the configuration is wrong, or the file needs to be trusted.
    """
    chosen = Namespace(**dict.fromkeys(_FLAGS), config=options.config, serves=True)
    model_selection.find_defaults(chosen, os.environ, Path())
    config = model_selection.config_of(chosen)
    model = os.environ.get(discovery.MODEL_VARIABLE)
    if chosen.upstream is None and model:
        say(f"# model of ask, chat, agent, batch and run: {model} (${discovery.MODEL_VARIABLE})")
    rows = [row for row in _rows(config, chosen, every=options.all) if options.all or row[1] != _DEFAULT]
    if not rows:
        say("# nothing is set: the embedded model answers")
    for text, source in rows:
        say(f"{text:{_WIDTH}}  # {source}")
    return 0


def _rows(config: Config, chosen: Namespace, *, every: bool) -> Iterator[tuple[str, str]]:
    """Yield `key = value` and the source of each value; the facts of a provider's row only with `every`."""
    plain: JSONObject = {} if chosen.config is None else tomllib.loads(Path(chosen.config).read_text(encoding="utf-8"))
    given, usual = dict(_leaves(plain)), dict(_leaves(_plain(check({}, {}, "defaults"))))
    for path, value in _leaves(_plain(config)):
        if path in given:
            source = str(chosen.config)
        elif chosen.config is None and (variable := _variable(path)):
            source = f"${variable}"
        elif (provider := _provider(path, config)) and (every or path.split(".")[2] in _ADDRESS):
            source = f"provider {provider}"
        else:
            source = _DEFAULT if usual.get(path, value) == value else str(chosen.config)
        yield f"{path} = {encode_json(value).decode()}", source


def _variable(path: str) -> str | None:
    """Return the environment variable that sets a value if there is no file."""
    if path in {"upstreams.upstream.base_url", "upstreams.upstream.provider"}:
        return discovery.UPSTREAM_VARIABLE
    return discovery.MODEL_VARIABLE if path in {"models[0].name", "models[0].model"} else None


def _provider(path: str, config: Config) -> str | None:
    """Return the provider whose row sets a value of an upstream that the file does not set."""
    table, _, rest = path.partition(".")
    name, _, key = rest.partition(".")
    from_row = key.partition(".")[0].partition("[")[0] in {*_ADDRESS, "target", "model_overrides", "headers"}
    return config.upstreams[name].provider if table == "upstreams" and from_row else None


def _plain(config: Config) -> JSONObject:
    plain: JSONObject = decode_json(shown(config, config.secrets))
    return plain


def _leaves(value: JSON, path: str = "") -> Iterator[tuple[str, JSON]]:
    """Yield each value that is no table under its path, as TOML writes it; an empty table has no values."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, join(path, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def path(options: Namespace, say: Callable[[str], None]) -> int:
    """Print the path of the file that is used, or of the user's file if there is none."""
    del options
    named = os.environ.get(discovery.CONFIG_VARIABLE)
    found = discovery.find_config(os.environ, Path())
    say(named or str(discovery.user_config(os.environ) if found is None else found.path.absolute()))
    return 0


def trust(options: Namespace, say: Callable[[str], None]) -> int:
    """Trust a file of the current directory as it is now.

    Raises:
        ConfigurationError: it cannot be read, or is not TOML.
    """
    place = Path(options.file)
    entries = list(discovery.sensitive_entries(_read(_text(place), place)))
    discovery.trust(place, os.environ)
    say(f"trusted {place.absolute()}")
    for line in entries:
        say(f"  {line}")
    return 0


def set_values(options: Namespace, say: Callable[[str], None]) -> int:
    """Set values in a file; comments and order are kept. Nothing is written if the result is not a configuration.

    Raises:
        ConfigurationError: a key or value is wrong, or the file cannot be read or written.
    """
    place = _place(options)
    old = _text(place) if place.exists() else ""
    known = not place.exists() or not list(discovery.sensitive_entries(_read(old, place)))
    known = known or discovery.is_trusted(place, os.environ)
    new = _changed(old, _pairs(options.values), place)
    _check(new, place)
    _write(place, new)
    if known and place.name == discovery.LOCAL_NAME:
        discovery.trust(place, os.environ)
    say(f"wrote {place.absolute()}")
    return 0


def _place(options: Namespace) -> Path:
    if options.config is not None:
        return Path(options.config)
    local = Path(discovery.LOCAL_NAME)
    return local if local.exists() and not options.user else discovery.user_config(os.environ)


def _pairs(values: Sequence[str]) -> list[tuple[list[str | int], JSON]]:
    """Return paths and values of `KEY VALUE ...` or `KEY=VALUE ...`; a value that is not TOML is a string."""
    if not all("=" in value for value in values):
        if len(values) % 2:
            raise ConfigurationError("config set: expected KEY VALUE pairs, as in `server.port 9000`")
        values = [f"{key}={value}" for key, value in zip(values[::2], values[1::2], strict=True)]
    return [(_path(key), _value(text)) for key, _, text in (value.partition("=") for value in values)]


def _path(key: str) -> list[str | int]:
    """Split `models[0].name` into its steps; quoted steps may hold any character."""
    steps: list[str | int] = []
    for part in key.replace("[", ".[").split("."):
        index = part.removeprefix("[").removesuffix("]")
        if part.startswith("["):
            if not index.isdecimal() or not part.endswith("]"):
                raise ConfigurationError(f"config set: `{key}`: expected a number in brackets, as in `models[0].name`")
            steps.append(int(index))
        elif part:
            steps.append(part)
        else:
            raise ConfigurationError(f"config set: `{key}` is not a key; expected one like `server.port`")
    return steps


def _value(text: str) -> JSON:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _changed(old: str, pairs: Sequence[tuple[list[str | int], JSON]], place: Path) -> str:
    try:
        import tomlkit  # noqa: PLC0415  an extra
    except ModuleNotFoundError:
        raise ConfigurationError(missing_extra("tomlkit")) from None
    _read(old, place)
    document = tomlkit.parse(old)
    for steps, value in pairs:
        here: JSON = document
        try:
            for step, following in itertools.pairwise(steps):
                here = _step(here, step, following)
            here[steps[-1]] = value
        except (TypeError, IndexError, KeyError, ValueError):
            raise ConfigurationError(f"config set: `{_shown_path(steps)}` cannot be set in {place}") from None
    return tomlkit.dumps(document)


def _step(here: JSON, step: str | int, following: str | int) -> JSON:
    """Return what `here` has under `step`; a missing table is created, a missing list of tables before a number."""
    import tomlkit  # noqa: PLC0415  see `_changed`

    if isinstance(here, list) and isinstance(step, int):
        if step == len(here):
            here.append(tomlkit.table())
        return here[step]
    if step not in here:
        here[step] = tomlkit.aot() if isinstance(following, int) else tomlkit.table(is_super_table=True)
    return here[step]


def _shown_path(steps: Sequence[str | int]) -> str:
    shown_path = ""
    for step in steps:
        shown_path = f"{shown_path}[{step}]" if isinstance(step, int) else join(shown_path, step)
    return shown_path


def _check(text: str, place: Path) -> None:
    try:
        check(_read(text, place), os.environ, str(place))
    except ConfigurationError as error:
        first, *more = str(error).split("\n")
        if any(not line.endswith(_NOT_SET) for line in more or [first]):
            raise


def _text(place: Path) -> str:
    try:
        return place.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"`{place}` cannot be read: {os.strerror(error.errno or 0)}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"`{place}` is not TOML: {error}") from None


def _read(text: str, place: Path) -> JSONObject:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"`{place}` is not TOML: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"`{place}`: its values are nested too deeply to be read") from None


def _write(place: Path, text: str) -> None:
    """Replace a file at once, with the mode that it had; a new one is the user's alone."""
    place = place.resolve()
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if place.exists():
            Path(name).chmod(place.stat().st_mode & 0o7777)
        Path(name).replace(place)
    except OSError as error:
        raise ConfigurationError(f"`{place}` cannot be written: {os.strerror(error.errno or 0)}") from None
