"""Clients that leave, wherever their request stands: the upstream is let go, and what was used is written down once.

C01 to C04. The harness looks after each case that no task, connection or place is left.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_completed
from tests.faults.client_requests import client_request
from tests.faults.fault_cases import BOTH, mode_of, wait_until_disconnected
from tests.faults.harness import GatewayHarness
from tests.faults.manual_clock import advance, wait_until
from tests.faults.upstream_steps import streamed_response, valid_response
from tests.faults.wire_responses import ALL_DIALECTS, HELLO, error_body
from xenoglot.testing.raw_http import MessageReader
from xenoglot.testing.script import Body, Hang, Respond, ResponseHead, ScriptRule, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from tests.faults.raw_client import RawClient
    from xenoglot.model.json import JSONObject
    from xenoglot.testing.script import Step

every_pair = pytest.mark.parametrize(
    ("client", "upstream"), [(client, up) for client in ALL_DIALECTS for up in ALL_DIALECTS]
)
GO_ON = "go on"


async def disconnect(harness: GatewayHarness, raw_client: RawClient, how: str = "reset") -> JSONObject:
    """Have a client leave; return the line in the log once everything is over."""
    if how == "reset":
        raw_client.transport.abort()
    else:
        raw_client.transport.close()
    await wait_until_disconnected(harness)
    await wait_until(lambda: bool(harness.access_log.lines), "the request is written down")
    return harness.access_log_line()


@every_pair
@pytest.mark.parametrize("streamed", [False, True], ids=["C03-whole", "C01-streamed"])
def test_before_the_upstreams_head(harness: GatewayHarness, client: str, upstream: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        harness.upstream.script((Hang(),))
        raw_client = await harness.start_request(client, f"{upstream}-small", streamed=streamed)
        await harness.wait_for_upstream_requests()
        line = await disconnect(harness, raw_client)
        assert (line["status"], line["failure"], line["usage"], line["tries"]) == (499, "cancelled", None, 1)
        assert len(harness.upstream.requests) == 1

    harness.run(scenario())


@pytest.mark.parametrize("client", ALL_DIALECTS)
@pytest.mark.parametrize("size", [1_000, 70_000, 140_000, 1_000_000])
def test_c01_however_much_the_client_has_said(harness: GatewayHarness, size: int, client: str) -> None:
    """A body that was there before anybody asked for it is as good as one that was waited for."""

    async def scenario() -> None:
        harness.upstream.script((Hang(),))
        path, body = client_request(client, "chat-small", "x" * size, streamed=True)
        raw_client = await harness.post(path, json.dumps(body).encode())
        await harness.wait_for_upstream_requests()
        line = await disconnect(harness, raw_client)
        assert (line["failure"], line["tries"]) == ("cancelled", 1)

    harness.run(scenario())


@pytest.mark.parametrize("size", [1_000, 70_000, 140_000, 1_000_000])
def test_c27_however_much_was_said_before(harness: GatewayHarness, size: int) -> None:
    """The next request on the connection is read."""

    async def scenario() -> None:
        harness.upstream.script(ScriptRule(steps=valid_response("chat", streamed=False)))
        path, body = client_request("chat", "chat-small", "x" * size, streamed=False)
        data = json.dumps(body).encode()
        raw_client = await harness.post(path, data)
        await wait_until(lambda: raw_client.finished, "the first is answered")
        raw_client.reader = MessageReader("response")
        key = harness.canaries.client_key
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\ncontent-length: {len(data)}\r\n\r\n"
        raw_client.transport.write(head.encode() + data)
        assert_completed("chat", await harness.read_response(raw_client), streamed=False)

    harness.run(scenario())


def frames_up_to(upstream: str, where: str) -> list[bytes]:
    """The frames up to some place in a stream."""
    wire = HELLO[upstream]
    begun = list(wire.first_frames)
    return {
        "first": begun,
        "middle": [*begun, *wire.middle_frames],
        "last": [*begun, *wire.middle_frames, *wire.last_frames],
    }[where]


@every_pair
@pytest.mark.parametrize("how", ["reset", "fin"])
@pytest.mark.parametrize("where", ["C02-first", "C02-middle", "C02-last"])
def test_in_the_middle_of_a_stream(harness: GatewayHarness, where: str, how: str, client: str, upstream: str) -> None:
    async def scenario() -> None:
        place = where.removeprefix("C02-")
        ending: tuple[Step, ...] = (Hang(),)
        harness.upstream.script(streamed_response(upstream, *frames_up_to(upstream, place), ending=ending))
        raw_client = await harness.start_request(client, f"{upstream}-small", streamed=True)
        await wait_until(lambda: b"Hel" in raw_client.reader.raw, "the first word comes")
        await wait_until(lambda: place == "first" or b"lo" in raw_client.reader.raw, "the second word comes")
        await wait_until(lambda: place != "last" or has_sent_all(harness, upstream), "the end comes")
        line = await disconnect(harness, raw_client, how)
        assert len(harness.upstream.requests) == 1
        if line["failure"] is not None:  # a wire without a mark is at its end where that is told
            assert (line["failure"], line["status"]) == ("cancelled", 200)
        assert_usage(line, client, upstream, place)

    harness.run(scenario())


def has_sent_all(harness: GatewayHarness, upstream: str) -> bool:
    """Whether the upstream has sent all that the script has."""
    sent = sum(len(frame) for frame in frames_up_to(upstream, "last"))
    return all(connection.sent_bytes >= sent for connection in harness.upstream.connections)


def assert_usage(line: JSONObject, client: str, upstream: str, place: str) -> None:
    """What was reported by then is logged; what was not is estimated, and marked so: a token for each piece."""
    usage = line["usage"]
    assert isinstance(usage, dict)
    estimate = 28 if client in ("completions", "llama_stack_completion") else 32
    reported = upstream in ("messages", "gemini") or (place == "last" and upstream not in ("interactions", "responses"))
    made = 1 if place == "first" else 2
    assert (usage["input_tokens"], usage["output_tokens"]) == (5 if reported else estimate, made)
    outdated = upstream == "messages" and place == "middle"  # it has counted the first piece alone
    assert usage.get("estimated", False) is (outdated or not reported)


@every_pair
def test_c03_while_a_whole_answer_comes(harness: GatewayHarness, client: str, upstream: str) -> None:
    async def scenario() -> None:
        wire = HELLO[upstream]
        head = ResponseHead(200, (("content-type", "application/json"),), chunked=False, length=len(wire.whole))
        harness.upstream.script((head, Body(wire.whole[:20]), Hang()))
        raw_client = await harness.start_request(client, f"{upstream}-small", streamed=False)
        await harness.wait_for_upstream_requests()
        await wait_until(lambda: bool(harness.upstream.connections[0].sent_bytes), "half of the answer is sent")
        line = await disconnect(harness, raw_client)
        assert (line["status"], line["failure"], line["usage"]) == (499, "cancelled", None)

    harness.run(scenario())


class PatientHarness(GatewayHarness):
    """Tries three times with long waits; `two-small` has two targets, and `few-small` one place and a queue."""

    def _config(self) -> JSONObject:
        config = super()._config()
        config["upstreams"]["few"] = config["upstreams"]["chat"] | {"limits": {"concurrency": 1, "queue_seconds": 90}}
        targets = [{"upstream": name, "model": "small", "tier": tier} for tier, name in enumerate(("chat", "messages"))]
        config["models"] += [{"name": "few-*", "upstream": "few"}, {"name": "two-small", "targets": targets}]
        return config


@pytest.fixture(scope="module")
def patient() -> Generator[GatewayHarness]:
    """Give such a harness, whose chance is always the same."""
    with ExitStack() as stack:
        harness = PatientHarness(retry={"attempts": 3, "base": 8.0, "cap": 8.0}).start(stack)
        harness.gateway.dispatcher.chance = lambda: 0.9
        yield harness


DOWN = Respond(503, (("content-type", "application/json"), ("connection", "close")), error_body("chat", "down"))
every_client = pytest.mark.parametrize("client", ALL_DIALECTS)
each_mode = pytest.mark.parametrize("streamed", BOTH, ids=mode_of)


@every_client
@each_mode
def test_c04_while_another_try_is_waited_for(patient: GatewayHarness, client: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        patient.upstream.script((DOWN,))
        raw_client = await patient.start_request(client, "chat-small", streamed=streamed)
        await patient.wait_for_upstream_requests()
        await advance(5.0)
        assert (len(patient.upstream.requests), raw_client.finished) == (1, False)
        line = await disconnect(patient, raw_client)
        await advance(60.0)
        assert len(patient.upstream.requests) == 1
        assert (line["failure"], line["tries"]) == ("cancelled", 1)

    patient.run(scenario())


@every_client
@each_mode
def test_c04_while_a_place_is_waited_for(patient: GatewayHarness, client: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        patient.upstream.script(ScriptRule(steps=(WaitEvent(GO_ON), *valid_response("chat", streamed=streamed))))
        first = await patient.start_request(client, "few-small", streamed=streamed)
        await patient.wait_for_upstream_requests()
        second, third = [await patient.start_request(client, "few-small", streamed=streamed) for _ in range(2)]
        await advance(5.0)
        second.transport.abort()
        await wait_until(lambda: len(patient.access_log.lines) == 1, "the second is over")
        assert patient.access_log_line()["tries"] == 0
        patient.upstream.release(GO_ON)
        for raw_client in (first, third):
            assert_completed(client, await patient.read_response(raw_client), streamed=streamed)
        assert len(patient.upstream.requests) == 2

    patient.run(scenario())


@every_client
@each_mode
@pytest.mark.parametrize("asked", [1, 2])
def test_c04_while_one_of_two_targets_is_asked(
    patient: GatewayHarness, client: str, asked: int, *, streamed: bool
) -> None:
    async def scenario() -> None:
        steps: Iterator[Sequence[Step]] = iter([(Hang(),)] if asked == 1 else [(DOWN,), (Hang(),)])
        patient.upstream.script(ScriptRule(steps=lambda _: next(steps)))
        raw_client = await patient.start_request(client, "two-small", streamed=streamed)
        await patient.wait_for_upstream_requests(asked)
        line = await disconnect(patient, raw_client)
        await advance(60.0)
        assert len(patient.upstream.requests) == asked
        assert (line["failure"], line["tries"]) == ("cancelled", asked)

    patient.run(scenario())


@every_client
@each_mode
def test_c01_the_place_is_given_back(patient: GatewayHarness, client: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        steps = iter([(Hang(),), valid_response("chat", streamed=streamed)])
        patient.upstream.script(ScriptRule(steps=lambda _: next(steps)))
        raw_client = await patient.start_request(client, "few-small", streamed=streamed)
        await patient.wait_for_upstream_requests()
        await disconnect(patient, raw_client)
        assert_completed(client, await patient.request(client, "few-small", streamed=streamed), streamed=streamed)

    patient.run(scenario())
