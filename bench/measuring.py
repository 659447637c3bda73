"""The measuring itself: a mock, the gateways in front of it, and windows of load in turns."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from bench.gateways import CLIENT_KEY, Gateway, Site, free_port
from bench.processes import Cores, ask, family, found, on_core, running, set_mock, wait_for
from bench.wires import Question, mock_options, question, small

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.scenarios import Scenario

SETTLE: Final = 0.5
"""Seconds between the start of the last paced stream and the window."""

PATIENCE: Final = 10.0
"""Seconds after which the window opens although fewer answers came than the warm-up asks for."""

_FINE: Final = 200

_TERMINATOR: Final = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid {folder}/terminator.pid;
error_log {folder}/terminator.log warn;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {folder}/terminator-body;
  proxy_temp_path {folder}/terminator-proxy;
  fastcgi_temp_path {folder}/terminator-fastcgi;
  uwsgi_temp_path {folder}/terminator-uwsgi;
  scgi_temp_path {folder}/terminator-scgi;
  client_max_body_size 64m;
  client_body_buffer_size 16m;
  keepalive_requests 1000000000;
  upstream mock {{ server 127.0.0.1:{mock}; keepalive 1024; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{tls} ssl backlog=4096;
    ssl_certificate {folder}/mock.pem;
    ssl_certificate_key {folder}/mock.pem;
    location / {{
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


class Spread(Struct, frozen=True):
    """How long something took, in microseconds, over `n` times."""

    n: int
    mean: float
    p50: float
    p99: float
    p999: float
    max: float


class Sample(Struct, frozen=True):
    """What the load tool saw in one window, and what the watched processes used in it (`tools/load.c`).

    `cpu_ns` is of all threads, `loop_ns` of the first of each process, which runs the event loop.
    """

    seconds: float
    answers: int
    tokens: int
    bytes: int
    late: int
    errors: dict[str, int]
    request_us: Spread | None
    first_us: Spread | None
    token_us: Spread | None
    cpu_ns: int
    loop_ns: int
    rss_kb: int
    peak_kb: int


class Result(Struct, frozen=True):
    """A gateway in a scenario: a sample of each round, or the reason why there is none."""

    scenario: str
    gateway: str
    samples: tuple[Sample, ...] = ()
    reason: str | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """How it is measured: rounds, seconds of a window, where the programs in C are, where files go, on which cores."""

    rounds: int = 3
    seconds: float = 1.5
    tools: Path
    folder: Path
    cores: Cores


class Stand(Struct, frozen=True):
    """A gateway that runs: where it listens, which processes it is; `site` is what it was given."""

    gateway: Gateway
    site: Site
    pid: int | None

    def port(self, flavour: str = "") -> int:
        """Return the port to ask at, which may be another where the upstream speaks TLS."""
        if self.gateway.start is None:
            return self.site.mock
        return self.site.port + (self.gateway.tls_offset if flavour == "-tls" else 0)


def site_for(name: str, shared: Site) -> Site:
    """Return where the gateway `name` is set up: a folder and a port of its own, the mock of `shared`."""
    folder = shared.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    return msgspec.structs.replace(shared, folder=folder, port=free_port())


@contextmanager
def mocked(settings: Settings) -> Iterator[Site]:
    """Run the mock, and nginx before it for those who ask over TLS."""
    folder = settings.folder
    folder.mkdir(parents=True, exist_ok=True)
    site = Site(folder, port=0, mock=free_port(), mock_tls=free_port(), authority=_certificates(folder))
    terminator = folder / "terminator.conf"
    terminator.write_text(_TERMINATOR.format(folder=folder, tls=site.mock_tls, mock=site.mock))
    mock = (str(settings.tools / "upstream"), "--port", str(site.mock), *mock_options(folder))
    tls = (found("nginx") or "nginx", "-p", str(folder), "-c", str(terminator))
    with (
        running(on_core(settings.cores.others, mock), folder / "mock.log"),
        running(on_core(settings.cores.others, tls), folder / "terminator.out"),
    ):
        wait_for(site.mock, question("chat", small("chat", model="chat"), CLIENT_KEY))
        yield site


@contextmanager
def standing(gateway: Gateway, shared: Site, settings: Settings) -> Iterator[Stand]:
    """Run `gateway` until the block is left.

    Raises:
        TimeoutError: it did not begin to answer.
    """
    if gateway.start is None:
        yield Stand(gateway, shared, None)
        return
    site = site_for(gateway.name, shared)
    start = gateway.start(site)
    command = on_core(settings.cores.gateway, start.command)
    with running(command, site.folder / "output.log", start.environment) as process:
        wait_for_port(site.port, process)
        yield Stand(gateway, site, process.pid)


def wait_for_port(port: int, process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    """Wait until something listens at `port`.

    Raises:
        TimeoutError: the process ended before, or took too long.
    """
    nothing = Question(path="/", headers=(), body=b"{}", end="")
    for _ in range(int(seconds / 0.02)):
        if ask(port, nothing) != 0:
            return
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
        raise TimeoutError(f"it ended with {process.returncode}")
    raise TimeoutError(f"nobody listens after {seconds:.0f} s")


def asked(scenario: Scenario, gateway: Gateway) -> Question:
    """Return what the clients of `scenario` send to `gateway`."""
    model = scenario.upstream + scenario.flavour
    request = scenario.make(scenario.client, gateway.models.get(model, model), stream=scenario.stream)
    made = question(scenario.client, request, CLIENT_KEY)
    return msgspec.structs.replace(made, headers=(*made.headers, *gateway.headers))


def measured(
    scenario: Scenario,
    gateways: Sequence[Gateway],
    shared: Site,
    settings: Settings,
    running_already: Sequence[Stand] = (),
) -> list[Result]:
    """Measure `gateways` in `scenario`, in turns, each round in another order; start those that do not run already."""
    with ExitStack() as stack:
        stands, results = list[Stand](), list[Result]()
        for gateway in gateways:
            found_stand = next((stand for stand in running_already if stand.gateway.name == gateway.name), None)
            try:
                stand = found_stand or stack.enter_context(standing(gateway, shared, settings))
                _try(scenario, stand)
            except (TimeoutError, ValueError) as error:
                results.append(Result(scenario.name, gateway.name, reason=str(error)))
            else:
                stands.append(stand)
        return results + _in_turns(scenario, stands, settings)


def _in_turns(scenario: Scenario, stands: list[Stand], settings: Settings) -> list[Result]:
    samples: dict[str, list[Sample]] = {stand.gateway.name: [] for stand in stands}
    for turn in range(settings.rounds):
        first = turn % max(len(stands), 1)
        for stand in stands[first:] + stands[:first]:
            samples[stand.gateway.name].append(window(scenario, stand, settings))
    return [Result(scenario.name, name, tuple(taken)) for name, taken in samples.items()]


def _try(scenario: Scenario, stand: Stand) -> None:
    """Ask once.

    Raises:
        ValueError: the gateway does not offer this, or the answer is not 200.
    """
    if not stand.gateway.offers(scenario.client, scenario.upstream):
        raise ValueError("not offered")
    set_mock(stand.site.mock, pieces=2, pace_us=0, batch=False)
    status = ask(stand.port(scenario.flavour), asked(scenario, stand.gateway))
    if status != _FINE:
        raise ValueError(f"answers {status or 'nothing'}")


def window(scenario: Scenario, stand: Stand, settings: Settings) -> Sample:
    """Load a gateway through one window, and return what was seen.

    Raises:
        ChildProcessError: the load tool failed.
    """
    set_mock(stand.site.mock, pieces=scenario.pieces, pace_us=scenario.pace_us, batch=scenario.batch)
    pids = family(stand.pid) if stand.pid else []
    command = load_command(scenario, stand, settings, scenario.seconds or settings.seconds, pids)
    done = subprocess.run(  # noqa: S603  our own program
        on_core(settings.cores.others, command), capture_output=True, check=False, timeout=300
    )
    if done.returncode:
        raise ChildProcessError(f"load: {done.stderr.decode()}")
    if done.stderr:
        sys.stderr.write(f"{scenario.name}, {stand.gateway.name}: {done.stderr.decode()}\n")
    return msgspec.json.decode(done.stdout, type=Sample)


def load_command(
    scenario: Scenario, stand: Stand, settings: Settings, seconds: float, pids: Sequence[int] = ()
) -> list[str]:
    """Return the command line of the load tool for `scenario`."""
    made = asked(scenario, stand.gateway)
    body = stand.site.folder / f"{scenario.name}.{stand.gateway.name}.body"
    body.write_bytes(made.body)
    options: dict[str, object] = {
        "port": stand.port(scenario.flavour),
        "path": made.path,
        "body": body,
        "connections": scenario.connections,
        "seconds": seconds,
        "warmup": scenario.warmup,
        "settle": scenario.ramp + SETTLE if scenario.ramp else 0,
        "ramp": scenario.ramp,
        "patience": PATIENCE,
        "end": made.end,
        "slow": scenario.slow,
        "rate": scenario.rate,
    }
    command = [str(settings.tools / "load")]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    for header in made.headers:
        command += ["--header", header]
    for pid in pids:
        command += ["--watch", str(pid)]
    return command


def _certificates(folder: Path) -> Path:
    """Make an authority and a certificate for the mock; return the file of the former's."""
    import trustme  # noqa: PLC0415  only the benchmark's own machine needs it

    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        str(folder / "mock.pem")
    )
    return folder / "authority.pem"
