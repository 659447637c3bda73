"""Modules that run between the bytes of a client's request and the bytes that the upstream gets.

`python -m bench.request_path` lists them, with the functions of each, in the order in which they are first called. The
request is streamed, from a client to a server of the same dialect unless others are named; `data_received` of the
client's connection begins it, the `write` towards the upstream ends it. Several are sent, and the last one counts:
by then everything is cached that is cached. Those that wait for others to return when the write is made are named
apart: they hand the request on, the others answer a question.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bench.inmemory import Client, Load, Upstream, spent
from bench.pieces import SHORT, client_request, told

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = "xenoglot."
_BEGIN = Client._send.__code__  # noqa: SLF001  the socket's stand-ins are where a request begins and ends
_END = Upstream._take.__code__  # noqa: SLF001  as above


class RequestPath:
    """What the interpreter calls between the two ends of a request: functions by their modules, in order."""

    def __init__(self) -> None:
        self.modules: dict[str, list[str]] = {}
        self.stack: list[str] = []
        """The modules that wait for the write, the outermost first."""
        self._called: dict[str, list[str]] | None = None

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take note of one event of the interpreter."""
        if event != "call":
            return
        if frame.f_code is _BEGIN:
            self._called = {}
        elif frame.f_code is _END and self._called is not None:
            self.modules, self._called = self._called, None
            self.stack = _stack(frame)
        elif self._called is not None:
            self._note(frame)

    def _note(self, frame: FrameType) -> None:
        name = _module(frame)
        if self._called is not None and name.startswith(PACKAGE):
            functions = self._called.setdefault(name, [])
            if frame.f_code.co_qualname not in functions:
                functions.append(frame.f_code.co_qualname)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _stack(frame: FrameType | None) -> list[str]:
    found: dict[str, None] = {}
    while frame is not None:
        if _module(frame).startswith(PACKAGE):
            found[_module(frame)] = None
        frame = frame.f_back
    return list(found)[::-1]


def request_path(client: str = "chat", upstream: str = "chat", *, stream: bool = True) -> RequestPath:
    """Return what is called for one request."""
    path = RequestPath()
    load = Load(upstream, client_request(client, stream=stream), told(upstream, SHORT), stream=stream, connections=1)
    sys.setprofile(path)
    try:
        spent(load, 2, 2)
    finally:
        sys.setprofile(None)
    return path


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("client", nargs="?", default="chat", help="the client's dialect")
    parser.add_argument("upstream", nargs="?", default="chat", help="the upstream's")
    given = parser.parse_args()
    path = request_path(given.client, given.upstream)
    lines = [f"{module}: {', '.join(functions)}" for module, functions in path.modules.items()]
    functions = sum(map(len, path.modules.values()))
    lines.append(f"{len(path.modules)} modules, {functions} functions")
    lines.append(f"{len(path.stack)} modules hand the request on: {', '.join(path.stack)}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
