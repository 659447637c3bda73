"""The command line: `xenoglot serve`, `ask`, `models`, `translate`, `parse`, `pull`, `probe`, and the test bench.

What a person did wrong is one line on standard error and exit code 2; never a traceback. A configuration file has one
more line for each of its mistakes.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import logging
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import xenoglot
from xenoglot import bench_commands, model_selection, probe_command, usage_commands
from xenoglot.administration import budget_commands, doctor_command, key_commands
from xenoglot.agent import command as agent
from xenoglot.backends.redaction import for_log
from xenoglot.backends.user_traceback import USER_CODE
from xenoglot.bulk import command as batch
from xenoglot.codec import loss
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.command_help import DESCRIPTION, CommandParser
from xenoglot.dialect_registry import argument, names
from xenoglot.errors import (
    EXTRAS,
    INTERRUPTED,
    LOSS,
    MISUSE,
    ConfigurationError,
    FailureError,
    LossError,
    WireError,
    XenoglotError,
    exit_code,
    failure_error,
    missing_extra,
)
from xenoglot.launching import commands as launching
from xenoglot.providers import list_command
from xenoglot.terminal import ask_command, chat_command, embed_command, pull_command
from xenoglot.translate import Translator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.agent.screen import Screen
    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.process.reload import FileSource
    from xenoglot.model.request import Tool
    from xenoglot.terminal.display.progress import Progress
    from xenoglot.text.payloads.repaired import Repair

LONGEST_LINE = 500
"""Characters of a line of complaint."""

REPORTS: dict[str | None, Callable[[Losses], Iterator[str]]] = {"table": loss.table, "json": loss.json_lines}
"""What `--report` can be."""

_STDIN, _STDOUT = 0, 1
_READ_BYTES = 65536


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    try:
        code = _run(arguments)
        if sys.stdout is not None:  # it is where somebody closed it
            sys.stdout.flush()
    except XenoglotError as error:
        told = failure_error(error.failure) if type(error) is FailureError else error  # with the server's URL
        lines = str(told).split("\n") if isinstance(told, ConfigurationError) else [str(told)]
        return _complain(*lines, code=exit_code(told))
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        return _complain(missing_extra(error.name))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()  # whoever read it has seen enough
        return 0
    except OSError as error:
        _abandon_output()
        return _complain(os.strerror(error.errno) if error.errno else str(error))
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as over:  # help, the version, or a mistake that has been told
        return int(over.code or 0)
    options.arguments = sys.argv[1:] if arguments is None else arguments
    _show_what_cannot_be_shown()
    if getattr(options, "finds_defaults", False):
        model_selection.find_defaults(options, os.environ, Path())
    run: Callable[[argparse.Namespace], int] = options.run
    if run is not _serve:  # all others say themselves what a person is to know
        logging.getLogger("xenoglot").addHandler(logging.NullHandler())
        USER_CODE.addHandler(_TRACEBACKS)
    return run(options)


class _StandardError(logging.Handler):
    """Writes to standard error, whatever that is when something is logged: commands may run in one process."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message; nothing where standard error is closed."""
        if sys.stderr is not None:
            with suppress(ValueError, OSError):
                print(self.format(record), file=sys.stderr)


_TRACEBACKS = _StandardError()


class _Parser(CommandParser):
    """A parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the problem, and exit."""
        sys.exit(_complain(f"{message}; `{self.prog} --help` tells more"))


class _Version(argparse.Action):
    """Print the version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print it, and end."""
        print(f"xenoglot {xenoglot.__version__}")
        parser.exit()


def command_parser() -> CommandParser:
    """Return the parser of the command line, for documents that are made from it."""
    return _parser()


def _parser() -> _Parser:
    parser = _Parser(prog="xenoglot", description=DESCRIPTION)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="xenoglot")
    parser.set_defaults(run=partial(_help, parser))

    _add_gateway(commands)
    ask_command.add_command(commands)
    chat_command.add_command(commands)
    embed_command.add_command(commands)
    agent.add_command(commands, _agent_screen)
    _add_translation(commands)
    pull_command.add_command(commands)
    list_command.add_command(commands, _say)
    probe_command.add_command(commands, _say, partial(print, file=sys.stderr))
    bench_commands.add_commands(commands)
    launching.add_commands(commands, parser)
    batch.add_command(commands, _bar)
    usage_commands.add_commands(commands, _say)
    doctor_command.add_command(commands, _say)
    key_commands.add_commands(commands, _say, partial(print, file=sys.stderr))
    budget_commands.add_commands(commands, _say)
    return parser


def _help(parser: _Parser, _: argparse.Namespace) -> int:
    """Print the help: what the program does without a command."""
    parser.print_help()
    return 0


def _agent_screen() -> Screen:
    """Return what an agent at work is drawn on."""
    from xenoglot.terminal.agent_view import screen_of  # noqa: PLC0415  only where an agent works

    return screen_of()


def _bar() -> Progress:
    """Return what shows how far long work is."""
    from xenoglot.terminal.display.progress import progress_bar  # noqa: PLC0415  only where something is long

    return progress_bar()


def _add_gateway(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the commands that ask models, or let others ask them."""
    serve = commands.add_parser(
        "serve",
        help="start the gateway",
        description="Start the gateway: an HTTP server for clients of all APIs, in front of the embedded model, an "
        "upstream, or the models of a configuration file.",
    )
    model_selection.add_config(serve)
    _add_address(serve)
    serve.add_argument(
        "--client-key-env", metavar="NAME", help="environment variable with the API keys that clients must send"
    )
    model_selection.add_python(serve)
    serve.add_argument("--print-config", action="store_true", help="print the configuration without keys, and exit")
    model_selection.add_upstream(serve, serves=True)
    model_selection.add_preserve(serve, "default: on loopback, for clients of another dialect than the upstream")
    model_selection.add_also(serve)
    serve.set_defaults(run=_serve)

    models = commands.add_parser(
        "models",
        help="list the models that can be requested",
        description="List the models that can be requested, one per line. Nothing is downloaded.",
    )
    model_selection.add_config(models)
    model_selection.add_upstream(models, serves=True)
    models.set_defaults(run=_models)


def _add_translation(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the commands that call no model."""
    translated = commands.add_parser(
        "translate",
        help="translate a request, response, error or stream to another API format",
        description="Translate standard input, a request, response, error or stream, to another API format (dialect).",
    )
    translated.add_argument(
        "--from", dest="source", required=True, type=argument, choices=names(), help="dialect of the input"
    )
    translated.add_argument(
        "--to", dest="target", required=True, type=argument, choices=names(), help="dialect of the output"
    )
    translated.add_argument(
        "--report",
        nargs="?",
        const="table",
        choices=REPORTS,
        help="print losses as a table, or as JSON objects (default: one line of text each)",
    )
    translated.add_argument(
        "--on-loss",
        choices=("ignore", "warn", "refuse"),
        default="warn",
        help="hide losses, print them (default), or write nothing and exit with code 3",
    )
    translated.add_argument(
        "--open",
        nargs="?",
        const=os.environ.get("XENOGLOT_URL") or launching.DEFAULT_URL,
        metavar="URL",
        help="open the input on the page Translate of a gateway's console, and print nothing",
    )
    translated.set_defaults(run=_translate)

    parsed = commands.add_parser(
        "parse",
        help="find tool calls and reasoning in text that a model wrote",
        description="Parse text on standard input: print its tool calls, reasoning and remaining text as JSON.",
    )
    parsed.add_argument(
        "--syntax", metavar="NAME", default="auto", help="syntax of the calls, or `off` (default: auto)"
    )
    parsed.add_argument(
        "--model", metavar="NAME", default="", help="model that wrote the text; selects the `auto` syntax"
    )
    tools = parsed.add_mutually_exclusive_group()
    tools.add_argument("--tools", metavar="FILE", help="declared tools: a JSON list in any API format")
    tools.add_argument("--any-tool", action="store_true", help="accept calls of tools that are not declared")
    parsed.add_argument("--no-thinking", action="store_true", help="the text does not start inside reasoning")
    parsed.add_argument("--repair", action="store_true", help="repair arguments that are not JSON; reported as a loss")
    parsed.set_defaults(run=_parse)


def _add_address(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--host",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1); others than loopback need --client-key-env",
    )
    serve.add_argument(
        "--port", type=int, metavar="N", help="port to listen on, 0 to 65535 (default: 8080; 0: any free port)"
    )
    serve.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="number of processes, at least 1 (default: 1; not for the embedded model)",
    )
    serve.add_argument(
        "--log-format",
        choices=("auto", "text", "json"),
        help="form of the log on standard error (default: auto, which is text on a terminal, else json)",
    )


def _serve(options: argparse.Namespace) -> int:
    from xenoglot.gateway.config.file_permissions import shown  # noqa: PLC0415  only this command needs a server
    from xenoglot.gateway.observability.access_log import process_logs  # noqa: PLC0415  as above

    with process_logs(options.log_format):
        backend = model_selection.load_python_backend(options)
        if backend is not None:
            _serve_python(options, backend)
        elif options.print_config:
            config = model_selection.config_of(options)
            _say(shown(config, config.secrets))
        else:
            _serve_configured(model_selection.config_of(options), options)
    return 0


def _serve_configured(config: Config, options: argparse.Namespace) -> None:
    """Serve as the one process, as one of several, or as the one that starts those: each loads what it needs."""
    from xenoglot.gateway.process.worker import read_worker_env  # noqa: PLC0415  only this command needs a server

    post = read_worker_env(os.environ)
    if post is not None:
        from xenoglot.gateway.process.worker import run_worker  # noqa: PLC0415

        run_worker(config, post, _source(options))
    elif config.server.workers > 1:
        from xenoglot.gateway.process.serve import is_at_terminal  # noqa: PLC0415  as above
        from xenoglot.gateway.process.supervisor import supervise  # noqa: PLC0415

        supervise(config, options.arguments, _say, terminal=is_at_terminal())
    else:
        from xenoglot.gateway.process.serve import is_at_terminal, serve  # noqa: PLC0415  as above

        serve(config, say=_say, source=_source(options), terminal=is_at_terminal())


def _source(options: argparse.Namespace) -> FileSource | None:
    from xenoglot.gateway.process.reload import FileSource  # noqa: PLC0415  as above

    if options.config is None:
        return None
    found = getattr(options, "found", None)
    return FileSource(options.config, os.environ, options.host, options.port, options.workers, found)


def _serve_python(options: argparse.Namespace, backend: Backend) -> None:
    from xenoglot.gateway.process.gateway_backend import single_backend  # noqa: PLC0415  only here
    from xenoglot.gateway.process.serve import is_at_terminal, serve  # noqa: PLC0415

    config = model_selection.config_of(options)
    serve(config, say=_say, assemble=single_backend(backend), terminal=is_at_terminal())


def _models(options: argparse.Namespace) -> int:
    for name in asyncio.run(_available(model_selection.config_of(options))):
        print(name)
    return 0


async def _available(config: Config) -> list[str]:
    from xenoglot.gateway.api.models import list_models  # noqa: PLC0415
    from xenoglot.gateway.process.build import build_gateway  # noqa: PLC0415  `translate` must not need the extra

    async with build_gateway(config, ready=False, download=False) as gateway:
        return [model.id for model in await list_models(gateway.router, gateway.backends)]


def _translate(options: argparse.Namespace) -> int:
    if options.open is not None:
        from xenoglot.launching import console_command  # noqa: PLC0415  only with this flag

        return console_command.open_translation(options.open, options.source, options.target, sys.stdin.buffer.read())
    losses = Losses(strict=options.on_loss == "refuse")
    translator = Translator(options.source, options.target, losses)
    try:
        with open(_STDOUT, "wb", closefd=False) as target, suppress(LossError):  # told below
            while chunk := os.read(_STDIN, _READ_BYTES):  # what is there: a stream leaves at the pace it comes
                target.write(b"".join(translator.feed(chunk)))
                target.flush()
            ending = b"".join(translator.close())
            target.write(ending if ending.endswith(b"\n") or not ending else ending + b"\n")
    except WireError as error:
        raise ConfigurationError(f"standard input: {error}") from None
    if options.on_loss != "ignore":
        for line in REPORTS.get(options.report, loss.lines)(losses):
            print(line, file=sys.stderr)
    return LOSS if losses.strict and len(losses) else 0


def _parse(options: argparse.Namespace) -> int:
    from xenoglot.text.parse_api import encode_parsed, parse, undeclared_calls  # noqa: PLC0415  only this command needs them

    tools = () if options.tools is None else _tools(options.tools)
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"standard input: byte {error.start} is not UTF-8") from None
    losses = Losses()
    made = parse(
        text,
        losses,
        syntax=options.syntax,
        model=options.model,
        tools=tools,
        any_tool=options.any_tool,
        thinking=False if options.no_thinking else None,
        repair=_repair() if options.repair else None,
    )
    print(encode_json(encode_parsed(made, losses)).decode())
    if not options.any_tool and (missing := undeclared_calls(made, text)):
        print(_undeclared(missing), file=sys.stderr)
    return 0


def _undeclared(missing: Sequence[str]) -> str:
    found = "1 tool call" if len(missing) == 1 else f"{len(missing)} tool calls"
    names = for_log(", ".join(dict.fromkeys(missing)), LONGEST_LINE)
    remedy = "declare tools with `--tools FILE`, or accept any with `--any-tool`"
    return f"note: {found} left as text, because no such tool is declared: {names}; {remedy}"


def _repair() -> Repair:
    from xenoglot.text.json.repair import repaired, require  # noqa: PLC0415  as above

    require()
    return repaired


def _tools(path: str) -> Sequence[Tool]:
    from xenoglot.text.parse_api import decode_tools  # noqa: PLC0415  as above

    try:
        return decode_tools(decode_json(Path(path).read_bytes()))
    except OSError as error:
        raise ConfigurationError(f"`{path}` cannot be read: {os.strerror(error.errno or 0)}") from None
    except WireError as error:
        raise ConfigurationError(f"`{path}`: {error}") from None


def _say(text: str) -> None:
    print(text, flush=True)


def _complain(*lines: str, code: int = MISUSE) -> int:
    """Print what went wrong; return the exit code. Quoted text cannot break a line or control the terminal."""
    told = "\n".join(for_log(line.replace("\n", " "), LONGEST_LINE) for line in lines)
    print(f"xenoglot: {told}", file=sys.stderr)
    return code


def _show_what_cannot_be_shown() -> None:
    """Have a terminal that lacks a character show a stand-in."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _abandon_output() -> None:
    """Have nothing more written to standard output, not even at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)


if __name__ == "__main__":
    sys.exit(main())
