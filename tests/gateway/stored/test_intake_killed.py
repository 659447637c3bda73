"""A gateway that is killed: what it had finished is there for the next, and what it was making has failed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from openai import OpenAI

from tests.architecture.tree import ROOT
from tests.gateway.scripted_backends import HELLO
from tests.gateway.stored.test_intake import client_of, turns_of
from xenoglot.backends.scripted import Scripted
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.running_gateway import RunningGateway


def test_nothing_finished_is_lost(gateway_server: Callable[..., RunningGateway], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.gateway.stored.gateway_program", str(tmp_path / "state.db")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="nobody's", max_retries=0) as client:
            making = client.responses.create(model="m", input="Count", background=True)
            answer = client.responses.create(model="m", input="Hi")
            process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    scripted = Scripted(HELLO)
    running = gateway_server({"scripted": scripted}, store=SQLite(tmp_path / "state.db"))
    keeper = running.gateway.keeper
    assert keeper is not None
    with client_of(running) as client:
        assert client.responses.retrieve(answer.id) == answer
        client.responses.create(model="m", input="And?", previous_response_id=answer.id)
        assert turns_of(scripted.requests[0]) == [("user", ["Hi"]), ("assistant", ["Hello"]), ("user", ["And?"])]
        assert client.responses.retrieve(making.id).status in ("queued", "in_progress")
        keeper.now = lambda: time.time() + 60
        assert client.responses.retrieve(making.id).status == "failed"
