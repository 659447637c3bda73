"""Secrets go, innocent words stay."""

from __future__ import annotations

import pytest

from xenoglot.backends.redaction import Redactor


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        pytest.param(["sk-secret-1"], "wrong key sk-secret-1!", "wrong key [redacted]!", id="S08-named"),
        pytest.param(["x"], "x-request-id: x", "x-request-id: x", id="too-short-to-be-told-from-words"),
        pytest.param([None, ""], "nothing", "nothing", id="no-secrets"),
        pytest.param(["12345678", "12345678-long"], "12345678-long", "[redacted]", id="the-longer-first"),
        pytest.param(["sk-secret-1"], "sk-secret-1sk-secret-1", "[redacted][redacted]", id="each-time"),
    ],
)
def test_redactor(secrets: list[str | None], text: str, shown: str) -> None:
    assert Redactor(secrets)(text) == shown


def test_json_is_searched_through() -> None:
    value = {"sk-secret-1": ["a sk-secret-1", {"b": 1, "c": None}]}
    assert Redactor(["sk-secret-1"]).json(value) == {"[redacted]": ["a [redacted]", {"b": 1, "c": None}]}


@pytest.mark.parametrize(
    ("text", "begun"),
    [
        pytest.param("a key: sk-secr", 7, id="begun"),
        pytest.param("sk-sk-", 3, id="begun-again"),
        pytest.param("sk-secret-2", 0, id="another"),
        pytest.param("pass-sk-s", 9, id="the-longest-beginning"),
        pytest.param("", 0, id="nothing"),
    ],
)
def test_the_beginning_of_a_secret_at_the_end_of_a_text_is_found(text: str, begun: int) -> None:
    assert Redactor(["sk-secret-1", "pass-sk-secret"]).partial_length(text) == begun


def test_secrets_that_change_are_remembered_up_to_a_number() -> None:
    redact = Redactor(["sk-secret-1"])
    for number in range(40):
        redact.remember(f"token-{number:03}")
    assert redact("sk-secret-1 token-000 token-024 token-039") == "[redacted] token-000 [redacted] [redacted]"
    assert redact.partial_length("a token-03") == 8
