"""One address, several processes: clients are shared out, and nobody else gets in."""

import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.process import worker
from xenoglot.gateway.process.worker import line_at, reserve

CLIENTS = 64

only_apart = pytest.mark.skipif(not worker.APART, reason="other systems share nothing out")


def accepted(line: socket.socket) -> int:
    """Take all who wait; tell how many they were."""
    line.settimeout(0)
    number = 0
    with suppress(BlockingIOError):
        while True:
            line.accept()[0].close()
            number += 1
    return number


def come(where: Sequence[object], exits: ExitStack) -> None:
    """Have clients come."""
    for _ in range(CLIENTS):
        exits.enter_context(socket.create_connection((str(where[0]), int(str(where[1])))))


@only_apart
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_clients_are_shared_out(host: str) -> None:
    with ExitStack() as exits:
        reserved = exits.enter_context(reserve(host, 0))
        lines = [exits.enter_context(line_at(reserved.dup())) for _ in range(2)]
        come(reserved.getsockname(), exits)
        taken = [accepted(line) for line in lines]
    assert sum(taken) == CLIENTS
    assert min(taken) >= CLIENTS // 8  # one run in 10 million has fewer


@only_apart
def test_where_nobody_listens_clients_are_refused() -> None:
    with reserve("127.0.0.1", 0) as reserved, pytest.raises(ConnectionRefusedError):
        socket.create_connection(reserved.getsockname())


@only_apart
def test_a_line_that_closes_leaves_all_to_the_others() -> None:
    with ExitStack() as exits:
        reserved = exits.enter_context(reserve("127.0.0.1", 0))
        first, second = (exits.enter_context(line_at(reserved.dup())) for _ in range(2))
        first.close()
        come(reserved.getsockname(), exits)
        assert accepted(second) == CLIENTS


@pytest.mark.parametrize("apart", [pytest.param(True, marks=only_apart), False])
def test_nobody_else_may_share_the_address(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    monkeypatch.setattr(worker, "APART", apart)
    with (
        reserve("127.0.0.1", 0) as reserved,
        line_at(reserved.dup() if apart else reserved) as line,
        pytest.raises(ConfigurationError, match="Address already in use"),
    ):
        reserve("127.0.0.1", line.getsockname()[1])


def test_elsewhere_all_take_from_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "APART", False)
    with ExitStack() as exits:
        reserved = exits.enter_context(reserve("127.0.0.1", 0))
        assert line_at(reserved) is reserved
        come(reserved.getsockname(), exits)
        assert accepted(reserved) == CLIENTS
