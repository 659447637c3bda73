"""One request is one attempt at a time, and one answer; nothing that a model asks for is run; a full disk stops nobody.

K05, K18, K20 and K24.
"""

from __future__ import annotations

import asyncio
import errno
import io
import json
import logging
import os
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.cases import BOTH, mode_of
from tests.faults.house import House, asking, fine, stream, well, whole
from tests.faults.wires import DIALECTS, HELLO, TALKERS, error_body
from xenoglot.testing.canned import answers
from xenoglot.testing.script import Hang, Reset, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.model.json import JSONObject
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

every_client = pytest.mark.parametrize("client", DIALECTS)
each_mode = pytest.mark.parametrize("streamed", BOTH, ids=mode_of)

FAILURES: dict[str, Sequence[Step]] = {
    "refuses": whole(error_body("chat", "down"), 503),
    "breaks-off": (Reset(),),
    "breaks-while-held-back": stream("chat", *HELLO["chat"].begun, ending=(Reset(),)),
    "falls-silent-in-an-error": stream("chat", *HELLO["chat"].begun, HELLO["chat"].error, ending=(Hang(),)),
}


class Two(House):
    """Has two targets for `two-small`, and holds the beginning of a stream back."""

    def _config(self) -> JSONObject:
        config = super()._config()
        targets = [{"upstream": name, "model": "small", "tier": tier} for tier, name in enumerate(("chat", "messages"))]
        held = {"seconds": 0.5, "bytes": 65_536}
        config["models"].append({"name": "two-small", "targets": targets, "buffer": held})
        return config


@pytest.fixture(scope="module")
def house() -> Generator[House]:
    """Give such a house."""
    with ExitStack() as stack:
        yield Two().start(stack)


@every_client
@pytest.mark.parametrize("how", [pytest.param(name, id=f"K05-{name}") for name in FAILURES])
def test_of_two_targets_one_is_asked_at_a_time(house: House, how: str, client: str) -> None:
    """Nobody is asked beside another: the first is let go before the second hears of it. What counts is told once."""
    left: list[bool] = []

    def steps(received: Received) -> Sequence[Step]:
        if b'"system"' in received.body or "messages" in received.path:
            left.append(house.upstream.connections[0].closed is not None or how == "refuses")
            return well("messages", streamed=True)
        return FAILURES[how]

    async def scene() -> None:
        house.upstream.script(ScriptRule(steps=steps))
        answer = await house.ask(client, "two-small", streamed=True)
        fine(client, answer, streamed=True)
        assert [request.path for request in house.upstream.requests] == ["/v1/chat/completions", "/v1/messages"]
        line = house.line()
        usage = line["usage"]
        assert isinstance(usage, dict)
        assert (usage["input_tokens"], usage["output_tokens"]) == (5, 2)
        assert (line["tries"], line["finish"], line["failure"]) == (2, "stop", None)
        assert len(left) == 1

    house.play(scene())


@every_client
@each_mode
def test_k24_equal_questions_are_each_asked(house: House, client: str, *, streamed: bool) -> None:
    """No answer is kept for another request, so nobody gets what another was told."""

    async def scene() -> None:
        house.upstream.script(ScriptRule(steps=(WaitEvent("go on"), *well("chat", streamed=streamed))))
        callers = [await house.call(client, "chat-small", streamed=streamed) for _ in range(5)]
        await house.asked(5)
        house.upstream.release("go on")
        for caller in callers:
            fine(client, await house.finish(caller), streamed=streamed)
        fine(client, await house.ask(client, "chat-small", streamed=streamed), streamed=streamed)
        assert len(house.upstream.requests) == 6

    house.play(scene())


def _never(*_arguments: object, **_more: object) -> None:
    raise AssertionError("something is run")


@each_mode
@pytest.mark.parametrize("client", TALKERS)
@pytest.mark.parametrize("upstream", TALKERS)
def test_k20_what_a_model_calls_is_run_by_nobody_here(
    house: House, monkeypatch: pytest.MonkeyPatch, client: str, upstream: str, *, streamed: bool
) -> None:
    """The loop is the client's: a call is its answer, however the model goes on calling; no endpoint runs anything."""
    for where, name in (
        (subprocess, "Popen"),
        (asyncio, "create_subprocess_exec"),
        (asyncio, "create_subprocess_shell"),
    ):
        monkeypatch.setattr(where, name, _never)

    async def scene() -> None:
        made = answers(upstream, text=(), tool=("bash", '{"command": "touch /tmp/never"}'))
        closing = (("connection", "close"),)
        steps = made.streamed(headers=closing) if streamed else made.once(headers=closing)
        house.upstream.script(ScriptRule(steps=steps))
        answer = await house.ask(client, f"{upstream}-small", streamed=streamed)
        assert (answer.status, answer.complete) == (200, True)
        assert b"bash" in answer.body
        assert len(house.upstream.requests) == 1
        assert house.line()["finish"] == "tool_calls"

    house.play(scene())


class Full(io.TextIOBase):
    """A file on a disk that is full."""

    def write(self, _text: str) -> int:
        """Fail."""
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@every_client
@each_mode
def test_k18_a_full_disk_under_the_log_stops_nobody(
    house: House, capsys: pytest.CaptureFixture[str], client: str, *, streamed: bool
) -> None:
    loggers = [logging.getLogger(name) for name in ("xenoglot.access", "xenoglot.gateway")]

    async def scene() -> None:
        house.upstream.script(well("chat", streamed=streamed))
        path, body = asking(client, "chat-small", "Hi", streamed=streamed)
        answer = await house.finish(await house.send(path, json.dumps(body).encode()))
        fine(client, answer, streamed=streamed)

    handler = logging.StreamHandler(Full())
    for logger in loggers:
        logger.addHandler(handler)
    try:
        house.play(scene())
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    assert "No space left on device" in capsys.readouterr().err
