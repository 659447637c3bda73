"""Bodies with too many values or turns: refused in the client's words, and before they are made (R50, C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import Backend
from xenoglot.codec.requests.checks import check_lists
from xenoglot.dialect_registry import get, names
from xenoglot.gateway.config.settings import ServerSettings
from xenoglot.gateway.endpoint import request_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.model.json import JSON

MOST = 10_000
SERVER = ServerSettings(body_values=MOST, drain_seconds=0.0)
TOLD = f"the JSON holds more than {MOST} values (each item, member, list and object is one): send fewer at once"
FEW = b'{"model":"m","x":[%b]}' % b",".join([b"0"] * 5000)
MANY = {
    "small": b'{"model":"m","x":[%b]}' % b",".join([b"0"] * 11_000),
    "large": b'{"model":"m","x":[%b]}' % b",".join([b'{"text":"a, longer"}'] * 11_000),
}


def paths() -> list[str]:
    """Return where each dialect's requests are posted, and other endpoints that take JSON."""
    asked = [get(name).path.replace("{model}", "m") for name in names()]
    return [*dict.fromkeys(asked), "/v1/embeddings", "/v1/messages/count_tokens", "/v1/parse", "/api/show"]


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in MANY.items()])
@pytest.mark.parametrize("path", paths())
def test_findings_3_too_many_values_are_refused(
    gateway_server: Callable[..., RunningGateway], path: str, body: bytes
) -> None:
    running = gateway_server({"a": Backend()}, config_for("a", server=SERVER))
    answer = running.request("POST", path, body, {"content-type": "application/json"})
    assert (answer.status, TOLD in answer.body.decode()) == (400, True)
    few = running.request("POST", path, FEW, {"content-type": "application/json"})
    assert TOLD not in few.body.decode()


@pytest.mark.parametrize(
    ("path", "key", "turn"),
    [
        ("/v1/chat/completions", "messages", {"role": "user", "content": "hi"}),
        ("/v1/messages", "messages", {"role": "user", "content": "hi"}),
        ("/v1/responses", "input", {"role": "user", "content": "hi"}),
        ("/v1beta/models/m:generateContent", "contents", {"role": "user", "parts": [{"text": "hi"}]}),
        ("/api/chat", "messages", {"role": "user", "content": "hi"}),
    ],
)
def test_findings_3_too_many_turns_are_refused_before_they_are_read(
    gateway_server: Callable[..., RunningGateway], monkeypatch: pytest.MonkeyPatch, path: str, key: str, turn: JSON
) -> None:
    running = gateway_server({"a": Backend()}, config_for("a"))
    checked: list[JSON] = []

    def checking(body: JSON) -> None:
        checked.append(key)
        check_lists(body)

    monkeypatch.setattr(request_context, "check_lists", checking)
    answer = running.request(
        "POST", path, {"model": "m", "max_tokens": 9, key: [turn] * 100_001}, {"content-type": "application/json"}
    )
    assert (answer.status, f"{key}: at most 100000 are taken, not 100001" in answer.body.decode()) == (400, True)
    assert checked == [key]
