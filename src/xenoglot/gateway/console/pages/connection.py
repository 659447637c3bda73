"""The page Connect: for each program that is known, the lines that make it use this gateway."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.gateway.auth.request_checks import requested_host
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page
from xenoglot.programs import catalog as programs
from xenoglot.programs.environment import GatewayLocation, program_environment, shown
from xenoglot.programs.program import Program

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult

HOST: Final = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-fA-F:]{2,39}\](:[0-9]{1,5})?")
LOCAL: Final = "127.0.0.1:8080"
KEY: Final = "YOUR_KEY"
MODEL: Final = "MODEL"
FOLDER: Final = "./xenoglot-run"
MOST_MODEL: Final = 200


class ConnectionLines(Struct, frozen=True, kw_only=True):
    """How a program is connected: `command` by `xenoglot run`, `lines` for a shell without it."""

    program: Program
    command: str
    lines: str


class ConnectPage(Struct, frozen=True):
    """Shows the lines, with the URL at which the browser reached the gateway and a placeholder for the key."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the row of the table."""
        return (ConsoleRoute(method="GET", path="/connect", handler=self.connect),)

    async def connect(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the page."""
        model = (request.parameter("model") or "")[:MOST_MODEL]
        model = model if model.isprintable() else ""
        url = gateway_url(request)
        rows = [connection_lines(programs.get(name), url, model) for name in programs.names()]
        return Page(template="connect.html", values={"title": "Connect", "url": url, "model": model, "rows": rows})


def gateway_url(request: ConsoleRequest) -> str:
    """Return the URL at which the browser reached the gateway; the usual one if its `host` is no host.

    Whether that was HTTPS is known from the page before, which has the same origin.
    """
    exchange = request.ctx.exchange
    host = requested_host(exchange.headers) or ""
    scheme = "https" if (exchange.header("referer") or "").startswith("https://") else "http"
    return f"{scheme}://{host if HOST.fullmatch(host) else LOCAL}"


def connection_lines(program: Program, url: str, model: str) -> ConnectionLines:
    """Return the lines for a program; one that needs a model gets a placeholder for its name."""
    wanted = model or (MODEL if program.model == "needed" else None)
    place = GatewayLocation(url=url, key=KEY, folder=FOLDER, model=wanted)
    made = program_environment(program, place)
    command = [program.commands[0] if program.commands else "YOUR_PROGRAM", *made.arguments]
    lines = [f"mkdir -p {FOLDER}"] if made.files else []
    flags = ["--gateway", url, "--client-key-env", "XENOGLOT_KEY", *(("--model", wanted) if wanted else ())]
    end = ["--", "YOUR_PROGRAM"] if not program.commands else []
    return ConnectionLines(
        program=program,
        command=f"export XENOGLOT_KEY={KEY}\n{shlex.join(['xenoglot', 'run', program.name, *flags, *end])}",
        lines="\n".join([*lines, *shown(made, command, FOLDER)]),
    )
