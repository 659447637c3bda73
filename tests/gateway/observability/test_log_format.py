"""Forms of the log: JSON on the whole stream, or text, and what the line of a request has."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from typing import TYPE_CHECKING, cast

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.gateway.observability.log_format import JSONFormatter, timestamp
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSONObject

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
PROCESS = """
import logging, sys, threading, warnings
from xenoglot.gateway.observability.access_log import ACCESS, OURS, configure_logging, process_logs

def fail():
    raise ValueError("secret in a thread")

with process_logs(None if sys.argv[1] == "unset" else sys.argv[1]):
    OURS.warning("before the configuration")
    configure_logging(lambda text: text.replace("secret", "[redacted]"), sys.argv[2])
    OURS.info("ours, secret")
    logging.getLogger("other.package").warning("theirs, %s", "secret")
    logging.getLogger("other.package").info("not shown")
    warnings.warn("careful, secret")
    ACCESS.info("%s", '{"event": "request"}')
    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()
    try:
        fail()
    except ValueError:
        OURS.exception("caught")
    sys.excepthook(*[RuntimeError, RuntimeError("secret at the end"), None])
logging.getLogger("other.package").warning("plain again")
"""


def lines_of(*arguments: str) -> list[str]:
    """What a process writes on standard error whose flag and configuration are `arguments`."""
    command = [sys.executable, "-c", PROCESS, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()


@pytest.mark.parametrize(
    ("now", "text"),
    [(0.0, "1970-01-01T00:00:00.000Z"), (1.0009, "1970-01-01T00:00:01.000Z"), (1e9 + 0.25, "2001-09-09T01:46:40.250Z")],
)
def test_times_are_those_of_rfc_3339(now: float, text: str) -> None:
    assert timestamp(now) == timestamp(now) == text


def test_a_message_is_one_line_of_json_without_secrets() -> None:
    formatter = JSONFormatter(lambda text: text.replace("secret", "x"))
    record = logging.LogRecord("xenoglot.gateway", logging.WARNING, "", 0, 'a "secret"\n%s', ("b",), None)
    record.created = 1.5
    assert json.loads(formatter.format(record)) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "warning",
        "event": "message",
        "logger": "xenoglot.gateway",
        "message": 'a "x"\nb',
    }


@pytest.mark.parametrize("arguments", [("json", "text"), ("unset", "json"), ("unset", "auto")], ids=" ".join)
def test_everything_on_the_stream_is_json(arguments: tuple[str, str]) -> None:
    *lines, last = lines_of(*arguments)
    assert last == "plain again"
    read = [cast("JSONObject", json.loads(line)) for line in lines]
    messages = [line for line in read if line["event"] == "message"]
    assert len(messages) == len(read) - 1
    assert all(TIME.fullmatch(str(line["time"])) for line in messages)
    found = [
        (line["level"], line["logger"], str(line["message"]).splitlines()[0].rpartition("/")[2]) for line in messages
    ]
    assert found[:3] == [
        ("warning", "xenoglot", "before the configuration"),
        ("info", "xenoglot", "ours, [redacted]"),
        ("warning", "other.package", "theirs, [redacted]"),
    ]
    assert (found[3][:2], "careful, [redacted]" in str(messages[3]["message"])) == (("warning", "py.warnings"), True)
    assert found[4:] == [
        ("critical", "xenoglot", "uncaught ValueError in thread worker"),
        ("error", "xenoglot", "caught"),
        ("critical", "xenoglot", "uncaught RuntimeError"),
    ]
    tracebacks = [str(line["traceback"]).splitlines()[-1] for line in messages if "traceback" in line]
    assert tracebacks == [
        "ValueError: [redacted] in a thread",
        "ValueError: [redacted] in a thread",
        "RuntimeError: [redacted] at the end",
    ]


@pytest.mark.parametrize("arguments", [("text", "json"), ("unset", "text")], ids=" ".join)
def test_text_is_for_people(arguments: tuple[str, str]) -> None:
    lines = lines_of(*arguments)
    assert {"ours, [redacted]", "theirs, [redacted]", "caught", "ValueError: [redacted] in a thread"} <= set(lines)


def test_the_line_of_a_request_names_key_session_trace_and_cost(access_lines: AccessLines) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    body: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "prompt_cache_key": "session-1"}
    more: JSONObject = {
        "keys": {"env": ["ADA"], "named": {"laptop": {"key_env": "LAPTOP"}}},
        "ledger": {},
        "prices": [{"model": "*", "input": 1, "output": 1}],
    }
    environ = {"ADA": "a" * 20, "LAPTOP": "l" * 20}
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        DialectGateway(server, environ=environ, **more) as running,
    ):
        for key, headers in (("LAPTOP", {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}), ("ADA", {})):
            sent = {"authorization": f"Bearer {environ[key]}", **headers}
            url = f"{running.url}/v1/chat/completions"
            assert httpx2.post(url, json=body, headers=sent, timeout=TIMEOUT).status_code == 200
    laptop, ada = (cast("JSONObject", access_lines.next()) for _ in range(2))
    assert (laptop["event"], laptop["level"], laptop["key"], laptop["trace"]) == ("request", "info", "laptop", trace)
    assert TIME.fullmatch(laptop["time"])
    assert laptop["session"] == ada["session"] != "session-1"
    assert laptop["cost"]["currency"] == "USD"
    assert "trace" not in ada
    assert ada["key"] == "ADA"
