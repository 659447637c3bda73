"""The command `xenoglot run`: starts a program of another project, configured to use a gateway."""

from __future__ import annotations

import os
import shutil
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot import model_selection
from xenoglot.errors import ConfigurationError
from xenoglot.launching import programs
from xenoglot.launching.environment import GatewayLocation, environment, program_environment, shown
from xenoglot.launching.temp_dir import private_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from xenoglot.gateway.config.load import Config
    from xenoglot.launching.gateway_thread import GatewayEndpoint
    from xenoglot.launching.program import Program

MASK = "***"
_CHOICES = ("config", "upstream", "dialect", "key_env", "text_syntax", "gguf", "preserve")


def run(options: Namespace) -> int:
    """Run the command; return the exit code, that of the program if one was started.

    Raises:
        ConfigurationError: a flag is invalid, the program is unknown, or no gateway is available.
    """
    if options.list:
        return _list()
    if options.program is None:
        raise ConfigurationError(
            f"no program named: expected one of {', '.join(programs.names())}; see `xenoglot run --list`"
        )
    program = programs.get(options.program)
    if options.model is not None and not (options.model and options.model.isprintable()):
        raise ConfigurationError("--model: expected a name of printable characters")
    if options.print:
        return _print(program, options)
    command = _command(program, options.passed)
    with ExitStack() as stack:
        door = _gateway(stack, options)
        folder = stack.enter_context(private_folder(os.environ))
        model = _model(program, options, door.models)
        context = _context(program, options, door, model)
        place = GatewayLocation(url=door.url, key=door.key, folder=folder, model=model, context=context)
        return _start(program, command, place)


def _start(program: Program, command: Sequence[str], place: GatewayLocation) -> int:
    from xenoglot.launching import foreground  # noqa: PLC0415  only where something is started

    made = program_environment(program, place)
    for name, text in made.files.items():
        descriptor = os.open(Path(place.folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  a path has no such mode
            file.write(text)
    try:
        return foreground.run([command[0], *made.arguments, *command[1:]], environment(made, os.environ))
    except OSError as error:
        raise ConfigurationError(f"`{command[0]}` cannot be started: {os.strerror(error.errno or 0)}") from None


def _gateway(stack: ExitStack, options: Namespace) -> GatewayEndpoint:
    """Return a gateway: the specified one, the one already running at the configured address, or a new one."""
    from xenoglot.launching.gateway_thread import GatewayEndpoint, run_gateway  # noqa: PLC0415  a list of programs needs no gateway

    key = _client_key(options.client_key_env)
    if options.gateway is not None:
        from xenoglot.launching.detect_gateway import models_of  # noqa: PLC0415  as above

        _only_gateway(options)
        url = options.gateway.rstrip("/").removesuffix("/v1")
        return GatewayEndpoint(url=url, key=key or "none", models=models_of(url, key))
    config = _config(options)
    found = _running(config, key, options)
    if found is not None:
        return found
    log = None if options.log is None else stack.enter_context(_opened(options.log))
    return stack.enter_context(run_gateway(config, log))


def _running(config: Config, key: str | None, options: Namespace) -> GatewayEndpoint | None:
    """Return the gateway that runs at the configured address, if it is ours and no flag requests another."""
    from xenoglot.launching.detect_gateway import detect, owned_by_user  # noqa: PLC0415  as above
    from xenoglot.launching.gateway_thread import GatewayEndpoint  # noqa: PLC0415  as above

    chosen = [name for name in _CHOICES if name != "config" and getattr(options, name) is not None]
    if chosen or options.log is not None or not config.server.loopback or not owned_by_user(config.server.port):
        return None
    url = f"http://{'[::1]' if ':' in config.server.host else '127.0.0.1'}:{config.server.port}"
    key = key or next(iter(config.client_keys), None)
    found = detect(url, key)
    return GatewayEndpoint(url=url, key=key or "none", models=found.models) if found.welcome else None


def _config(options: Namespace) -> Config:
    """Return the configuration; without an upstream, `--model` only sets the model that the program requests."""
    said = {**vars(options), "client_key_env": None}
    if not options.upstream:
        return model_selection.config_of(Namespace(**{**said, "model": None}))
    kept = "translated" if options.preserve is None else options.preserve
    return model_selection.config_of(Namespace(**{**said, "preserve": kept}))


def _model(program: Program, options: Namespace, models: Sequence[str]) -> str | None:
    """Return the model to request: the specified one; the first listed one if the program requires one.

    Raises:
        ConfigurationError: the program requires a model, and none is known.
    """
    if options.model is not None:
        return str(options.model)
    if program.model == "own":
        return None
    if not models:
        raise ConfigurationError(f"{program.title} requires a model: name one with `--model`")
    return models[0]


def _context(program: Program, options: Namespace, door: GatewayEndpoint, model: str | None) -> int | None:
    """Return the model's context window: the specified one, or the one that the gateway lists."""
    if options.context is not None or model is None or not program.wants_context:
        given: int | None = options.context
        return given
    from xenoglot.launching.detect_gateway import context_of  # noqa: PLC0415  a list of programs needs no gateway

    return context_of(door.url, door.key, model)


def _command(program: Program, passed: Sequence[str]) -> list[str]:
    """Return the program's path and arguments.

    Raises:
        ConfigurationError: it is not installed; the message says how to install it.
    """
    wanted = program.commands or tuple(passed[:1])
    if not wanted:
        raise ConfigurationError(f"no command named: use `xenoglot run {program.name} -- PROGRAM ...`")
    path = _path(wanted)
    if path is None:
        advice = f"; install {program.title} with: {program.install}" if program.install else ""
        raise ConfigurationError(f"program `{wanted[0]}` not found{advice}")
    return [path, *(passed if program.commands else passed[1:])]


def _path(commands: Sequence[str]) -> str | None:
    return next((path for name in commands if (path := shutil.which(name)) is not None), None)


def _print(program: Program, options: Namespace) -> int:
    place = GatewayLocation(
        url=options.gateway or "http://127.0.0.1:PORT",
        key=MASK,
        folder="FOLDER",
        model=options.model or (None if program.model == "own" else "MODEL"),
        context=options.context,
    )
    made = program_environment(program, place)
    models_of = program.commands[0] if program.commands else None
    command = [models_of, *made.arguments, *options.passed] if models_of else list(options.passed)
    for line in shown(made, command, place.folder):
        print(line)  # noqa: T201  what was asked for
    return 0


def _list() -> int:
    rows = [programs.get(name) for name in programs.names()]
    told = [(row.name, row.dialect, row.title, _path(row.commands) or "-") for row in rows]
    widths = [max(len(cells[place]) for cells in told) for place in range(3)]
    for cells in told:
        print("  ".join((*(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=False)), cells[3])))  # noqa: T201  what was asked for
    return 0


def _client_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    keys = os.environ.get(variable, "").split()
    if not keys:
        raise ConfigurationError(f"--client-key-env: the environment variable `{variable}` is not set, or empty")
    return keys[0]


def _only_gateway(options: Namespace) -> None:
    for name in (*_CHOICES, "log"):
        if getattr(options, name) is not None:
            raise ConfigurationError(f"`--{name.replace('_', '-')}` and `--gateway` exclude each other")


def _opened(path: str) -> TextIO:
    try:
        return open(path, "a", encoding="utf-8", buffering=1)  # noqa: PTH123  the stack closes it
    except OSError as error:
        raise ConfigurationError(f"--log: `{path}` cannot be written: {os.strerror(error.errno or 0)}") from None
