"""How the cost of translation grows with what is translated: messages, tools, calls, images, events, streams.

`python -m bench.growth` measures each over its sizes, says how steep it is and whether that is linear, and draws it.
CPU time, the least of some rounds; all is pure code in this process, so nothing needs to be running.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.plot import Series, lines
from bench.samples import MODEL, PIECE, agent, answer, conversation, frames, spoken, written
from bench.slopes import LINEAR, last_decade, sizes, slope
from xenoglot.codec.json.json_io import decode_json, encode_json, unambiguous
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.checks import bounded
from xenoglot.dialect_registry import get
from xenoglot.model.content import Image, Inline, Text
from xenoglot.model.events import Event, TextDelta
from xenoglot.model.fold import unfold
from xenoglot.model.request import Message, Request, Tool
from xenoglot.testing.canned import answers
from xenoglot.text import registry
from xenoglot.text.declared_tools import DeclaredTools
from xenoglot.text.stage import TextStage
from xenoglot.translate import stream_translator, translate_request, translate_response

Work = Callable[[], object]

PAIRS = (("messages", "chat"), ("chat", "messages"), ("responses", "chat"), ("chat", "responses"))
MILLISECONDS = 1e3
READ_BYTES = 1024
TRIM_THRESHOLD, MMAP_THRESHOLD, LARGEST = -1, -3, 1 << 30
AGAIN = 3
"""How often what does not seem linear is measured again."""

LONG_SECONDS, FEW = 0.3, 2
"""A point is measured for so long, but at least so many rounds."""


class Axis(Struct, frozen=True):
    """What grows: its name, its unit, over which sizes, and what is done at each, by the names of the lines."""

    name: str
    unit: str
    sizes: Sequence[int]
    lines: dict[str, Callable[[int], Work]]


class Line(Struct, frozen=True):
    """A line of a chart: sizes and milliseconds, the slope of its last decade, and whether that is linear."""

    axis: str
    name: str
    points: list[tuple[float, float]]
    slope: float
    linear: bool


def axes() -> list[Axis]:
    """Return all that is measured."""
    return [
        Axis("messages", "messages of a request", sizes(10, 1000), _requests(conversation)),
        Axis("tools", "tools of a request", sizes(5, 500), _requests(lambda size: agent(calls=1, tools=size))),
        Axis("calls", "calls and results in a request", sizes(5, 500), _requests(lambda size: agent(calls=size))),
        Axis("image", "bytes of an image in a request", sizes(1000, 10_000_000), _requests(_pictured)),
        Axis("answer", "tokens of an answer in one piece", sizes(100, 100_000), _by_pair(_answered)),
        Axis("call-size", "bytes of a call's arguments, streamed", sizes(1000, 1_000_000), _by_pair(_called)),
        Axis("stream", "tokens of a stream", sizes(100, 10_000), _by_pair(_streamed)),
        Axis("event", "bytes of one event", sizes(100, 1_000_000), _by_pair(_event)),
        Axis("reads", f"bytes of one event, in reads of {READ_BYTES}", sizes(2000, 2_000_000), _by_pair(_in_reads)),
        Axis("batch", "events of one read", sizes(1, 1000), _by_pair(_batch)),
        Axis("text", "tokens of text that may hold calls", sizes(100, 10_000), _texts()),
    ]


# Requests.


def _requests(make: Callable[[int], Request]) -> dict[str, Callable[[int], Work]]:
    across = {f"{source} to {target}": partial(_across, source, target, make) for source, target in PAIRS}
    return {**across, "chat, checked and passed": partial(_passed, make)}


def _across(source: str, target: str, make: Callable[[int], Request], size: int) -> Work:
    data = written(source, make(size))
    return lambda: encode_json(translate_request(decode_json(data), source, target, Losses()))


def _passed(make: Callable[[int], Request], size: int) -> Work:
    data, decode = written("chat", make(size)), get("chat").decode_request

    def work() -> None:
        value = decode_json(data)
        bounded(decode(value))
        unambiguous(data, value)

    return work


def _pictured(size: int) -> Request:
    picture = Image(source=Inline(data="iVBORw0KGgoA" * (size // 12 + 1), media_type="image/png"))
    return Request(model=MODEL, messages=(Message(role="user", content=(Text(text="What is it?"), picture)),))


# Answers and streams.


def _by_pair(make: Callable[[str, str, int], Work]) -> dict[str, Callable[[int], Work]]:
    return {f"{target} to {source}": partial(make, target, source) for source, target in PAIRS}


def _answered(source: str, target: str, size: int) -> Work:
    data = answer(source, size).body
    return lambda: encode_json(translate_response(decode_json(data), source, target, Losses()))


def _read(source: str, target: str, reads: Sequence[bytes]) -> Work:
    """Return the translation of a whole stream that comes in `reads`."""

    def work() -> None:
        translator = stream_translator(source, target, Losses())
        for read in reads:
            translator.feed(read)
        translator.close()

    return work


def _streamed(source: str, target: str, size: int) -> Work:
    return _read(source, target, spoken(source, size).frames)


def _called(source: str, target: str, size: int) -> Work:
    """Return the translation of a stream whose call has arguments of that size, in pieces of about four letters."""
    arguments = encode_json({"text": "word " * (size // 5)}).decode()
    whole = answers(source, text=(), tool=("write", arguments), model=MODEL)
    pieces = [whole.stream[at : at + READ_BYTES] for at in range(0, len(whole.stream), READ_BYTES)]
    return _read(source, target, pieces)


def _event(source: str, target: str, size: int) -> Work:
    parts = frames(source, PIECE * (size // len(PIECE) + 1))
    return _read(source, target, [*parts.first, parts.token, *parts.last])


def _in_reads(source: str, target: str, size: int) -> Work:
    parts = frames(source, PIECE * (size // len(PIECE) + 1))
    reads = [parts.token[at : at + READ_BYTES] for at in range(0, len(parts.token), READ_BYTES)]
    return _read(source, target, [*frames(source).first, *reads, *parts.last])


def _batch(source: str, target: str, size: int) -> Work:
    parts = frames(source)
    return _read(source, target, [*parts.first, parts.token * size, *parts.last])


# Models that write calls as text.

CALLS = {
    "hermes": '<tool_call>\n{"name": "tool_0", "arguments": {"argument_0": "one"}}\n</tool_call>\n',
    "qwen3_coder": "<tool_call>\n<function=tool_0>\n<parameter=argument_0>\none\n</parameter>\n</function>\n"
    "</tool_call>\n",
}
"""A call as models of two families write it."""

LETTERS = 5
"""Of one token."""


def _texts() -> dict[str, Callable[[int], Work]]:
    found: dict[str, Callable[[int], Work]] = {
        f"{name}, words": partial(_text, name, "words " * 100, "") for name in CALLS
    }
    found |= {
        f"{name}, words and calls": partial(_text, name, "words " * 20 + call, "") for name, call in CALLS.items()
    }
    return found | {f"{name}, a call without end": partial(_text, name, "one ", _unended(name)) for name in CALLS}


def _unended(name: str) -> str:
    call = CALLS[name]
    return call[: call.index("one")]


def _text(name: str, repeated: str, before: str, size: int) -> Work:
    """Return the reading of a text of `size` tokens: `before`, and then the same again and again."""
    text = (before + repeated * (size * LETTERS // len(repeated) + 1))[: size * LETTERS]
    response = answers("chat", text=text, model=MODEL).response
    events = [piece for event in unfold(response) for piece in _in_tokens(event)]
    declared = DeclaredTools.of([tool for tool in agent(calls=0, tools=1).tools if isinstance(tool, Tool)])

    def work() -> None:
        stage = TextStage(registry.get(name), declared, lambda _candidate, number: f"call_{number}", Losses())
        for event in events:
            stage.feed(event)
        stage.close()

    return work


def _in_tokens(event: Event) -> list[Event]:
    if not isinstance(event, TextDelta):
        return [event]
    return [replace(event, text=event.text[at : at + LETTERS]) for at in range(0, len(event.text), LETTERS)]


# Measuring.


def measured(axis: Axis, name: str, rounds: int) -> Line:
    """Measure one line over its sizes; what does not seem linear is measured again, for it may have been disturbed."""
    points = _points(axis, name, rounds)
    for _ in range(AGAIN):
        if slope(last_decade(points)) <= LINEAR:
            break
        again = _points(axis, name, rounds)
        points = [(size, min(cost, other)) for (size, cost), (_, other) in zip(points, again, strict=True)]
    steep = slope(last_decade(points))
    return Line(axis.name, name, points, round(steep, 3), steep <= LINEAR)


def _points(axis: Axis, name: str, rounds: int) -> list[tuple[float, float]]:
    return [(float(size), least(axis.lines[name](size), rounds) * MILLISECONDS) for size in axis.sizes]


def least(work: Work, rounds: int) -> float:
    """Return the least seconds of CPU that `work` took: of so many rounds, or of a few where one takes long."""
    gc.collect()
    gc.freeze()  # as the gateway does when it has started
    best, spent = _once(work), 0.0
    for number in range(rounds):
        taken = _once(work)
        best, spent = min(best, taken), spent + taken
        if spent > LONG_SECONDS and number >= FEW:
            break
    return best


def keep_memory() -> None:
    """Have the C library return no memory to the system: new pages for each call would be a step in every line.

    https://man7.org/linux/man-pages/man3/mallopt.3.html; other libraries are left alone.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(TRIM_THRESHOLD, LARGEST)
        mallopt(MMAP_THRESHOLD, LARGEST)


def _once(work: Work) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def table(found: Sequence[Line]) -> str:
    """Return a line of text for each line measured: from where to where, how steep, and whether that is linear."""
    rows = [f"{'':<10} {'':<32} {'first, ms':>10} {'last, ms':>10} {'slope':>6}"]
    for line in found:
        verdict = "linear" if line.linear else "NOT LINEAR"
        ends = f"{line.points[0][1]:>10.3f} {line.points[-1][1]:>10.3f}"
        rows.append(f"{line.axis:<10} {line.name:<32} {ends} {line.slope:>6.2f}  {verdict}")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Read the flags, measure, and draw; return 0 where all growth is linear."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("only", nargs="*", help="names of axes; none: all")
    parser.add_argument("--rounds", type=int, default=10, help="rounds at each size (10)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where charts and figures are written")
    options = parser.parse_args()
    keep_memory()
    found: list[Line] = []
    for axis in axes():
        if options.only and axis.name not in options.only:
            continue
        drawn = [measured(axis, name, options.rounds) for name in axis.lines]
        sys.stdout.write(table(drawn))
        sys.stdout.flush()
        found += drawn
        if options.out is not None:
            series = [Series(line.name, line.points) for line in drawn]
            chart = lines(f"Cost by {axis.unit}", axis.unit, "ms of CPU", series, log=True)
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"growth-{axis.name}.svg").write_text(chart, encoding="utf-8")
    if options.out is not None:
        text = msgspec.json.format(msgspec.json.encode(found), indent=1)
        (options.out / "growth.json").write_bytes(text + b"\n")
    return 0 if all(line.linear for line in found) else 1


if __name__ == "__main__":
    sys.exit(main())
