"""Other gateways, each set up as its documentation says: a key where it asks for one, no database, all else default.

All stand in front of the same mock, which speaks the dialects `chat` and `messages` at the paths of either.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.gateways import CLIENT_KEY, UPSTREAM_KEY, Gateway, Site, Start
from bench.peers.installing import from_npm, from_pypi
from bench.processes import found

CHAT: Final = "chat"
"""The model that is asked for, and the mock's name for it."""

TO_CHAT: Final = frozenset({("chat", "chat"), ("messages", "chat"), ("responses", "chat")})


class Peer(Struct, frozen=True):
    """A peer: its name with its version, how it is installed into a folder, and the gateway that comes of it."""

    name: str
    install: Callable[[Path], Path]
    gateway: Callable[[Path, Site], Gateway]


def _named(peer: str, start: Callable[[Site], Start], **more: object) -> Gateway:
    return Gateway(name=peer, start=start, slow_to_start=True, **more)  # type: ignore[arg-type]  # as that has them


# https://docs.litellm.ai/docs/proxy/configs

LITELLM: Final = "LiteLLM 1.106.2"


def _litellm(place: Path, _shared: Site) -> Gateway:
    return _named(LITELLM, partial(_start_litellm, place), pairs=TO_CHAT)


def _start_litellm(place: Path, site: Site) -> Start:
    prices = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
    behind = {"model": f"openai/{CHAT}", "api_base": f"http://127.0.0.1:{site.mock}/v1", "api_key": UPSTREAM_KEY}
    config = {
        "model_list": [{"model_name": CHAT, "litellm_params": behind | prices}],
        "litellm_settings": {"use_chat_completions_url_for_anthropic_messages": True},
        "general_settings": {"master_key": CLIENT_KEY},
    }
    file = _written(site.folder / "config.yaml", config)
    command = (str(place / "bin" / "litellm"), "--config", str(file), "--host", "127.0.0.1", "--port", str(site.port))
    return Start(command, {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(site.folder)})


# Its own help, and `llm_rosetta/gateway/config.py`.

ROSETTA: Final = "llm-rosetta 0.13.0"


def _rosetta(place: Path, _shared: Site) -> Gateway:
    return _named(ROSETTA, partial(_start_rosetta, place), pairs=TO_CHAT)


def _start_rosetta(place: Path, site: Site) -> Start:
    mock = {"type": "openai_chat", "api_key": UPSTREAM_KEY, "base_url": f"http://127.0.0.1:{site.mock}/v1"}
    config = {
        "providers": {"mock": mock},
        "models": {CHAT: "mock"},
        "server": {"host": "127.0.0.1", "port": site.port, "open_on_no_keys": True},
    }
    file = _written(site.folder / "config.jsonc", config)
    return Start((str(place / "bin" / "llm-rosetta-gateway"), "--config", str(file)), {"HOME": str(site.folder)})


# https://github.com/NVIDIA-NeMo/Switchyard: docs/reference/toml_schema.md, and `switchyard_rust/server.py` of the wheel

SWITCHYARD: Final = "Switchyard 0.3.0"
_ROUTES: Final = """schema_version = 1
[llm_clients.mock]
format = "openai_chat"
base_url = "http://127.0.0.1:{mock}/v1"
api_key_env = "BENCH_UPSTREAM"
[targets.chat]
id = "chat"
llm_client = "mock"
[routes.chat]
id = "chat"
type = "passthrough"
target = "chat"
"""
_SERVE: Final = """import signal, sys
from switchyard_rust.server import Server
with Server(sys.argv[1], port=int(sys.argv[2])):
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
"""


def _switchyard(place: Path, _shared: Site) -> Gateway:
    return _named(SWITCHYARD, partial(_start_switchyard, place), pairs=TO_CHAT)


def _start_switchyard(place: Path, site: Site) -> Start:
    routes = site.folder / "routes.toml"
    routes.write_text(_ROUTES.format(mock=site.mock), encoding="utf-8")
    command = (str(place / "bin" / "python"), "-c", _SERVE, str(routes), str(site.port))
    return Start(command, {"BENCH_UPSTREAM": UPSTREAM_KEY})


# https://github.com/musistudio/claude-code-router

ROUTER: Final = "claude-code-router 2.0.0"


def _router(place: Path, _shared: Site) -> Gateway:
    program = place / "@musistudio" / "claude-code-router" / "dist" / "cli.js"
    start = partial(_start_router, program)
    return _named(ROUTER, start, pairs=frozenset({("messages", "chat")}), models={CHAT: f"mock,{CHAT}"})


def _start_router(program: Path, site: Site) -> Start:
    folder = site.folder / ".claude-code-router"
    folder.mkdir(exist_ok=True)
    url = f"http://127.0.0.1:{site.mock}/v1/chat/completions"
    config = {
        "PORT": site.port,
        "APIKEY": CLIENT_KEY,
        "LOG": False,
        "NON_INTERACTIVE_MODE": True,
        "Providers": [{"name": "mock", "api_base_url": url, "api_key": UPSTREAM_KEY, "models": [CHAT]}],
        "Router": {"default": f"mock,{CHAT}"},
    }
    _written(folder / "config.json", config)
    return Start((_node(), str(program), "start"), {"HOME": str(site.folder)})


# https://github.com/Portkey-AI/gateway

PORTKEY: Final = "Portkey 1.15.2"


def _portkey(place: Path, shared: Site) -> Gateway:
    headers = ("x-portkey-provider: openai", f"x-portkey-custom-host: http://127.0.0.1:{shared.mock}/v1")
    program = place / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    pairs = frozenset({("chat", "chat")})
    return _named(PORTKEY, partial(_start_portkey, program), pairs=pairs, headers=headers)


def _start_portkey(program: Path, site: Site) -> Start:
    return Start((_node(), str(program), f"--port={site.port}", "--headless"), {"HOME": str(site.folder)})


def _node() -> str:
    return found("node") or "node"


def _written(file: Path, config: object) -> Path:
    """Write `config` as JSON, which YAML and JSON with comments are, too."""
    file.write_text(json.dumps(config, indent=1), encoding="utf-8")
    return file


PEERS: Final = (
    Peer(SWITCHYARD, partial(from_pypi, "switchyard"), _switchyard),
    Peer(ROUTER, from_npm, _router),
    Peer(ROSETTA, partial(from_pypi, "llm-rosetta"), _rosetta),
    Peer(LITELLM, partial(from_pypi, "litellm"), _litellm),
    Peer(PORTKEY, from_npm, _portkey),
)
