"""Scan of a batch's input: its lines, and the checks of all of them before the first request."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct, field

from xenoglot.backends.batch_lines import BadLineError, BatchLine, id_of, mark_of, text_of
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

LONGEST_LINE: Final = 256 * 1024 * 1024
"""Most bytes of one line; it may contain images and documents."""

MOST_PROBLEMS: Final = 20
"""Most problems that are reported at once."""

REMEDY: Final = "nothing was sent; `--skip-invalid` answers such lines with an error, and sends the others"

_LONGEST_SHOWN = 80


class NumberedLine(NamedTuple):
    """A line that is not empty: its number in the file, and its text."""

    number: int
    text: bytes


class InvalidLine(NamedTuple):
    """A line that cannot be sent: its id, and the problem with OpenAI's code of it."""

    custom_id: str
    code: str
    problem: str


class InputScan(Struct, frozen=True, kw_only=True):
    """All lines of an input: `digests[number]` is a line's digest (8 bytes each), `count` the number of requests.

    `requests[number]` is 1 for a request and 0 for an empty line; index 0 of both is unused. `invalid` maps the number
    of a line that is answered with an error to its problem; it counts as a request.
    """

    digests: array[int]
    requests: bytearray
    count: int
    invalid: dict[int, InvalidLine] = field(default_factory=dict)


def numbered(source: BinaryIO) -> Iterator[NumberedLine]:
    """Yield the lines of a file that are not empty, from its beginning.

    Raises:
        ConfigurationError: a line is too long.
    """
    source.seek(0)
    number = 0
    while data := source.readline(LONGEST_LINE + 1):
        number += 1
        if len(data) > LONGEST_LINE:
            raise ConfigurationError(f"line {number}: is longer than {LONGEST_LINE} bytes")
        if text := text_of(data, number):
            yield NumberedLine(number, text)


def scan_input(source: BinaryIO, read: Callable[[bytes, int], BatchLine], *, skip_invalid: bool = False) -> InputScan:
    """Read a complete input, so that no request is sent if a line has an error; `read` decodes a line.

    With `skip_invalid`, lines with an error are collected instead. Memory per line is constant, whatever its length.

    Raises:
        ConfigurationError: invalid lines, one problem per line; or no request at all.
    """
    digests, asks = array("Q", [0]), bytearray(1)
    seen: dict[bytes, int] = {}
    invalid: dict[int, InvalidLine] = {}
    count = 0
    for number, text in numbered(source):
        digests.extend([0] * (number - len(digests)))
        asks.extend(bytes(number - len(asks)))
        digests.append(mark_of(text, number).digest)
        asks.append(1)
        count += 1
        if (problem := _problem(number, text, read, seen)) is not None:
            invalid[number] = problem
            if len(invalid) > MOST_PROBLEMS and not skip_invalid:
                break
    if invalid and not skip_invalid:
        raise ConfigurationError("\n".join(_listed(invalid)))
    if not count:
        raise ConfigurationError("the input has no lines: there is nothing to request")
    return InputScan(digests=digests, requests=asks, count=count, invalid=invalid)


def _listed(invalid: dict[int, InvalidLine]) -> Iterator[str]:
    for number, line in islice(invalid.items(), MOST_PROBLEMS):
        yield f"line {number}: {line.problem}"
    if len(invalid) > MOST_PROBLEMS:
        yield "there are more mistakes"
    yield REMEDY


def _problem(
    number: int, text: bytes, read: Callable[[bytes, int], BatchLine], seen: dict[bytes, int]
) -> InvalidLine | None:
    """Return the problem of a line; `seen` maps the digest of each `custom_id` to its line number."""
    try:
        line = read(text, number)
    except BadLineError as error:
        return InvalidLine(id_of(text, number), error.code, str(error))
    first = seen.setdefault(blake2b(line.custom_id.encode(), digest_size=16).digest(), number)
    if first == number:
        return None
    shown = ascii(line.custom_id[:_LONGEST_SHOWN])[1:-1]
    problem = f"`custom_id` is `{shown}`, as in line {first}: each has to be another"
    return InvalidLine(line.custom_id, "duplicate_custom_id", problem)
