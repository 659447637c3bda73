"""The command `xenoglot probe`: what a server can do, as a report, as JSON, as a row or a piece of configuration."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from xenoglot import model_selection
from xenoglot.backends.redaction import for_log
from xenoglot.dialect_registry import argument, names
from xenoglot.errors import ConfigurationError, FailureError
from xenoglot.model.failure import Failure
from xenoglot.providers import catalog
from xenoglot.providers.provider import SIGN_INS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.providers.probe.findings import Report
    from xenoglot.providers.probe.runner import ProbeOptions

    Parser = TypeVar("Parser", bound=argparse.ArgumentParser)

TIMEOUT = 60.0
"""Seconds for one question."""

LONGEST_LINE = 400
"""Characters of a line of the report: it quotes a server."""

ROW, CONFIG = "row", "config"


Say: TypeAlias = "Callable[[str], None]"


def add_command(commands: argparse._SubParsersAction[Parser], say: Say, progress: Say) -> None:
    """Add the command to a parser; it sets `run`, which takes the options and returns the exit code."""
    parser = commands.add_parser(
        "probe",
        help="test what a server supports",
        description="Test what a server supports with 40 to 60 short requests, and print a report.",
    )
    parser.set_defaults(run=partial(run, say=say, progress=progress))
    parser.add_argument("url", metavar="URL", help="base URL of the server, or the name of a provider")
    parser.add_argument("--key-env", metavar="NAME", help="environment variable with the API key of the server")
    model_selection.add_sign_in(parser)
    parser.add_argument("--model", metavar="NAME", help="model to request (default: one of the server's list)")
    parser.add_argument(
        "--dialect",
        action="append",
        type=argument,
        choices=names(),
        help="test only this dialect, completely; repeatable",
    )
    parser.add_argument("--images", action="store_true", help="send images too")
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        default=TIMEOUT,
        help=f"time limit of a request, more than 0 (default: {TIMEOUT:.0f})",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON, with all requests and answers")
    parser.add_argument("--evidence", action="store_true", help="print the requests and answers of each line")
    parser.add_argument("--write", metavar="FILE", help="write the findings to a TOML file")
    parser.add_argument(
        "--as",
        dest="form",
        choices=(ROW, CONFIG),
        default=ROW,
        help="content of that file: a provider's row (default), or configuration",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the server in that file (default: its host)")


def run(options: argparse.Namespace, say: Say, progress: Say) -> int:
    """Probe the server, `say` the findings, report the `progress`; return the exit code.

    Raises:
        ConfigurationError: a flag is wrong.
        FailureError: the server cannot be reached, or speaks no dialect.
    """
    from xenoglot.providers.probe.runner import ProbeOptions  # noqa: PLC0415

    if not options.timeout > 0:
        raise ConfigurationError(f"--timeout: found {options.timeout}; expected seconds, more than none")
    asked = ProbeOptions(
        base_url=options.url.rstrip("/"),
        model=options.model,
        dialects=tuple(dict.fromkeys(options.dialect or ())),
        images=options.images,
    )
    if options.url in catalog.names() or options.auth is not None:
        server = _known_server(options, asked)
    else:
        _check_url(options.url)
        server = ProbeTarget(asked, _key(options.key_env))
    report = asyncio.run(_probed(options, server, lambda text: progress(for_log(text, LONGEST_LINE))))
    _report(options, report, say)
    if options.write is not None:
        _write(options, report)
    return 0


class ProbeTarget(NamedTuple):
    """What is probed, the key for it, and the upstream with its sign-in."""

    options: ProbeOptions
    key: str | None = None
    upstream: UpstreamSettings | None = None


def _known_server(options: argparse.Namespace, asked: ProbeOptions) -> ProbeTarget:
    """Return a provider, one of its endpoints, or a server that is signed in at.

    Raises:
        ConfigurationError: a flag is wrong, or a key or a setting is missing.
    """
    from msgspec.structs import replace  # noqa: PLC0415  as above

    from xenoglot.gateway.config.from_flags import FLAGS_UPSTREAM, from_flags  # noqa: PLC0415  most servers are not known
    from xenoglot.gateway.config.provider_defaults import dialect_of  # noqa: PLC0415  as above

    config = from_flags(
        os.environ,
        upstream=options.url,
        dialect=asked.dialects[0] if asked.dialects else None,
        model=options.model,
        key_env=options.key_env,
        auth=options.auth,
        setting=options.setting,
    )
    upstream = config.upstreams[FLAGS_UPSTREAM]
    key = next(iter(config.upstream_keys(upstream)), None)
    asked = replace(asked, base_url=upstream.base_url, keyed=key is not None)
    if upstream.provider is not None:
        form = None if upstream.auth in ("key", *SIGN_INS) else upstream.auth
        asked = replace(asked, known=dialect_of(upstream), target=upstream.target, auth=form)
    return ProbeTarget(asked, key, upstream)


async def _probed(options: argparse.Namespace, server: ProbeTarget, say: Say) -> Report:
    """Return what the server supports; a sign-in belongs to the event loop."""
    from xenoglot.backends.probe_runner import run_probe  # noqa: PLC0415  other commands need no client

    upstream = server.upstream
    if upstream is None or upstream.auth not in SIGN_INS:
        return await run_probe(server.options, key=server.key, patience=options.timeout, say=say)
    from xenoglot.backends.remote.sign_in.open_sign_in import SignInRequest, open_sign_in  # noqa: PLC0415  most servers have a key

    request = SignInRequest(
        "probe",
        upstream.auth or "",
        upstream.sign_in,
        base_url=upstream.base_url,
        secret=lambda name: os.environ.get(name, ""),
        environ=os.environ,
        place="--setting",
    )
    return await run_probe(server.options, patience=options.timeout, say=say, sign_in=open_sign_in(request))


def _report(options: argparse.Namespace, report: Report, say: Say) -> None:
    from msgspec import json  # noqa: PLC0415  as above

    from xenoglot.providers.probe.findings import lines, no_dialect  # noqa: PLC0415

    if options.json:
        say(json.encode(report).decode())
    else:
        for line in lines(report, evidence=options.evidence):
            say(for_log(line, LONGEST_LINE))
    if not report.faces:
        raise FailureError(Failure(kind="upstream", message=f"{report.base_url}: {no_dialect(report)}"))


def _write(options: argparse.Namespace, report: Report) -> None:
    from xenoglot.providers.probe import catalog_row  # noqa: PLC0415  as above

    row = catalog_row.row_of(report, options.name, options.key_env)
    if options.form == CONFIG:
        text = catalog_row.config_toml(report, options.name or row.name, options.key_env)
    else:
        text = catalog_row.row_toml(row)
    Path(options.write).write_text(text, encoding="utf-8")


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise ConfigurationError(f"--key-env: the variable `{variable}` is not set")
    return key


def _check_url(text: str) -> None:
    if not text.startswith(("http://", "https://")):
        raise ConfigurationError(
            f'URL: found "{text}"; expected one that begins with http:// or https://, or the name of a provider'
        )
