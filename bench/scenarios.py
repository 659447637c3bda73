"""What is measured: who asks what of whom, over how many connections, and how the answer comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bench import wires
from bench.gateways import READ, TLS
from xenoglot.dialect_registry import names
from xenoglot.model.request import Request

Measure: TypeAlias = Literal["ratio", "cpu_us", "delivered", "token_p99_us", "rss_mb"]

PACE_US: Final = 20_000
"""Between two tokens of a stream: 50 a second."""

STREAM_COUNTS: Final = (64, 256, 1000)
CONNECTION_COUNTS: Final = (1, 16, 64, 256, 1000)


class Goal(Struct, frozen=True):
    """What a measure of Xenoglot may be: at most `limit`, or at least where `least`."""

    measure: Measure
    limit: float
    least: bool = False

    def met(self, value: float) -> bool:
        """Whether `value` is within the goal."""
        return value >= self.limit if self.least else value <= self.limit


class Make(Struct, frozen=True):
    """A request in the making, for a client's dialect."""

    request: Callable[..., Request] = wires.small

    def __call__(self, client: str, model: str, *, stream: bool) -> Request:
        """Return the request."""
        return self.request(client, model=model, stream=stream)


class Scenario(Struct, frozen=True, kw_only=True):
    """One thing to measure.

    A stream has `pieces` tokens, `pace_us` microseconds apart, or as fast as they are read (0), or in one write
    (`batch`). `slow` is how many bytes a second each client reads, `rate` how many requests a second begin, whatever
    comes of them; 0 is for as fast as possible. `flavour` is put behind the model's name, `seconds` is a window of its
    own, `warmup` how many answers come before it.
    """

    name: str
    title: str
    client: str = "messages"
    upstream: str = "chat"
    make: Make = Make()
    stream: bool = False
    connections: int = 64
    pieces: int = 100
    pace_us: int = 0
    batch: bool = False
    slow: int = 0
    rate: float = 0.0
    flavour: str = ""
    seconds: float | None = None
    warmup: int = 300
    goals: tuple[Goal, ...] = ()

    @property
    def unit(self) -> str:
        """What the processor's time is divided by."""
        return "token" if self.stream else "request"

    @property
    def ramp(self) -> float:
        """Over how many seconds the first streams begin: as long as one lasts, two at most."""
        return min(self.pieces * self.pace_us / 1e6, 2.0) if self.stream and self.pace_us else 0.0


def _paced(count: int, *goals: Goal) -> Scenario:
    return Scenario(
        name=f"paced-{count}",
        title=f"translated stream, {count} x 50 tokens/s",
        stream=True,
        connections=count,
        pace_us=PACE_US,
        warmup=0,
        goals=(Goal("ratio", 1.25), *goals),
    )


VERBATIM: Final = Scenario(name="verbatim", title="verbatim, 1 kB, whole", client="chat", goals=(Goal("ratio", 1.25),))
TRANSLATED: Final = Scenario(name="translated", title="translated, 1 kB, whole", goals=(Goal("ratio", 1.75),))
UNPACED: Final = Scenario(
    name="unpaced",
    title="translated stream, un-paced",
    stream=True,
    connections=16,
    warmup=32,
    goals=(Goal("ratio", 1.25),),
)
AGENT: Final = Scenario(
    name="agent",
    title="translated, agent request of 115 kB",
    make=Make(wires.agent),
    connections=8,
    warmup=100,
    goals=(Goal("cpu_us", 500.0),),
)
CROWD: Final = (Goal("delivered", 0.995, least=True), Goal("token_p99_us", 5000.0), Goal("rss_mb", 64.0))
GOALS: Final = (
    VERBATIM,
    TRANSLATED,
    AGENT,
    *(_paced(count, *(CROWD if count == STREAM_COUNTS[-1] else ())) for count in STREAM_COUNTS),
    UNPACED,
)
"""The scenarios of the goals."""


def _connections(base: Scenario) -> tuple[Scenario, ...]:
    return tuple(
        replace(base, name=f"{base.name}-c{count}", title=f"{base.title}, c={count}", connections=count, goals=())
        for count in CONNECTION_COUNTS
    )


def _streams() -> tuple[Scenario, ...]:
    batch = replace(UNPACED, name="batch", title="translated stream, in one write", batch=True, goals=())
    verbatim = replace(
        _paced(256), name="verbatim-paced", title="verbatim stream, 256 x 50 tokens/s", client="chat", goals=()
    )
    return (
        batch,
        verbatim,
        replace(
            verbatim, name="verbatim-unpaced", title="verbatim stream, un-paced", connections=16, pace_us=0, warmup=32
        ),
        replace(
            _paced(256), name="paced-long", title="translated stream of 1,000 tokens, 256 x 50/s", pieces=1000, goals=()
        ),
        replace(
            UNPACED, name="unpaced-long", title="translated stream of 1,000 tokens, un-paced", pieces=1000, goals=()
        ),
        replace(batch, name="batch-long", title="translated stream of 1,000 tokens, in one write", pieces=1000),
        replace(
            _paced(512), name="first-token", title="first token, 50 streams/s", rate=50.0, connections=512, goals=()
        ),
    )


def _others() -> tuple[Scenario, ...]:
    read = Make(wires.with_tool)
    paced, whole = replace(_paced(256), goals=()), replace(TRANSLATED, goals=())
    return (
        replace(whole, name="agent-verbatim", title="verbatim, agent request of 115 kB", client="chat", make=AGENT.make,
                connections=8, warmup=100),
        replace(whole, name="read", title="text read for calls, whole", make=read, flavour=READ),
        replace(paced, name="read-paced", title="text read for calls, 256 x 50 tokens/s", make=read, flavour=READ),
        replace(whole, name="tls", title="TLS upstream, whole", flavour=TLS),
        replace(paced, name="tls-paced", title="TLS upstream, 256 x 50 tokens/s", flavour=TLS),
        replace(UNPACED, name="slow", title="64 clients that read 64 kB/s", connections=64, pieces=1000, slow=65_536,
                warmup=0, seconds=4.0, goals=()),
        replace(whole, name="long", title="1,000 messages", make=Make(wires.long), connections=4, warmup=20),
        replace(whole, name="picture", title="a picture of 10 MB", make=Make(wires.picture), connections=2, warmup=3,
                seconds=3.0),
        replace(whole, name="picture-verbatim", title="a picture of 10 MB, verbatim", client="chat",
                make=Make(wires.picture), connections=2, warmup=3, seconds=3.0),
    )  # fmt: skip


def _matrix() -> tuple[Scenario, ...]:
    made: list[Scenario] = []
    for client in names():
        for upstream in names():
            base = Scenario(
                name=f"{client}-{upstream}", title=f"{client} to {upstream}", client=client, upstream=upstream,
                connections=16, seconds=0.4, warmup=100,
            )  # fmt: skip
            made += (base, replace(base, name=f"{base.name}-stream", stream=True, batch=False, warmup=20))
    return tuple(made)


MATRIX: Final = _matrix()
"""Every dialect before every other, in short windows: of Xenoglot alone."""

EVERY: Final = (*GOALS, *_streams(), *_others(), *_connections(VERBATIM), *_connections(TRANSLATED))
"""All of which all gateways are measured in."""
