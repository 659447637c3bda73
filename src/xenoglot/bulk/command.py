"""The command `xenoglot batch`: a file of requests, answered line by line."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from xenoglot import model_selection
from xenoglot.dialect_registry import argument, names
from xenoglot.errors import INTERRUPTED, ConfigurationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from xenoglot.backends.batch_lines import BatchLine
    from xenoglot.bulk.run import ProgressBar

FAILED: Final = 1
"""Exit code: every line is answered, some with an error."""
UNFINISHED: Final = 4
"""Exit code: the run ended before its last line; the same command continues it."""

CONCURRENCY: Final = 8
MOST_AT_ONCE: Final = 4096
TIMEOUT: Final = 600.0
_COPIED = 1024 * 1024


def add_command(commands: argparse._SubParsersAction[Any], bar: Callable[[], ProgressBar] | None = None) -> None:
    """Add the command; `bar` creates the progress display."""
    parser = commands.add_parser(
        "batch",
        help="answer a file of requests",
        description="Answer each line of INPUT with a line of OUTPUT. If a run was stopped or killed, the same command "
        "continues it.",
    )
    parser.add_argument(
        "input", metavar="INPUT", help="batch lines of OpenAI or Anthropic, or request bodies; - is standard input"
    )
    parser.add_argument("output", metavar="OUTPUT", help="file of the answers, one per line")
    parser.add_argument("--errors", metavar="FILE", help="file of the lines that failed (default: OUTPUT)")
    parser.add_argument(
        "--lines",
        metavar="DIALECT",
        type=argument,
        choices=names(),
        help="dialect of request bodies (default: detected)",
    )
    parser.add_argument("--ordered", action="store_true", help="sort the answers in the order of the input at the end")
    parser.add_argument(
        "--skip-invalid", action="store_true", help="answer invalid lines with an error, and send the others"
    )
    parser.add_argument("--retry-failed", action="store_true", help="retry lines that failed in an earlier run")
    parser.add_argument(
        "--concurrency", type=int, metavar="N", default=CONCURRENCY, help="lines in flight, 1 to 4096 (default: 8)"
    )
    parser.add_argument("--rpm", type=int, metavar="N", help="most lines per minute")
    parser.add_argument("--tpm", type=int, metavar="N", help="most tokens per minute, estimated")
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", default=TIMEOUT, help="time limit of a line (default: 600)"
    )
    parser.add_argument("--ray", metavar="ADDRESS", help="run on a Ray cluster; `auto` finds or starts one")
    parser.add_argument("--actors", type=int, metavar="N", help="processes on the cluster (default: one per machine)")
    model_selection.add_config(parser)
    model_selection.add_upstream(parser)
    model_selection.add_python(parser)
    model_selection.add_price(parser)
    parser.set_defaults(run=partial(_batch, bar))


def _batch(bar: Callable[[], ProgressBar] | None, options: argparse.Namespace) -> int:
    from xenoglot.bulk.input_scan import scan_input  # noqa: PLC0415
    from xenoglot.bulk.journal import Journal  # noqa: PLC0415  only this command needs them
    from xenoglot.bulk.run import BatchPlan, run_batch  # noqa: PLC0415
    from xenoglot.bulk.runner import RunnerSettings  # noqa: PLC0415

    _check(options)
    chosen = model_selection.chosen(options)
    read = _reader(chosen, options)
    rules = RunnerSettings(
        concurrency=options.concurrency,
        requests_per_minute=options.rpm,
        tokens_per_minute=options.tpm,
        timeout=options.timeout,
    )
    with _opened(options.input) as source:
        try:
            found = scan_input(source, read, skip_invalid=options.skip_invalid)
        except ConfigurationError as error:
            where = "standard input" if options.input == "-" else f"`{options.input}`"
            raise ConfigurationError(f"{where}: {error}") from None
        with Journal(options.output, options.errors, source, found, again=options.retry_failed) as journal:
            journal.write_invalid()
            plan = BatchPlan(
                chosen,
                rules,
                source,
                found,
                journal,
                read,
                ray=options.ray,
                actors=options.actors,
                ordered=options.ordered,
                prices=model_selection.prices_of(options),
            )
            ending = run_batch(plan, None if bar is None else bar())
    print(ending.summary, file=sys.stderr)  # noqa: T201  for whoever started it
    if ending.stopped is not None:
        print(f"{ending.stopped}; run the same command to continue", file=sys.stderr)  # noqa: T201  as above
        return INTERRUPTED if ending.interrupted else UNFINISHED
    return FAILED if ending.failed else 0


def _reader(chosen: model_selection.ModelSelection, options: argparse.Namespace) -> Callable[[bytes, int], BatchLine]:
    """Return what decodes a line. The first line without a model gets the server's only one."""
    from xenoglot.backends.batch_lines import decode_line  # noqa: PLC0415  as above

    default = cache(partial(model_selection.default_model, chosen))

    def read(text: bytes, number: int) -> BatchLine:
        line = decode_line(text, number, dialect=options.lines, model=options.model)
        return line if "model" in line.body else decode_line(text, number, dialect=options.lines, model=default())

    return read


def _check(options: argparse.Namespace) -> None:
    """Check the numbers of the options.

    Raises:
        ConfigurationError: out of range.
    """
    for name in ("concurrency", "rpm", "tpm", "actors"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ConfigurationError(f"--{name}: found {value}; expected at least 1")
    if options.concurrency > MOST_AT_ONCE:
        raise ConfigurationError(f"--concurrency: found {options.concurrency}; expected at most {MOST_AT_ONCE}")
    if not options.timeout > 0:
        raise ConfigurationError(f"--timeout: found {options.timeout:g}; expected more than 0")
    if options.ray is not None and not options.ray.strip():
        raise ConfigurationError("--ray: found nothing; expected `auto`, or the address of a cluster")
    if options.ray is not None and options.python is not None:
        raise ConfigurationError(
            "`--ray` and `--python` exclude each other: machines of a cluster may not have the model"
        )
    if options.actors is not None and options.ray is None:
        raise ConfigurationError("--actors: needs a cluster; set its address with `--ray ADDRESS`")


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Open the input as a file that can be read twice; a pipe is copied first.

    Raises:
        ConfigurationError: unreadable.
    """
    import os  # noqa: PLC0415  only here, as the rest
    import shutil  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    try:
        source: BinaryIO = open(0 if path == "-" else path, "rb", closefd=path != "-")  # noqa: SIM115  closed below
    except OSError as error:
        raise ConfigurationError(f"`{path}` cannot be read: {os.strerror(error.errno or 0)}") from None
    with source:
        if source.seekable():
            yield source
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(source, copy, _COPIED)
            yield copy
