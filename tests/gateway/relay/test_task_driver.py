"""What the relay alone decides: when an answer is whole, and what a client hears while nobody speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import TIMEOUT, RunningGateway, config_for, read_all, read_until
from tests.gateway.scripted_backends import FIRST_EVENTS, PATHS, BlockingBackend
from tests.gateway.test_faults import ERROR_EVENTS, FINAL_CHUNK, post
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.settings import ServerSettings
from xenoglot.model.events import BlockEnded, Finished
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Callable

PINGS = {"/v1/chat/completions": b": ping\n\n", "/v1/messages": b'event: ping\ndata: {"type":"ping"}\n\n'}
ENDING = (BlockEnded(), Finished(finish=Finish(reason="stop")))
QUICK = config_for("scripted", server=ServerSettings(ping_interval=0.01))


@pytest.mark.parametrize("path", PATHS, ids=["U14-chat", "U14-messages"])
def test_a_whole_answer_that_nobody_finished_is_none(gateway_server: Callable[..., RunningGateway], path: str) -> None:
    running = gateway_server({"scripted": Scripted((*FIRST_EVENTS, BlockEnded()))}, QUICK)
    assert running.request("POST", path, PATHS[path]).status == 502


@pytest.mark.parametrize("path", PATHS, ids=["U14-chat", "U14-messages"])
def test_a_stream_that_nobody_finished_is_broken_off(gateway_server: Callable[..., RunningGateway], path: str) -> None:
    running = gateway_server({"scripted": Scripted((*FIRST_EVENTS, BlockEnded()))}, QUICK)
    with running.connect() as connection:
        connection.sendall(post(path, {**PATHS[path], "stream": True}))
        answer = read_all(connection)
    assert answer.count(ERROR_EVENTS[path]) == 1
    assert not answer.endswith(FINAL_CHUNK)
    assert b"[DONE]" not in answer
    assert b"message_stop" not in answer


@pytest.mark.parametrize("begun", [(), FIRST_EVENTS], ids=["U09-before-the-first-word", "U10-in-the-middle"])
@pytest.mark.parametrize("path", PATHS, ids=["pitfall-107-chat", "pitfall-107-messages"])
def test_silence_is_bridged(
    gateway_server: Callable[..., RunningGateway], path: str, begun: tuple[object, ...]
) -> None:
    backend = BlockingBackend(begun, ENDING) if begun else BlockingBackend((), ())  # type: ignore[arg-type]  # what `FIRST_EVENTS` holds
    running = gateway_server({"scripted": backend}, QUICK)
    with running.connect() as connection:
        connection.sendall(post(path, {**PATHS[path], "stream": True}))
        assert backend.called.wait(TIMEOUT)
        heard = read_until(connection, PINGS[path])
        heard += read_until(connection, PINGS[path])
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (b"Hel" in heard) == bool(begun)
    assert backend.cancelled.wait(TIMEOUT)
