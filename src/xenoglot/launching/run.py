"""The command `xenoglot run`: starts a program of another project, configured to use a gateway."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot import model_selection
from xenoglot.errors import ConfigurationError
from xenoglot.launching.temp_dir import private_folder
from xenoglot.programs import catalog as programs
from xenoglot.programs.environment import GatewayLocation, environment, program_environment, shown
from xenoglot.providers import catalog as providers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from xenoglot.gateway.config.load import Config
    from xenoglot.launching.gateway_thread import GatewayEndpoint
    from xenoglot.programs.program import Program

MASK = "***"
BUILT_IN_WINDOW = 8192
"""Tokens that the embedded model takes."""

MOST_OFFERED = 3
"""Models of a server that a message offers."""

MOST_LISTED = 20
_CHOICES = ("config", "upstream", "dialect", "key_env", "auth", "setting", "text_syntax", "gguf", "preserve")


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
    if options.auth == "client" or _provider_auth(options.upstream) == "client":
        program = program.with_login()
    if options.print:
        return _print(program, options)
    command = _command(program, options.passed)
    with ExitStack() as stack:
        door = _gateway(stack, program, options)
        folder = stack.enter_context(private_folder(os.environ))
        windows = _windows(program, options, door)
        model = _model(program, options, door.models, tuple(windows))
        context = options.context or windows.get(model or "")
        if options.context is None:
            _check_window(program, model, windows)
        place = GatewayLocation(url=door.url, key=door.key, folder=folder, model=model, context=context)
        return _start(program, command, place)


def _provider_auth(upstream: str | None) -> str | None:
    """Return how a provider is signed in at, if the upstream is one."""
    return providers.get(upstream).auth if upstream is not None and upstream in providers.names() else None


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


def _gateway(stack: ExitStack, program: Program, options: Namespace) -> GatewayEndpoint:
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
    if config.has_embedded and not config.upstreams and options.gguf is None:
        config = _local_config(program, options) or config
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


def _local_config(program: Program, options: Namespace) -> Config | None:
    """Return a configuration in front of a server of this machine, if only one can be meant; else `None`.

    Raises:
        ConfigurationError: none can be, and the embedded model is too small for the program.
    """
    from xenoglot.launching.local_servers import find_local_servers, providers_with_key  # noqa: PLC0415  as above

    servers = find_local_servers()
    usable = [
        (server, model)
        for server in servers
        for model in server.models
        if server.trusted and options.model in (None, model)
    ]
    if len(usable) == 1:
        server, options.model = usable[0]
        options.upstream = server.provider
        _note(f"using {server.title} at {server.url}, model {options.model}")
        return _config(options)
    offers = [
        f"  xenoglot run {program.name} --upstream {server.provider} --model {shlex.quote(model)}"
        for server in servers
        for model in server.models[:MOST_OFFERED]
    ]
    offers += [
        f"  xenoglot run {program.name} --upstream {row.name} --model NAME   # {row.key_env} is set; for the names: "
        f"xenoglot models --upstream {row.name}"
        for row in providers_with_key(os.environ)
    ]
    if program.prompt_tokens <= BUILT_IN_WINDOW or options.context is not None:
        if offers:
            _note("\n".join(["using the embedded model; also available:", *offers]))
        return None
    offers.append(f"  xenoglot run {program.name} --upstream URL --model NAME")
    raise ConfigurationError(
        f"the embedded model is too small for {program.title}: it takes {BUILT_IN_WINDOW} tokens, and the first prompt "
        f"has about {program.prompt_tokens}; name a server\n" + "\n".join(offers)
    )


def _windows(program: Program, options: Namespace, door: GatewayEndpoint) -> Mapping[str, int | None]:
    """Return the models that the gateway lists, with their context windows; nothing if the program needs neither."""
    named = options.model is not None or (program.model == "needed" and door.models)
    if named and not (program.wants_context or program.prompt_tokens):
        return {}
    from xenoglot.launching.detect_gateway import windows_of  # noqa: PLC0415  a list of programs needs no gateway

    return windows_of(door.url, door.key)


def _model(program: Program, options: Namespace, models: Sequence[str], listed: Sequence[str]) -> str | None:
    """Return the model to request: the specified one; the only one of the server; the first in the configuration.

    Raises:
        ConfigurationError: the program requires a model, and none is known.
    """
    if options.model is not None:
        return str(options.model)
    if options.upstream is not None and len(listed) == 1:
        return listed[0]
    if program.model == "own":
        return None
    if not models:
        names = f"; the server has {', '.join(listed[:MOST_LISTED])}" if listed else ""
        raise ConfigurationError(f"{program.title} requires a model: name one with `--model`{names}")
    return models[0]


def _check_window(program: Program, model: str | None, windows: Mapping[str, int | None]) -> None:
    """Make sure that the program's first prompt fits, as far as that is known.

    Raises:
        ConfigurationError: it does not fit into the model, or into any that the gateway has.
    """
    unknown = max(program.prompt_tokens, 1)
    largest = (
        windows.get(model) if model is not None else max((one or unknown for one in windows.values()), default=None)
    )
    if largest is not None and largest < program.prompt_tokens:
        what = f"the model `{model}` takes" if model is not None else "the models of the gateway take at most"
        raise ConfigurationError(
            f"{program.title} needs a larger model: its first prompt has about {program.prompt_tokens} tokens, and "
            f"{what} {largest}; name another server with `--upstream URL --model NAME`"
        )
    if program.wants_context and model is not None and largest is None:
        _note(f"the context window of `{model}` is not known: {program.title} assumes one; set it with `--context N`")


def _note(text: str) -> None:
    print(f"xenoglot: {text}", file=sys.stderr)  # noqa: T201  before the program has the terminal


def _command(program: Program, passed: Sequence[str]) -> list[str]:
    """Return the program's path and arguments.

    Raises:
        ConfigurationError: it is not installed; the message has the command to install it.
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
