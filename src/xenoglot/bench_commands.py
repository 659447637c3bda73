"""The commands of the test bench: `xenoglot mock`, `record` and `replay`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from socket import gaierror
from typing import TYPE_CHECKING, TypeVar

from xenoglot.dialect_registry import argument, names
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AbstractAsyncContextManager

    from xenoglot.testing.recorder import Recorder
    from xenoglot.testing.script import ScriptRule, Steps
    from xenoglot.testing.upstream import Door

    Entered = TypeVar("Entered")
    Parser = TypeVar("Parser", bound=argparse.ArgumentParser)

DIFFERENT = 1
"""The exit code of a re-check that found a difference."""

LAST_PORT = 65535


def add_commands(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the commands to a parser; each sets `run`, which takes the options and returns the exit code."""
    _add_mock(commands)
    _add_record(commands)
    _add_replay(commands)


def _add_mock(commands: argparse._SubParsersAction[Parser]) -> None:
    mock = commands.add_parser(
        "mock",
        help="start a scripted server",
        description="Start a server with scripted answers, and print its URL and each request.",
    )
    mock.add_argument("--script", metavar="FILE", help="TOML script (default: a short answer in every dialect)")
    mock.add_argument("--dialect", type=argument, choices=names(), help="answer in this dialect only")
    mock.add_argument("--text", metavar="TEXT", help="text of the answer (default: Hello.)")
    mock.add_argument("--fault", metavar="NAME", help="fault of each answer of `--dialect`; an unknown name lists all")
    _add_address(mock)
    mock.set_defaults(run=_mock)


def _add_record(commands: argparse._SubParsersAction[Parser]) -> None:
    record = commands.add_parser(
        "record",
        help="forward requests to a server, and record them",
        description="Forward each request to a server and return its answer, and record both without secrets.",
    )
    record.add_argument("--upstream", required=True, metavar="URL", help="base URL of the server")
    record.add_argument(
        "--out", required=True, metavar="DIR", help="folder of the recording; each exchange gets a folder"
    )
    record.add_argument(
        "--secret-env",
        action="append",
        default=[],
        metavar="NAME",
        help="environment variable with a secret to leave out, in addition to credentials in headers; repeatable",
    )
    _add_address(record)
    record.set_defaults(run=_record)


def _add_replay(commands: argparse._SubParsersAction[Parser]) -> None:
    replay = commands.add_parser(
        "replay",
        help="serve or check a recording",
        description="Answer requests as in a recording, or check that it is still translated alike (--check).",
    )
    replay.add_argument("dir", metavar="DIR", help="folder written by `record`")
    replay.add_argument("--timing", action="store_true", help="keep the recorded pauses")
    replay.add_argument(
        "--check", action="store_true", help="serve nothing: decode and encode each exchange, and report differences"
    )
    _add_address(replay)
    replay.set_defaults(run=_replay)


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, metavar="N", help="port to listen on, 0 to 65535 (default: a free one)")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:6]) <= LAST_PORT):
        raise argparse.ArgumentTypeError(f'found "{text}"; expected a number from 0 to {LAST_PORT}')
    return int(text)


def _mock(options: argparse.Namespace) -> int:
    from xenoglot.testing.script_file import ServerTable, load  # noqa: PLC0415  only this command needs it

    if options.script is None:
        rules, server = _rules(options), ServerTable()
    elif options.dialect or options.text or options.fault:
        raise ConfigurationError("`--script` defines the answers; use `--dialect`, `--text` and `--fault` without it")
    else:
        script = load(options.script)
        rules, server = script.rules(), script.server
    host, port = options.host or server.host, server.port if options.port is None else options.port
    asyncio.run(_serve(rules, host, port, door=server.door, greeting=server.greeting))
    return 0


def _rules(options: argparse.Namespace) -> Sequence[ScriptRule]:
    """Return what is answered without a script."""
    from xenoglot.testing.canned import answers, polyglot  # noqa: PLC0415  as above
    from xenoglot.testing.faults import faulty  # noqa: PLC0415  as above

    if options.fault is not None:
        if options.dialect is None or options.text is not None:
            raise ConfigurationError("`--fault` needs `--dialect`, and has its own text")
        return faulty(options.fault, options.dialect)
    said = {} if options.text is None else {"text": options.text}
    return answers(options.dialect, **said).rules() if options.dialect else polyglot(**said)


def _replay(options: argparse.Namespace) -> int:
    from xenoglot.testing.cassette import load  # noqa: PLC0415  only this command needs them
    from xenoglot.testing.replay import recheck, replayed  # noqa: PLC0415  as above

    exchanges = load(Path(options.dir))
    if not options.check:
        rules = replayed(exchanges, timing=options.timing)
        asyncio.run(_serve(rules, options.host or "127.0.0.1", options.port or 0))
        return 0
    found = [f"{exchange.name}: {line}" for exchange in exchanges for line in recheck(exchange)]
    for line in found:
        _say(line)
    _say(f"{_counted(len(exchanges), 'exchange')}, {_counted(len(found), 'difference')}")
    return DIFFERENT if found else 0


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _record(options: argparse.Namespace) -> int:
    secrets = [_secret(name) for name in options.secret_env]
    if not options.upstream.startswith(("http://", "https://")):
        raise ConfigurationError(
            f'--upstream: found "{options.upstream}"; expected a URL that begins with http:// or https://'
        )
    asyncio.run(_serve_recorder(options, secrets))
    return 0


def _secret(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ConfigurationError(f"--secret-env: the environment variable `{name}` is not set")
    return value


async def _serve(
    rules: Sequence[ScriptRule], host: str, port: int, *, door: Door = "open", greeting: Steps = ()
) -> None:
    from xenoglot.testing.upstream import Upstream  # noqa: PLC0415  only these commands need it

    async with AsyncExitStack() as exits:
        server = Upstream(*rules, host=host, port=port, door=door, greeting=greeting, say=_say)
        upstream = await _listening(exits, server, host, port)
        _say(f"Serving at {upstream.url}")
        await _wait_for_signal()


async def _listening(
    exits: AsyncExitStack, server: AbstractAsyncContextManager[Entered], host: str, port: int
) -> Entered:
    """Return what `server` is once it listens; `exits` end it."""
    try:
        return await exits.enter_async_context(server)
    except OSError as error:
        reason = error.strerror if isinstance(error, gaierror) else os.strerror(error.errno or 0)
        message = f"cannot listen at {host}:{port}: {reason}; choose another with `--host` and `--port`"
        raise ConfigurationError(message) from None


async def _serve_recorder(options: argparse.Namespace, secrets: Sequence[str]) -> None:
    from xenoglot.testing.recorder import Recorder  # noqa: PLC0415  only this command needs it

    recorder = Recorder(options.upstream, Path(options.out), secrets=secrets, say=_say)
    host, port = options.host or "127.0.0.1", options.port or 0
    async with AsyncExitStack() as exits:
        exits.push_async_callback(recorder.aclose)
        server = await _listening(exits, _recording(recorder, host, port), host, port)
        host, port = server.sockets[0].getsockname()[:2]
        _say(f"Recording at http://{host}:{port}")
        await _wait_for_signal()


@asynccontextmanager
async def _recording(recorder: Recorder, host: str, port: int) -> AsyncGenerator[asyncio.Server]:
    async with await recorder.listen(host, port) as server:
        yield server


async def _wait_for_signal() -> None:
    """Wait for SIGTERM or SIGINT, on platforms with signals."""
    import signal  # noqa: PLC0415  only here

    stopped = asyncio.Event()
    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  these commands are for people to watch
