"""A bad day: clients that take a turn through a gateway, what stands behind it, and what became of the turn."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import anthropic
import openai
from msgspec import Struct

from drive.conftest import Gateway, Place, furnished, gateway
from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.failure import FailureKind
from xenoglot.testing import Respond, Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from xenoglot.testing import ScriptRule
    from xenoglot.testing.upstream import Door

KEY: Final = "client-key"
WELL: Final = "Well done."
"""What the model says where nothing fails, and the client in the end."""

QUIET: Final = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
CODEX: Final = """
model = "somebody-elses"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "GATEWAY_KEY"
stream_idle_timeout_ms = 5000
[analytics]
enabled = false
"""
"""Nothing is said of retries: they are what they are. A stream may be silent for five seconds."""

CONFIG: Final = """
[server]
ping_interval = {ping}
[keys]
env = ["CLIENT_KEY"]
{upstreams}
[[models]]
name = "*"
strategy = "ordered"
targets = [{targets}]
"""
UPSTREAM: Final = """
[upstreams.{name}]
dialect = "{dialect}"
base_url = "{url}"
key_env = "UPSTREAM_KEY"
{more}
"""


class Line(Struct, frozen=True):
    """What the gateway's log says of one request: tries are those of the gateway, at whichever upstream."""

    status: int | None
    tries: int = 1
    failure: FailureKind | None = None
    stream: bool | None = True
    backend: str | None = "first"


class Turn(Struct, frozen=True):
    """What became of one turn: what the client said in the end, and each request that it sent for it."""

    said: str
    lines: tuple[Line, ...]

    @property
    def tries(self) -> int:
        """How often an upstream was asked."""
        return sum(line.tries for line in self.lines)


class Day(Struct, frozen=True):
    """A gateway, and the upstreams behind it, in the order in which they are asked."""

    served: Gateway
    place: Place
    upstreams: tuple[Upstream, ...]

    def turn(self, client: str, key: str = KEY, **environment: str) -> Turn:
        """Have `client` take one turn."""
        before = len(self._lines())
        said = CLIENTS[client](self.place, key, environment)
        return Turn(said=said, lines=tuple(self._lines()[before:]))

    def asked(self) -> list[int]:
        """Return how many requests each upstream got."""
        return [sum(request.method == "POST" for request in upstream.requests) for upstream in self.upstreams]

    def _lines(self) -> list[Line]:
        told = [line for line in self.served.lines() if line["method"] == "POST"]
        return [Line(**{field: line[field] for field in Line.__struct_fields__}) for line in told]


@contextmanager
def day(
    folder: Path,
    dialect: str,
    *rules: tuple[ScriptRule, ...],
    more: str = "",
    door: Door = "open",
    ping: float = 0.5,
) -> Iterator[Day]:
    """Give a day with an upstream for each of `rules`.

    `more` is added to the table of each; `door` is that of the first of them; `ping` is the interval of heartbeats. A
    stream that begins with one has the status 200 whatever happens next, so a test of statuses sets a long one.
    """
    with ExitStack() as exits:
        first, *others = rules
        upstreams = (Upstream(*first, door=door), *(Upstream(*other) for other in others))
        for upstream in upstreams:
            exits.enter_context(upstream)
        named = dict(zip(("first", "second"), upstreams, strict=False))
        tables = [UPSTREAM.format(name=name, dialect=dialect, url=one.url, more=more) for name, one in named.items()]
        targets = ", ".join(f'{{ upstream = "{name}" }}' for name in named)
        config = folder / "xenoglot.toml"
        config.write_text(CONFIG.format(ping=ping, upstreams="".join(tables), targets=targets))
        keys = {"CLIENT_KEY": KEY, "UPSTREAM_KEY": "upstream-key"}
        served = exits.enter_context(gateway(folder, "--config", str(config), **keys))
        home, work = furnished(folder)
        yield Day(served=served, place=Place(url=served.url, home=home, work=work), upstreams=upstreams)


def claude(place: Place, key: str, environment: Mapping[str, str]) -> str:
    """Return what Claude Code says of a turn."""
    given = {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": key, **QUIET, **environment}
    done = place.ran("claude", "-p", "hello", "--output-format", "stream-json", "--verbose", **given)
    return str(json.loads(done.stdout.splitlines()[-1])["result"])


def codex(place: Place, key: str, environment: Mapping[str, str]) -> str:
    """Return what Codex says of a turn."""
    home = place.home / ".codex"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CODEX.format(url=place.url))
    flags = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    done = place.ran("codex", "exec", *flags, "hello", GATEWAY_KEY=key, **environment)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if events[-1]["type"] == "turn.failed":
        return str(events[-1]["error"]["message"])
    return "".join(event["item"]["text"] for event in events if event.get("item", {}).get("type") == "agent_message")


def openai_sdk(place: Place, key: str, _: Mapping[str, str]) -> str:
    """Return what comes of a stream by OpenAI's SDK, which retries as it does by default."""
    with openai.OpenAI(base_url=f"{place.url}/v1", api_key=key) as client:
        try:
            stream = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hello"}], stream=True
            )
            return "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices)
        except openai.APIError as error:
            return type(error).__name__


def anthropic_sdk(place: Place, key: str, _: Mapping[str, str]) -> str:
    """Return what comes of a stream by Anthropic's SDK, which retries as it does by default."""
    with anthropic.Anthropic(base_url=place.url, api_key=key) as client:
        try:
            with client.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}]
            ) as stream:
                return stream.get_final_text()
        except anthropic.APIError as error:
            return type(error).__name__


CLIENTS: Final[dict[str, Callable[[Place, str, Mapping[str, str]], str]]] = {
    "claude": claude,
    "codex": codex,
    "openai": openai_sdk,
    "anthropic": anthropic_sdk,
}
OWN: Final = {"claude": "messages", "codex": "responses", "openai": "chat", "anthropic": "messages"}
"""The dialect that each of them speaks."""


def refusal(dialect: str, status: int, *headers: tuple[str, str]) -> Respond:
    """Return an error as a server of `dialect` gives it, in words that say no more than the status does."""
    error = {"type": "error", "message": "no"}
    body = {"type": "error", "error": error} if dialect == "messages" else {"error": error}
    return Respond(status, (("content-type", "application/json"), *headers), encode_json(body))
