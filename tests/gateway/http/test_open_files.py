"""The limit on open files: what is raised, what is fitted to it, and a gateway with more clients than descriptors."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.running_gateway import TIMEOUT, read_all
from tests.gateway.server_on_loop import HEALTHY, post_bytes
from xenoglot.gateway.http import process_resources
from xenoglot.gateway.http.process_resources import RESERVE, fit_connections, needed

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[3]
PROGRAM = """
import resource, sys
from xenoglot.python_gateway import serve
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
serve(lambda prompt: "Hello", name="m", prompts=True, port=0)
"""
CLOSING = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ASKED = post_bytes(
    "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, "Connection: close"
)


@given(most=st.integers(1, 10_000), used=st.integers(0, 200), limit=st.integers(16, 30_000) | st.none())
def test_findings_2_connections_are_fitted_to_the_descriptors(most: int, used: int, limit: int | None) -> None:
    number = fit_connections(most, used, limit)
    assert 1 <= number <= most
    if limit is None or needed(most, used) <= limit:
        assert number == most
    elif number > 1:
        assert used + 2 * number + min(RESERVE, (limit - used) // 4) <= limit


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "set_to", "returned"),
    [
        pytest.param(1024, 20_000, 8_400, (8_400, 20_000), 8_400, id="as-far-as-wanted"),
        pytest.param(1024, 4_096, 8_400, (4_096, 4_096), 4_096, id="as-far-as-the-hard-limit"),
        pytest.param(1024, resource.RLIM_INFINITY, 8_400, (8_400, resource.RLIM_INFINITY), 8_400, id="no-hard-limit"),
        pytest.param(20_000, 20_000, 8_400, None, 20_000, id="enough"),
        pytest.param(resource.RLIM_INFINITY, resource.RLIM_INFINITY, 8_400, None, None, id="no-limit"),
    ],
)
def test_findings_2_the_soft_limit_is_raised(  # noqa: PLR0913, PLR0917  a row
    monkeypatch: pytest.MonkeyPatch,
    soft: int,
    hard: int,
    wanted: int,
    set_to: tuple[int, int] | None,
    returned: int | None,
) -> None:
    changes: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: changes.append(limits))
    assert process_resources.raise_limit(wanted) == returned
    assert changes == ([] if set_to is None else [set_to])


def test_a_limit_that_cannot_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 20_000))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert process_resources.raise_limit(8_400) == 256


def test_without_such_limits_all_connections_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_resources, "resource", None)
    assert process_resources.raise_limit(8_400) is None


@pytest.fixture(params=[pytest.param((96, 96), id="hard"), pytest.param((64, 160), id="soft")])
def port(request: pytest.FixtureRequest) -> Generator[int]:
    """Start a gateway that may open so few files; give its port."""
    command = [sys.executable, "-c", PROGRAM, *map(str, request.param)]
    paths = os.pathsep.join(sys.path)
    with subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": paths}, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(b":")[2])
        finally:
            process.terminate()
            _, log = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert b"server.connections.most is" in log
    assert b"Traceback" not in log


def test_findings_2_more_idle_clients_than_descriptors_shut_nobody_out(port: int) -> None:
    address = ("127.0.0.1", port)
    with ExitStack() as stack:
        for number in range(400):
            idle = stack.enter_context(socket.create_connection(address, timeout=TIMEOUT))
            if number % 2:
                idle.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: ")
        for asked in (CLOSING, ASKED) * 5:
            client = stack.enter_context(socket.create_connection(address, timeout=TIMEOUT))
            client.sendall(asked)
            head, _, answer = read_all(client).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            if asked is CLOSING:
                assert answer == HEALTHY
            else:
                assert json.loads(answer)["choices"][0]["message"]["content"] == "Hello"
