"""What `xenoglot serve` prints when it listens: one line for programs, a panel for a person at a terminal."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from xenoglot.backends.redaction import for_log
from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.config.local_models import EMBEDDING
from xenoglot.gateway.routing.router import ANY

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from xenoglot.gateway.app import Gateway
    from xenoglot.gateway.routing.router import Router

ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104  compared, not bound
MOST_MODELS: Final = 8
"""Models that the panel lists."""

PROMPT: Final = "Hello!"


def greeting(gateway: Gateway, listener: socket.socket) -> str:
    """Return the one line with the gateway's URL and models; the URL is its last word."""
    host, port, *_ = listener.getsockname()
    names = [*gateway.router.names, *(rule.name for rule in gateway.router.patterns)]
    served = ", ".join("every model" if name == "*" else name for name in dict.fromkeys(names))
    return f"Xenoglot serves {served} at {_url(host, port)}"


def panel(gateway: Gateway, listener: socket.socket) -> str:
    """Return several lines: base URLs for clients, models, keys, and a request to try."""
    host, port, *_ = listener.getsockname()
    url = _url(("127.0.0.1", "::1")[ANY_ADDRESS.index(host)] if host in ANY_ADDRESS else host, port)
    rows = [
        ("OpenAI clients", f"{url}/v1"),
        ("Anthropic clients", url),
        *(("Models" if index == 0 else "", text) for index, text in enumerate(_models(gateway))),
        ("API key", _key(gateway)),
        *((("Console", f"{url}/console"),) if _has_console(gateway) else ()),
    ]
    if host in ANY_ADDRESS:
        rows.insert(0, ("Addresses", "all of this machine"))
    width = max(len(name) for name, _ in rows)
    table = "\n".join(f"  {name:{width}}  {for_log(text)}".rstrip() for name, text in rows)
    return f"Xenoglot is listening on {url}\n\n{table}\n\nTry:\n\n{_example(gateway, url)}\n\nStop with Ctrl-C.\n"


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _models(gateway: Gateway) -> Iterator[str]:
    router = gateway.router
    names = [f"{name} (embeddings)" if _embeds(router, name) else name for name in router.names]
    if names:
        more = len(names) - MOST_MODELS
        yield ", ".join([*names[:MOST_MODELS], *([f"and {more} more"] if more > 0 else [])])
    for plan in router.patterns[:MOST_MODELS]:
        route = plan.route
        models = "other names" if plan.name == "*" and names else "all names" if plan.name == "*" else plan.name
        if route.model == ANY:
            yield f"{models}: sent to {route.backend} unchanged"
        else:
            yield f"{models}: answered by {route.model}"


def _key(gateway: Gateway) -> str:
    if not gateway.config.needs_key:
        return "not needed; any value works"
    if gateway.config.keys.env:
        return f"required: a key in ${gateway.config.keys.env[0]}"
    if gateway.config.keys.store:
        return "required: create one with `xenoglot keys create`"
    return "required: the key of a tenant"


def _has_console(gateway: Gateway) -> bool:
    """Whether `/console` is on, and what it needs is installed."""
    config, keyring = gateway.config, gateway.auth.keyring
    if config.server.console is False or find_spec("jinja2") is None:
        return False
    if not keyring.needs_key("view"):
        return config.server.loopback
    return keyring.has_admins and config.store_url != "off"


def _example(gateway: Gateway, url: str) -> str:
    """Return a command that works when it is pasted: a chat if a model is known, else the list of models."""
    header = ""
    if gateway.config.keys.env:
        header = f' -H "Authorization: Bearer ${gateway.config.keys.env[0]}"'
    elif gateway.config.needs_key:
        header = ' -H "Authorization: Bearer YOUR_KEY"'
    model = _known_model(gateway.router)
    if model is None:
        return f"  curl {url}/v1/models{header}"
    body = encode_json({"model": model, "messages": [{"role": "user", "content": PROMPT}]}).decode()
    content = '-H "Content-Type: application/json"'
    return f"  curl {url}/v1/chat/completions{header} \\\n    {content} \\\n    -d {shlex.quote(body)}"


def _embeds(router: Router, name: str) -> bool:
    route = router.resolve(name)
    return route is not None and route.backend == EMBEDDING


def _known_model(router: Router) -> str | None:
    named = next((name for name in router.names if not _embeds(router, name)), None)
    return named or next(
        (plan.route.model for plan in router.patterns if plan.name == "*" and plan.route.model != ANY), None
    )
