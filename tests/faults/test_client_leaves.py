"""Clients that leave, wherever their request stands: the upstream is let go, and what was used is written down once.

C01 to C04. The harness looks after each case that no task, connection or place is left.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.cases import BOTH, gone, mode_of
from tests.faults.house import House, asking, fine, push, stream, well, within_reason
from tests.faults.wires import DIALECTS, HELLO, error_body
from xenoglot.testing.raw_http import MessageReader
from xenoglot.testing.script import Body, Hang, Respond, ResponseHead, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from tests.faults.house import Caller
    from xenoglot.model.json import JSONObject
    from xenoglot.testing.script import Step

every_pair = pytest.mark.parametrize(("client", "upstream"), [(client, up) for client in DIALECTS for up in DIALECTS])
GO_ON = "go on"


async def left(house: House, caller: Caller, how: str = "reset") -> JSONObject:
    """Have a client leave; return the line in the log once everything is over."""
    if how == "reset":
        caller.transport.abort()
    else:
        caller.transport.close()
    await gone(house)
    await within_reason(lambda: bool(house.lines.lines), "the request is written down")
    return house.line()


@every_pair
@pytest.mark.parametrize("streamed", [False, True], ids=["C03-whole", "C01-streamed"])
def test_before_the_upstreams_head(house: House, client: str, upstream: str, *, streamed: bool) -> None:
    async def scene() -> None:
        house.upstream.script((Hang(),))
        caller = await house.call(client, f"{upstream}-small", streamed=streamed)
        await house.asked()
        line = await left(house, caller)
        assert (line["status"], line["failure"], line["usage"], line["tries"]) == (499, "cancelled", None, 1)
        assert len(house.upstream.requests) == 1

    house.play(scene())


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("size", [1_000, 70_000, 140_000, 1_000_000])
def test_c01_however_much_the_client_has_said(house: House, size: int, client: str) -> None:
    """A body that was there before anybody asked for it is as good as one that was waited for."""

    async def scene() -> None:
        house.upstream.script((Hang(),))
        path, body = asking(client, "chat-small", "x" * size, streamed=True)
        caller = await house.send(path, json.dumps(body).encode())
        await house.asked()
        line = await left(house, caller)
        assert (line["failure"], line["tries"]) == ("cancelled", 1)

    house.play(scene())


@pytest.mark.parametrize("size", [1_000, 70_000, 140_000, 1_000_000])
def test_c27_however_much_was_said_before(house: House, size: int) -> None:
    """The next request on the connection is read."""

    async def scene() -> None:
        house.upstream.script(ScriptRule(steps=well("chat", streamed=False)))
        path, body = asking("chat", "chat-small", "x" * size, streamed=False)
        data = json.dumps(body).encode()
        caller = await house.send(path, data)
        await within_reason(lambda: caller.over, "the first is answered")
        caller.reader = MessageReader("response")
        key = house.canaries.client_key
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\ncontent-length: {len(data)}\r\n\r\n"
        caller.transport.write(head.encode() + data)
        fine("chat", await house.finish(caller), streamed=False)

    house.play(scene())


def part_of(upstream: str, where: str) -> list[bytes]:
    """The frames up to some place in a stream."""
    wire = HELLO[upstream]
    begun = list(wire.begun)
    return {"first": begun, "middle": [*begun, *wire.more], "last": [*begun, *wire.more, *wire.ended]}[where]


@every_pair
@pytest.mark.parametrize("how", ["reset", "fin"])
@pytest.mark.parametrize("where", ["C02-first", "C02-middle", "C02-last"])
def test_in_the_middle_of_a_stream(house: House, where: str, how: str, client: str, upstream: str) -> None:
    async def scene() -> None:
        place = where.removeprefix("C02-")
        ending: tuple[Step, ...] = (Hang(),)
        house.upstream.script(stream(upstream, *part_of(upstream, place), ending=ending))
        caller = await house.call(client, f"{upstream}-small", streamed=True)
        await within_reason(lambda: b"Hel" in caller.reader.raw, "the first word comes")
        await within_reason(lambda: place == "first" or b"lo" in caller.reader.raw, "the second word comes")
        await within_reason(lambda: place != "last" or ended_or_silent(house, upstream), "the end comes")
        line = await left(house, caller, how)
        assert len(house.upstream.requests) == 1
        if line["failure"] is not None:  # a wire without a mark is at its end where that is told
            assert (line["failure"], line["status"]) == ("cancelled", 200)
        assert_usage(line, upstream, place)

    house.play(scene())


def ended_or_silent(house: House, upstream: str) -> bool:
    """Whether the upstream has sent all that the script has."""
    sent = sum(len(frame) for frame in part_of(upstream, "last"))
    return all(connection.sent_bytes >= sent for connection in house.upstream.connections)


def assert_usage(line: JSONObject, upstream: str, place: str) -> None:
    """What was told by then is written down; nothing is made up."""
    usage = line["usage"]
    if upstream in ("messages", "gemini"):  # they count from the beginning
        assert isinstance(usage, dict)
        assert usage["input_tokens"] == 5
    elif place != "last" or upstream == "responses":
        assert usage is None
    if place == "last" and upstream != "responses":
        assert isinstance(usage, dict)
        assert (usage["input_tokens"], usage["output_tokens"]) == (5, 2)


@every_pair
def test_c03_while_a_whole_answer_comes(house: House, client: str, upstream: str) -> None:
    async def scene() -> None:
        wire = HELLO[upstream]
        head = ResponseHead(200, (("content-type", "application/json"),), chunked=False, length=len(wire.whole))
        house.upstream.script((head, Body(wire.whole[:20]), Hang()))
        caller = await house.call(client, f"{upstream}-small", streamed=False)
        await house.asked()
        await within_reason(lambda: bool(house.upstream.connections[0].sent_bytes), "half of the answer is sent")
        line = await left(house, caller)
        assert (line["status"], line["failure"], line["usage"]) == (499, "cancelled", None)

    house.play(scene())


class Patient(House):
    """Tries three times with long waits; `two-small` has two targets, and `few-small` one place and a queue."""

    def _config(self) -> JSONObject:
        config = super()._config()
        config["upstreams"]["few"] = config["upstreams"]["chat"] | {"limits": {"concurrency": 1, "queue_seconds": 90}}
        targets = [{"upstream": name, "model": "small", "tier": tier} for tier, name in enumerate(("chat", "messages"))]
        config["models"] += [{"name": "few-*", "upstream": "few"}, {"name": "two-small", "targets": targets}]
        return config


@pytest.fixture(scope="module")
def patient() -> Generator[House]:
    """Give such a house, whose chance is always the same."""
    with ExitStack() as stack:
        house = Patient(retry={"attempts": 3, "base": 8.0, "cap": 8.0}).start(stack)
        house.gateway.dispatcher.chance = lambda: 0.9
        yield house


DOWN = Respond(503, (("content-type", "application/json"), ("connection", "close")), error_body("chat", "down"))
every_client = pytest.mark.parametrize("client", DIALECTS)
each_mode = pytest.mark.parametrize("streamed", BOTH, ids=mode_of)


@every_client
@each_mode
def test_c04_while_another_try_is_waited_for(patient: House, client: str, *, streamed: bool) -> None:
    async def scene() -> None:
        patient.upstream.script((DOWN,))
        caller = await patient.call(client, "chat-small", streamed=streamed)
        await patient.asked()
        await push(5.0)
        assert (len(patient.upstream.requests), caller.over) == (1, False)
        line = await left(patient, caller)
        await push(60.0)
        assert len(patient.upstream.requests) == 1
        assert (line["failure"], line["tries"]) == ("cancelled", 1)

    patient.play(scene())


@every_client
@each_mode
def test_c04_while_a_place_is_waited_for(patient: House, client: str, *, streamed: bool) -> None:
    async def scene() -> None:
        patient.upstream.script(ScriptRule(steps=(WaitEvent(GO_ON), *well("chat", streamed=streamed))))
        first = await patient.call(client, "few-small", streamed=streamed)
        await patient.asked()
        second, third = [await patient.call(client, "few-small", streamed=streamed) for _ in range(2)]
        await push(5.0)
        second.transport.abort()
        await within_reason(lambda: len(patient.lines.lines) == 1, "the second is over")
        assert patient.line()["tries"] == 0
        patient.upstream.release(GO_ON)
        for caller in (first, third):
            fine(client, await patient.finish(caller), streamed=streamed)
        assert len(patient.upstream.requests) == 2

    patient.play(scene())


@every_client
@each_mode
@pytest.mark.parametrize("asked", [1, 2])
def test_c04_while_one_of_two_targets_is_asked(patient: House, client: str, asked: int, *, streamed: bool) -> None:
    async def scene() -> None:
        steps: Iterator[Sequence[Step]] = iter([(Hang(),)] if asked == 1 else [(DOWN,), (Hang(),)])
        patient.upstream.script(ScriptRule(steps=lambda _: next(steps)))
        caller = await patient.call(client, "two-small", streamed=streamed)
        await patient.asked(asked)
        line = await left(patient, caller)
        await push(60.0)
        assert len(patient.upstream.requests) == asked
        assert (line["failure"], line["tries"]) == ("cancelled", asked)

    patient.play(scene())


@every_client
@each_mode
def test_c01_the_place_is_given_back(patient: House, client: str, *, streamed: bool) -> None:
    async def scene() -> None:
        steps = iter([(Hang(),), well("chat", streamed=streamed)])
        patient.upstream.script(ScriptRule(steps=lambda _: next(steps)))
        caller = await patient.call(client, "few-small", streamed=streamed)
        await patient.asked()
        await left(patient, caller)
        fine(client, await patient.ask(client, "few-small", streamed=streamed), streamed=streamed)

    patient.play(scene())
