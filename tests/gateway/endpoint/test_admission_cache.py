"""What is known of a head: it saves looking, and changes nothing of who is let in, or what is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import leakless
from tests.faults.direct_exchange import DirectExchange
from tests.gateway.process.test_reload import PATH, done, reloading
from tests.gateway.running_gateway import AccessLines, config_for
from tests.gateway.scripted_backends import CHAT, HELLO
from tests.gateway.server_on_loop import post_bytes
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import KeySettings
from xenoglot.gateway.endpoint.request_context import Admission
from xenoglot.gateway.http.application import HeadState
from xenoglot.policy.auth_throttle import AuthThrottle, ThrottleSettings, source_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.config.load import Config

ELSEWHERE = "203.0.113.9"


def keyed(*names: str) -> Config:
    """Return a configuration in which the keys in these variables count."""
    return config_for("scripted", keys=KeySettings(env=names), secrets=Secrets({"A": "key-a", "B": "key-b"}))


def gateway_for(*names: str) -> Gateway:
    return Gateway(keyed(*names), {"scripted": Scripted(HELLO)})


async def status(
    gateway: Gateway, seen: HeadState, *headers: tuple[str, str], peer: str = ELSEWHERE, path: str = PATH
) -> int:
    """Return what comes of a request with a head that is known so far."""
    asked = DirectExchange("POST", path, CHAT, headers, peer=peer)
    await gateway.handle(asked, seen)
    return asked.status


def key(value: str) -> tuple[str, str]:
    return ("x-api-key", value)


async def test_what_was_let_in_is_known_and_written_down_alike(access_lines: AccessLines) -> None:
    gateway, seen = gateway_for("A"), HeadState()
    statuses = [await status(gateway, seen, key("key-a"), ("origin", "http://a"), path=f"{PATH}/") for _ in range(2)]
    assert statuses == [403, 403]
    assert seen.entry is None
    statuses = [await status(gateway, seen, key("key-a"), path=f"{PATH}/") for _ in range(2)]
    entry = seen.entry
    assert isinstance(entry, Admission)
    assert (statuses, entry.route, entry.client.owner != "") == ([200, 200], PATH, True)
    lines = [{**access_lines.next(), "time": "", "request": "", "ttfb_ms": 0, "total_ms": 0} for _ in range(4)]
    assert lines[2] == lines[3]


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        pytest.param([key("key-b")], 401, id="wrong-key"),
        pytest.param([], 401, id="no-key"),
        pytest.param([key("key-a"), key("key-b")], 400, id="two-keys"),
        pytest.param([key("key-a"), ("content-type", "text/plain")], 415, id="C19-media"),
        pytest.param([key("key-a"), ("host", "b")], 400, id="two-hosts"),
        pytest.param([key("key-a"), ("upgrade", "websocket")], 426, id="upgrade"),
        pytest.param([key("key-a"), ("x-xenoglot-hops", "5")], 400, id="circle"),
    ],
)
async def test_what_was_refused_is_looked_at_anew(headers: Sequence[tuple[str, str]], told: int) -> None:
    gateway, seen = gateway_for("A"), HeadState()
    assert [await status(gateway, seen, *headers) for _ in range(3)] == [told] * 3
    assert seen.entry is None


async def test_hops_are_those_of_the_head() -> None:
    gateway, seen = gateway_for("A"), HeadState()
    assert [await status(gateway, seen, key("key-a"), ("x-xenoglot-hops", "3")) for _ in range(2)] == [200, 200]
    assert isinstance(seen.entry, Admission)
    assert seen.entry.hops == 3


async def test_k14_another_gateway_looks_anew() -> None:
    seen = HeadState()
    gateways = [gateway_for("A", "B"), gateway_for("A"), gateway_for("B")]
    assert [await status(gateway, seen, key("key-b")) for gateway in gateways] == [200, 401, 200]


async def test_s16_patience_with_a_source_is_asked_each_time() -> None:
    gateway, seen = gateway_for("A"), HeadState()
    gateway.auth.clock = float  # time stands
    assert await status(gateway, seen, key("key-a")) == 200
    gateway.auth.throttle = AuthThrottle(ThrottleSettings(burst=1))
    source = source_of(ELSEWHERE)
    assert source is not None
    gateway.auth.throttle.refused(source, 0.0)
    assert await status(gateway, seen, key("key-a")) == 429
    gateway.auth.throttle = AuthThrottle()
    assert await status(gateway, seen, key("key-a")) == 200


@leakless
async def test_k14_a_key_is_revoked_on_a_connection_that_goes_on() -> None:
    async with reloading(Scripted(HELLO), keyed("A", "B")) as (stage, told, reloader):
        client = await stage.connect()
        answers = []
        for names in (("A", "B"), ("A", "B"), ("A",), ("A",), ("A", "B")):
            told.config = keyed(*names)
            await done(reloader)
            for said in (CHAT, {**CHAT, "user": "another length"}):
                client.send(post_bytes(PATH, said, "x-api-key: key-b"))
                head = await client.read_until(b"\r\n\r\n")
                size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await client.reader.readexactly(size)
                answers.append(head[9:12])
    assert answers == [b"200"] * 4 + [b"401"] * 4 + [b"200"] * 2
