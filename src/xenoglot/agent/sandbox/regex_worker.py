"""Child process that searches texts for a pattern, so that a catastrophic pattern can be killed.

Run by its path, on the standard library alone. The first line on its input is a JSON object: `pattern`, `literal`,
`ignore_case`. The reply is `[]`, or `{"problem": ...}` if the pattern is invalid. Then texts follow, each as a line
with its number of bytes, and those bytes. The reply to each is one line: the JSON list of the matching lines, as
`[number, text]`.
"""

import json
import re
import sys
from typing import IO

LONGEST_LINE = 300
"""Characters of a line that are given back; ten times as many are searched."""

MOST = 1000
"""Lines of one text that are given back."""


def lines_of(pattern: "re.Pattern[str]", text: str) -> "list[tuple[int, str]]":
    """Return the lines in which the pattern is found, each with its number."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if pattern.search(line[: LONGEST_LINE * 10]):
            found.append((number, line[:LONGEST_LINE].rstrip("\r")))
            if len(found) == MOST:
                break
    return found


def answer(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer until the input ends."""
    asked = json.loads(source.readline())
    pattern = re.escape(asked["pattern"]) if asked["literal"] else asked["pattern"]
    try:
        compiled = re.compile(pattern, re.IGNORECASE if asked["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        _write(target, {"problem": str(error)})
        return
    _write(target, [])
    while length := source.readline():
        text = source.read(int(length)).decode(errors="replace")
        _write(target, lines_of(compiled, text))


def _write(target: IO[bytes], value: object) -> None:
    target.write(json.dumps(value).encode() + b"\n")
    target.flush()


if __name__ == "__main__":
    answer(sys.stdin.buffer, sys.stdout.buffer)
