"""A scripted server whose answers stop in their middle until a test lets them go on, behind a gateway."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from drive.conftest import Gateway, gateway
from xenoglot import testing
from xenoglot.testing import Answers, Body, End, ScriptRule, Upstream, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GO = "go on"
PIECES = ("Well ", "done.")
WHOLE = "".join(PIECES)


class HeldAnswers(Struct, frozen=True):
    """The server `upstream`, the gateway in front of it, and the answer."""

    upstream: Upstream
    served: Gateway
    answers: Answers

    def hold(self, count: int = 1) -> None:
        """Have the next answers stop in their middle until `go_on`; those after them are complete."""
        half = len(self.answers.frames) // 2
        rest = tuple(Body(frame) for frame in self.answers.frames[half:])
        steps = self.answers.streamed(upto=half, then=(WaitEvent(GO), *rest, End()))
        self.upstream.script(ScriptRule(steps=steps, times=count), *self.answers.rules())

    def go_on(self) -> None:
        """Let all answers go on."""
        self.upstream.release(GO)

    def wait_for_disconnect(self) -> None:
        """Wait until the gateway has closed a connection to the upstream."""
        self.upstream.wait(lambda: any(one.lost.is_set() for one in self.upstream.connections))

    def bodies(self) -> list[bytes]:
        """Return the bodies that the upstream was asked with."""
        return [request.body for request in self.upstream.requests if request.method == "POST"]

    def lines(self, *routes: str) -> list[tuple[str, int | None, str | None]]:
        """Return method, status and failure of each request in the log to one of `routes`."""
        told = [line for line in self.served.lines() if line["route"] in routes]
        return [(line["method"], line["status"], line["failure"]) for line in told]


@contextmanager
def held_answers(folder: Path, dialect: str) -> Iterator[HeldAnswers]:
    """Give a server of `dialect` and its gateway."""
    answers = testing.answers(dialect, text=PIECES)
    with ExitStack() as exits:
        upstream = exits.enter_context(Upstream(*answers.rules()))
        served = exits.enter_context(gateway(folder, "--upstream", upstream.url, "--dialect", dialect))
        yield HeldAnswers(upstream=upstream, served=served, answers=answers)
