"""Captures: the four bodies of chosen requests, redacted, bounded, compressed, for a while."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from tests.gateway.cache.test_answer_cache import post
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.cli import main
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.ledger import CaptureSettings
from xenoglot.gateway.config.load import check
from xenoglot.gateway.ledger.capture import MOST_HELD, Capture, CapturedBody, Captures
from xenoglot.gateway.ledger.capture_rows import BodyRedactor
from xenoglot.model.failure import Failure
from xenoglot.store.ledger import bodies
from xenoglot.store.ledger.bodies import CaptureDetails, decompressed
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import ScriptRule, Upstream, answers, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from xenoglot.gateway.http.application import Exchange
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.model.json import JSONObject
    from xenoglot.store.queries import Database

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}
BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "user": "ada"}
ALL = (*bodies.PARTS, bodies.DETAILS)
KEY = "sk-upstream-0123456789-abcdefghij"


def served(
    path: Path, upstream: Upstream, requests: Sequence[tuple[str, JSONObject]], **capture: object
) -> list[tuple[str, dict[str, Any]]]:
    """Send requests through a gateway; return the id of each, and what was captured of it by part."""
    plain: dict[str, Any] = {"store": {"url": f"sqlite://{path}/ledger.db"}, "ledger": {}, "capture": capture}
    settings = {"key_env": "UP_KEY"}
    with DialectGateway(upstream, environ={"UP_KEY": KEY}, upstream=settings, **plain) as gateway:
        answered = [post(gateway.url, PATHS[dialect], {**BODY, **more}) for dialect, more in requests]
    ids = [answer.headers["x-request-id"] for answer in answered]
    return list(zip(ids, asyncio.run(stored(path, ids)), strict=True))


async def stored(path: Path, ids: Sequence[str]) -> list[dict[str, Any]]:
    store = SQLite(str(path / "ledger.db"))
    try:
        found = [await cast("Database", store).read(bodies.captured_bodies(one)) for one in ids]
    finally:
        await store.aclose()
    return [{row.part: (row.media, decompressed(row.body).decode()) for row in rows} for rows in found]


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_four_bodies(tmp_path: Path, dialect: str, *, stream: bool) -> None:
    """Of a request that passes byte for byte, and of one that is translated."""
    with Upstream(*answers("chat", text=("Hel", "lo")).rules()) as upstream:
        ((_, found),) = served(tmp_path, upstream, [(dialect, {"stream": stream})], share=1.0)
        (received,) = upstream.requests
    assert list(found) == sorted(ALL)
    assert json.loads(found["client_request"][1])["user"] == "ada"
    assert found["upstream_request"] == ("application/json", received.body.decode())
    media = "text/event-stream" if stream else "application/json"
    assert [found[part][0].partition(";")[0] for part in ("upstream_response", "client_response")] == [media] * 2
    for part in ("upstream_response", "client_response"):
        assert "Hel" in found[part][1]
    if stream and dialect == "messages":
        assert "message_stop" in found["client_response"][1]
        assert "[DONE]" in found["upstream_response"][1]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_details_have_losses_tries_and_times(tmp_path: Path, *, stream: bool) -> None:
    failure = Failure(kind="overloaded", message="no")
    hello = answers("chat", text=("Hel", "lo")).rules()
    with Upstream(ScriptRule(steps=refusal("chat", failure), times=1), *hello) as upstream:
        ((_, found),) = served(tmp_path, upstream, [("messages", {"top_k": 3, "stream": stream})], share=1.0)
    details = msgspec.json.decode(found[bodies.DETAILS][1], type=CaptureDetails)
    assert [(loss.where, loss.what) for loss in details.losses] == [("$", "user"), ("$.sampling", "top_k")]
    assert [one.partition(":")[0] for one in details.failed_tries] == ["up/m"]
    assert len(details.tries) == 2
    last = details.tries[-1]
    times = (0.0, details.tries[0].sent, last.sent, last.head, last.first, last.last)
    assert None not in times
    assert list(times) == sorted(cast("list[float]", times))
    assert cast("float", last.head) <= cast("float", details.answered) <= details.ended


def test_bodies_are_bounded_and_say_so(tmp_path: Path) -> None:
    with Upstream(*answers("chat", text=("Hel", "lo")).rules()) as upstream:
        ((_, found),) = served(tmp_path, upstream, [("chat", {"stream": True})], share=1.0, max_bytes=16)
    assert {len(found[part][1]) for part in bodies.PARTS} == {16}
    assert all(found[part][0].endswith("; truncated=true") for part in bodies.PARTS)


def test_secrets_and_fields_are_redacted(tmp_path: Path) -> None:
    said = f"my key is {KEY}, another sk-proj-abcdefghijklmnopqrstuvwxyz"
    more: JSONObject = {"messages": [{"role": "user", "content": said}], "metadata": {"api_key": "x", "team": "blue"}}
    with Upstream(*answers("chat", text=said).rules()) as upstream:
        ((_, found),) = served(tmp_path, upstream, [("chat", more)], share=1.0, fields=["user", "team"])
    texts = [text for _, text in found.values()]
    assert not any(secret in text for text in texts for secret in (KEY, "sk-proj", '"ada"', '"blue"', '"x"'))
    assert "my key is [redacted], another [redacted]" in found["client_response"][1]


def test_what_is_chosen(tmp_path: Path) -> None:
    requests: list[tuple[str, JSONObject]] = [("chat", {"model": name}) for name in ("gpt-5", "claude-5")]
    with Upstream(*answers("chat", text="Hello").rules()) as upstream:
        found = served(tmp_path, upstream, requests, models=["gpt-*"])
    assert [sorted(parts) for _, parts in found] == [sorted(ALL), []]


def test_failures_are_captured(tmp_path: Path) -> None:
    """Those of the upstream, and those of the gateway itself."""
    failure = Failure(kind="invalid_request", message="no")
    with Upstream(ScriptRule(steps=refusal("chat", failure))) as upstream:
        found = [
            parts for _, parts in served(tmp_path, upstream, [("messages", {}), ("chat", {"tools": 7})], share=1.0)
        ]
    assert "no" in found[0]["upstream_response"][1]
    assert json.loads(found[0]["client_response"][1])["type"] == "error"
    assert found[1] == {}


def test_bodies_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with Upstream(*answers("chat", text="Hello\x1b[31m").rules()) as upstream:
        ((name, _),) = served(tmp_path, upstream, [("chat", {})], share=1.0)
    config = tmp_path / "config.toml"
    config.write_text(f'[store]\nurl = "sqlite://{tmp_path}/ledger.db"\n[ledger]\n')
    monkeypatch.setattr("sys.argv", ["xenoglot"])
    assert main(["requests", "show", name, "--bodies", "--config", str(config)]) in (0, None)
    printed = capsys.readouterr().out
    places = [printed.index(f"\n{part} (") for part in ALL]
    assert places == sorted(places)
    assert '"user": "ada"' in printed
    assert "\x1b" not in printed
    assert main(["requests", "show", name, "--config", str(config)]) in (0, None)
    assert "client_request" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("plain", "problem"),
    [
        pytest.param({"capture": {"share": 0.1}}, "capture: needs the table [ledger]", id="no-ledger"),
        pytest.param({"capture": {}, "ledger": {}}, "capture: set `tenants`, `keys`, `models` or `share`", id="all"),
        pytest.param(
            {"capture": {"share": 2}, "ledger": {}}, "capture.share: found 2; expected float <= 1.0", id="share"
        ),
    ],
)
def test_nothing_is_captured_by_accident(plain: JSONObject, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem.replace("[", r"\[").replace(".", r"\.")):
        check(plain, {}, "here")


class Record:
    """What is asked of a request."""

    capture: Capture | None = None

    def __init__(self, model: str = "m", tenant: str | None = None, key: str | None = None) -> None:
        self.model = model
        self.clock = lambda: 0.0
        self.client = type("Client", (), {"tenant": tenant, "key": key, "name": None})


class Quiet:
    """An exchange."""

    def __getattr__(self, _name: str) -> object:
        return None


def chosen(settings: CaptureSettings, record: Record, draws: float = 0.5) -> bool:
    captures = Captures(settings, lambda: draws)
    captures.capture(cast("RequestLog", record), b"{}", cast("Exchange", Quiet()))
    return record.capture is not None


def test_a_share_of_the_requests_of_some() -> None:
    assert chosen(CaptureSettings(share=0.6), Record())
    assert not chosen(CaptureSettings(share=0.4), Record())
    ada = CaptureSettings(tenants=("ada",), keys=("key_1",))
    assert [chosen(ada, Record(tenant=tenant, key="key_1")) for tenant in ("ada", "bob", None)] == [True, False, False]
    assert not chosen(ada, Record(tenant="ada", key="key_2"))


def test_captures_are_bounded_together() -> None:
    captures = Captures(CaptureSettings(share=1.0, max_bytes=MOST_HELD), lambda: 0.0)
    first, second, third = Record(), Record(), Record()
    exchange = cast("Exchange", Quiet())
    captures.capture(cast("RequestLog", first), bytes(MOST_HELD), exchange)
    captures.capture(cast("RequestLog", second), b"{}", exchange)
    assert (captures.held, second.capture) == (MOST_HELD, None)
    first.capture = None
    captures.capture(cast("RequestLog", third), b"{}", exchange)
    assert (captures.held, third.capture is not None) == (2, True)


def test_a_body_keeps_its_beginning() -> None:
    body = CapturedBody("text/plain", 5)
    assert [body.add(data) for data in (b"abc", b"def", b"")] == [3, 2, 0]
    assert (b"".join(body.pieces), body.truncated) == (b"abcde", True)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param('{"ssn": "1", "b": 2}', '{"ssn": "[redacted]", "b": 2}', id="text"),
        pytest.param('{"ssn":12.5,"b":2}', '{"ssn":"[redacted]","b":2}', id="number"),
        pytest.param('{"a":{"SSN":null}}', '{"a":{"SSN":"[redacted]"}}', id="nested-and-any-case"),
        pytest.param('{"ssn":["a]",{"b":"}"}],"c":1}', '{"ssn":"[redacted]","c":1}', id="list"),
        pytest.param('{"ssn":"a\\"b","c":1}', '{"ssn":"[redacted]","c":1}', id="escape"),
        pytest.param('{"ssn":"cut of', '{"ssn":"[redacted]"', id="cut-text"),
        pytest.param('{"ssn":{"a":[1,', '{"ssn":"[redacted]"', id="cut-object"),
        pytest.param('{"ssn":', '{"ssn":"[redacted]"', id="cut-before"),
        pytest.param(
            'data: {"ssn":1}\n\ndata: {"ssn":2}\n\n',
            'data: {"ssn":"[redacted]"}\n\ndata: {"ssn":"[redacted]"}\n\n',
            id="stream",
        ),
        pytest.param('{"a":"ssn"}', '{"a":"ssn"}', id="a-value"),
    ],
)
def test_values_of_fields(body: str, expected: str) -> None:
    assert BodyRedactor(("ssn",), str)(body.encode()).decode() == expected
