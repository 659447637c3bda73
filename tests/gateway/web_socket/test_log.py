"""What the log has of requests over a WebSocket: the line of each is that of a posted one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from websockets.sync.client import connect

from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, BlockingBackend
from tests.gateway.web_socket.socket_client import ENDS, created
from xenoglot.backends.scripted import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines, RunningGateway
    from xenoglot.model.json import JSONObject

OWN = ("time", "request", "ttfb_ms", "total_ms", "first_token_ms")


def shared(line: JSONObject) -> JSONObject:
    """Return what two requests have in common."""
    return {name: value for name, value in line.items() if name not in OWN}


def test_each_request_has_the_line_of_a_posted_one(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines
) -> None:
    gateway = gateway_server({"scripted": Scripted(HELLO)})
    event = created()
    posted = {name: value for name, value in event.items() if name != "type"} | {"stream": True, "store": True}
    assert gateway.request("POST", "/v1/responses", posted, {"content-type": "application/json"}).status == 200
    line = shared(access_lines.next())
    with connect(gateway.url.replace("http", "ws") + "/v1/responses") as socket:
        handshake = access_lines.next()
        assert (handshake["method"], handshake["route"], handshake["status"]) == ("GET", "/v1/responses", 101)
        for _ in range(2):
            socket.send(json.dumps({**event, "store": True}))
            while json.loads(socket.recv())["type"] not in ENDS:
                pass
            assert shared(access_lines.next()) == line


def test_a_request_whose_client_left_is_cancelled(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines
) -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    gateway = gateway_server({"scripted": backend})
    with connect(gateway.url.replace("http", "ws") + "/v1/responses") as socket:
        access_lines.next()
        socket.send(json.dumps(created()))
        socket.recv()
    assert backend.cancelled.wait(30)
    assert access_lines.next()["failure"] == "cancelled"
