"""The webhook: what is posted, and what a reply does."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.scripted_backends import CHAT
from tests.hooks.test_runner import ask, text
from xenoglot.hooks.hook import HookSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


class Policy(HTTPServer):
    """Replies to each post with `reply`; `posts` are those that came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = (204, b"")
        self.posts: list[tuple[str | None, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Policy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.posts.append((self.headers["authorization"], json.loads(body)))
        status, reply = self.server.reply
        self.send_response(status)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Policy]:
    """Give a server that decides."""
    with Policy() as policy:
        thread = threading.Thread(target=policy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield policy
        policy.shutdown()
        thread.join()


@pytest.fixture
def policy(server: Policy) -> Policy:
    """Give it with nothing to say."""
    server.reply, server.posts = (204, b""), []
    return server


def webhook(policy: Policy, **options: object) -> HookSettings:
    return HookSettings(use="webhook", options={"url": f"http://127.0.0.1:{policy.server_port}/check", **options})


def test_what_is_posted(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICY_TOKEN", "secret-1")
    answer, _ = ask(webhook(policy, token_env="POLICY_TOKEN", answers=True))
    (token, before), (_, after) = policy.posts
    assert text(answer) == "Hello"
    assert (token, before["event"], before["model"], before["dialect"], before["stream"]) == (
        "Bearer secret-1",
        "before_request",
        "m",
        "chat",
        False,
    )
    assert before["request"]["messages"][0]["content"][0]["text"] == "Hi"
    assert (after["event"], after["response"]["candidates"][0]["content"][0]["text"]) == ("after_response", "Hello")
    assert before["request_id"] == after["request_id"] == answer.headers["x-request-id"]


def test_content_can_stay_here(policy: Policy) -> None:
    ask(webhook(policy, content=False))
    assert {"request", "response"}.isdisjoint(policy.posts[0][1])


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        pytest.param((200, b'{"tags": {"risk": "low"}}'), 200, id="tags"),
        pytest.param((200, b'{"reject": "not today"}'), 403, id="rejects"),
        pytest.param((500, b""), 500, id="fails"),
        pytest.param((200, b"yes"), 500, id="no-json"),
        pytest.param((302, b""), 500, id="redirects-are-not-followed"),
    ],
)
def test_replies(policy: Policy, reply: tuple[int, bytes], status: int) -> None:
    policy.reply = reply
    answer, backend = ask(webhook(policy))
    assert (answer.status, len(backend.requests), len(policy.posts)) == (status, int(status == 200), 1)


def test_an_address_in_a_request_is_not_read(policy: Policy) -> None:
    ask(webhook(policy), body={**CHAT, "url": "http://127.0.0.1:9/", "webhook": "http://127.0.0.1:9/"})
    assert len(policy.posts) == 1
