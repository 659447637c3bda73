"""From base URLs, as people write them, to endpoints."""

from __future__ import annotations

import pytest

from xenoglot.backends.urls import endpoint

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        pytest.param("http://h", CHAT, "http://h/v1/chat/completions", id="bare-host"),
        pytest.param("http://h/", CHAT, "http://h/v1/chat/completions", id="bare-host-slash"),
        pytest.param("http://h:8000/v1", CHAT, "http://h:8000/v1/chat/completions", id="with-version"),
        pytest.param("http://h:8000/v1///", CHAT, "http://h:8000/v1/chat/completions", id="C1-trailing-slashes"),
        pytest.param("http://h/v1/", MESSAGES, "http://h/v1/messages", id="messages"),
        pytest.param("http://h/anthropic", MESSAGES, "http://h/anthropic/v1/messages", id="path-without-version"),
        pytest.param("http://h/api/v1", CHAT, "http://h/api/v1/chat/completions", id="path-with-version"),
        pytest.param("http://h/api/paas/v4", CHAT, "http://h/api/paas/v4/chat/completions", id="another-version"),
        pytest.param("http://h/v1beta/openai/", CHAT, "http://h/v1beta/openai/chat/completions", id="version-within"),
        pytest.param("http://h/v1?api-version=7", CHAT, "http://h/v1/chat/completions?api-version=7", id="query-kept"),
        pytest.param("http://h?k=v", CHAT, "http://h/v1/chat/completions?k=v", id="query-after-the-host"),
        pytest.param("http://h/v1/chat/completions", CHAT, "http://h/v1/chat/completions", id="the-whole-url"),
        pytest.param("http://h/x/chat/completions/", CHAT, "http://h/x/chat/completions", id="whole-url-no-version"),
        pytest.param("http://h/v1", "/v1/models", "http://h/v1/models", id="models"),
        pytest.param("http://[::1]:80/v1", CHAT, "http://[::1]:80/v1/chat/completions", id="ipv6"),
        pytest.param("http://h:1", "/api/chat", "http://h:1/api/chat", id="path-of-no-version"),
        pytest.param("http://h:1/api/", "/api/chat", "http://h:1/api/chat", id="beginning-of-the-path"),
        pytest.param("http://h/p/api/chat", "/api/chat", "http://h/p/api/chat", id="whole-url-of-no-version"),
        pytest.param("http://h/v1", "/v1beta/models/a/v1:go", "http://h/v1/models/a/v1:go", id="version-in-a-name"),
        pytest.param("http://h/live/video", CHAT, "http://h/live/video/v1/chat/completions", id="words-with-v"),
    ],
)
def test_endpoint(base: str, path: str, url: str) -> None:
    assert endpoint(base, path) == url
