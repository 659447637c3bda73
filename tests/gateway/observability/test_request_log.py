"""The line of a request: everything that is known of it, nothing that was said in it, and one line whatever came."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from itertools import count
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.redaction import for_header, for_log
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.errors import whereabouts
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.observability import request_log
from xenoglot.gateway.observability.request_log import MAX_LOSSES, RequestCost, RequestLog, RequestLogger, line
from xenoglot.gateway.routing.router import Route
from xenoglot.model.failure import Failure
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

NOTHING: JSONObject = {
    "time": "1970-01-01T00:00:00.000Z",
    "level": "info",
    "event": "request",
    "request": "req_1",
    "method": "POST",
    "route": None,
    "dialect": None,
    "tenant": None,
    "model": None,
    "backend": None,
    "target": None,
    "substituted": False,
    "tries": 0,
    "stream": None,
    "status": None,
    "ttfb_ms": None,
    "total_ms": 1500.0,
    "usage": None,
    "finish": None,
    "failure": None,
    "losses": [],
}


def log_fields(record: RequestLog, now: float) -> JSONObject:
    """Return what the log says of a record."""
    said: JSONObject = json.loads(encode_json(line(record, now)))
    return said


def started_record(now: float = 0.25) -> RequestLog:
    """Return a record that began at second 0, with a clock that stands at `now`."""
    return RequestLog(request_id="req_1", method="POST", started=0.0, clock=lambda: now)


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    assert log_fields(started_record(), 1.5) == NOTHING


def test_what_is_known_is_said() -> None:
    record = started_record()
    losses = Losses()
    losses.dropped("$.sampling", "seed", "the target has none")
    record.route, record.dialect, record.client = "/v1/messages", "messages", Principal(tenant="research")
    record.asked("gpt-4o", stream=True)
    record.routed(Route(backend="embedded", model="tiny", substituted=True))
    record.losses = losses
    record.begin(200)
    record.used(Usage(input_tokens=7))
    record.used(Usage(output_tokens=3, cache_read=0))
    record.finish = "stop"
    assert log_fields(record, 1.5) == NOTHING | {
        "route": "/v1/messages",
        "dialect": "messages",
        "tenant": "research",
        "model": "gpt-4o",
        "backend": "embedded",
        "target": "tiny",
        "substituted": True,
        "tries": 0,
        "stream": True,
        "status": 200,
        "ttfb_ms": 250.0,
        "usage": {"input_tokens": 7, "output_tokens": 3, "cache_read": 0, "cache_write": None, "reasoning": None},
        "finish": "stop",
        "losses": ["$.sampling seed dropped (the target has none)"],
    }


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0.000000"), (7, "0.000007"), (999_999, "0.999999"), (1_000_000, "1.000000"), (1_234_567_890, "1234.567890")],
)
def test_a_cost_is_shown_in_units_of_its_currency(amount: int, text: str) -> None:
    assert str(RequestCost(amount, "USD", "own")) == f"{text} USD"


def test_harmless_losses_are_a_summary() -> None:
    """findings-clients-4: losses of every request hide no others; an operator can see all of them."""
    record, losses = started_record(), Losses()
    losses.dropped("$", "header anthropic-beta", "only messages has it")
    losses.dropped("$.messages[0].content[0]", "cache", "the server decides what it caches")
    losses.dropped("$.messages[1].content[0]", "cache", "the server decides what it caches")
    losses.dropped("$.sampling", "seed", "the target has none")
    record.losses = losses
    assert log_fields(record, 1.5)["losses"] == [
        "$.sampling seed dropped (the target has none)",
        "and 3 harmless: header anthropic-beta, cache (2)",
    ]
    assert line(record, 1.5, all_losses=True).losses == [str(loss) for loss in losses]
    assert record.tell_losses() == (
        "$.sampling seed dropped (the target has none); and 3 harmless: header anthropic-beta, cache (2)"
    )


def test_losses_that_matter_are_cut_before_the_harmless() -> None:
    record, losses = started_record(), Losses()
    for index in range(MAX_LOSSES + 5):
        losses.dropped(f"$.tools[{index}]", "cache", "a tool takes no cache mark")
        losses.dropped(f"$.tools[{index}]", "strict", "the dialect has no such field")
    record.losses = losses
    *named, more, harmless = log_fields(record, 1.5)["losses"]
    assert named == [f"$.tools[{index}] strict dropped (the dialect has no such field)" for index in range(MAX_LOSSES)]
    assert (more, harmless) == ("and 5 more", f"and {MAX_LOSSES + 5} harmless: cache ({MAX_LOSSES + 5})")


def test_harmless_losses_alone() -> None:
    record, losses = started_record(), Losses()
    losses.dropped("$", "cache", "the server decides what it caches")
    record.losses = losses
    assert (log_fields(record, 1.5)["losses"], record.tell_losses()) == (["1 harmless: cache"], "1 harmless: cache")


def test_an_estimated_usage_says_so() -> None:
    record = started_record()
    record.used(Usage(input_tokens=7, estimated=True))
    assert log_fields(record, 1.5)["usage"]["estimated"] is True


def test_a_client_that_left_before_its_answer() -> None:
    record = started_record()
    record.failed(Failure(kind="cancelled", message="the client disconnected"))
    assert log_fields(record, 1.5) == NOTHING | {"status": 499, "failure": "cancelled"}


def test_c22_s14_a_hostile_request_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    times = count()
    observer = RequestLogger(lambda: float(next(times)))
    with caplog.at_level(logging.INFO, "xenoglot.access"):
        record = observer.record("GET\x1b[2J")
        record.asked('x\r\n{"request": "forged"}\x9b31m\u2028\u202e' + "y" * 10**6, stream=False)
        observer.write(record)
    [message] = [entry.getMessage() for entry in caplog.records]
    assert message.isprintable()
    written = json.loads(message)
    assert (written["method"], written["total_ms"]) == ("GET?[2J", 1000.0)
    assert written["model"] == 'x??{"request": "forged"}?31m??' + "y" * (199 - 30) + "…"


def test_request_ids_are_apart() -> None:
    observer = RequestLogger(float)
    identifiers = {observer.record("GET").request_id for _ in range(1000)}
    assert len(identifiers) == 1000
    assert all(identifier.startswith("req_") and len(identifier) == 30 for identifier in identifiers)


def drawn_at(now: float, patch: pytest.MonkeyPatch) -> list[str]:
    """Return all ids that are drawn together at a time."""
    patch.setattr(request_log, "_drawn", [])
    patch.setattr(time, "time", lambda: now)
    return [request_log.identifier() for _ in range(request_log.IDS_AT_ONCE)]


def test_request_ids_begin_with_the_time_so_that_an_index_grows_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        ids = [drawn_at(now, patch) for now in (1.7e9, 1.7e9 + 0.004, 1.7e9 + 60)]
    assert max(ids[0]) < min(ids[1])
    assert max(ids[1]) < min(ids[2])
    unguessable = {one[-2 * request_log.RANDOM_BYTES :] for drawn in ids for one in drawn}
    assert len(unguessable) == 3 * request_log.IDS_AT_ONCE


def test_request_ids_of_a_process_that_forks_are_apart() -> None:
    code = (
        "import os; from xenoglot.gateway.observability.request_log import identifier; identifier(); "
        "child = os.fork(); os.write(1, f'{identifier()}\\n'.encode()); child and os.waitpid(child, 0)"
    )
    said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    assert len(said) == 2
    assert len(set(said)) == 2


def test_the_headers_of_every_answer() -> None:
    record = started_record()
    record.routed(Route(backend="embedded", model="tiny", substituted=True))
    record.origin = "https://app.example"
    assert record.headers() == [
        ("x-request-id", "req_1"),
        ("request-id", "req_1"),
        ("x-content-type-options", "nosniff"),
        ("x-xenoglot-substituted-model", "tiny"),
        ("access-control-allow-origin", "https://app.example"),
        ("vary", "origin"),
    ]


def test_r30_where_an_error_came_from_without_what_it_says() -> None:
    def inner() -> None:
        raise ValueError("the prompt was: my secret")

    def outer() -> None:
        try:
            inner()
        except ValueError as error:
            raise KeyError("sk-0123456789") from error

    with pytest.raises(KeyError) as caught:
        outer()
    told = whereabouts(caught.value)
    here = "tests.gateway.observability.test_request_log"
    places = [link.partition(" at ") for link in told.split("; from ")]
    assert [(kind, frames.rpartition(" > ")[2].rpartition(":")[0]) for kind, _, frames in places] == [
        ("builtins.KeyError", f"{here}.outer"),
        ("builtins.ValueError", f"{here}.inner"),
    ]


@pytest.mark.parametrize(
    ("text", "log", "header"),
    [
        pytest.param("claude-x", "claude-x", "claude-x", id="plain"),
        pytest.param("a\r\nb: c", "a??b: c", "a??b: c", id="C22-crlf"),
        pytest.param("modèle", "modèle", "mod?le", id="beyond-ascii"),
        pytest.param("\x1b[31m\x9b\u202e", "?[31m??", "?[31m??", id="S14-terminal"),
        pytest.param("123456789", "123456789", "123456789", id="long-enough"),
        pytest.param("1234567890", "12345678…", "123456...", id="cut"),
    ],
)
def test_printable(text: str, log: str, header: str) -> None:
    assert (for_log(text, 9), for_header(text, 9)) == (log, header)
