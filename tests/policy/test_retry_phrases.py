"""Words of failures: clients that decide by words retry what can be retried, and nothing else."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.refusal import fit_to_show, not_understood, unreachable
from xenoglot.backends.transport_bounds import TransportError
from xenoglot.errors import WireError
from xenoglot.model.failure import Failure
from xenoglot.policy.retry import Retry
from xenoglot.policy.verdict import KINDS, judge

SOURCE = ROOT / "src" / "xenoglot"
CLIENTS = tomllib.loads((Path(__file__).parent / "retrying_clients.toml").read_text(encoding="utf-8"))
PATTERNS = [pytest.param(client["pattern"], id=name) for name, client in CLIENTS.items()]


def is_retryable(failure: Failure) -> bool:
    """Whether the same request may well be answered when it is sent again, by the same client with the same key."""
    return judge(failure, Retry(timeouts=True)).again and failure.cause not in ("credentials", "forbidden")


def written() -> list[tuple[str, str, str]]:
    """Return place, kind and message of each failure that the source writes out; of an f-string what is constant."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Failure":
                said = {word.arg: word.value for word in node.keywords}
                kind, message = said.get("kind"), _text(said.get("message"))
                if isinstance(kind, ast.Constant) and message is not None:
                    found.append((f"{path.relative_to(SOURCE)}:{node.lineno}", str(kind.value), message))
    return found


def _text(node: ast.expr | None) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) or "..." for value in values)
        case _:
            return None


FINAL = {kind for kind, verdict in KINDS.items() if not verdict.again and kind != "cancelled"}
PASSING = {"internal", "overloaded", "timeout"}
"""Kinds all of whose failures may be gone when the request is sent again."""


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_can_be_retried_says_so(pattern: str) -> None:
    """findings-clients-4: in a stream the message is all that a client has."""
    messages = {place: message for place, kind, message in written() if kind in PASSING}
    messages = {place: message for place, message in messages.items() if place.split("/")[0] in SERVED}
    assert len(messages) > 5
    assert {place: message for place, message in messages.items() if not re.search(pattern, message)} == {}


SERVED = {"gateway", "backends", "engine", "dialects", "policy"}
"""The packages whose failures a client of the gateway meets."""


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_fails_again_does_not(pattern: str) -> None:
    messages = {place: message for place, kind, message in written() if kind in FINAL}
    assert len(messages) > 10
    assert {place: message for place, message in messages.items() if re.search(pattern, message)} == {}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", ["connect", "tls", "timeout", "protocol", "closed", "too_large"])
def test_what_became_of_the_connection(kind: str, pattern: str) -> None:
    """findings-clients-4: pi gave up where the upstream had broken off."""
    failure = unreachable(TransportError(kind, "body", "how it was"))  # type: ignore[arg-type]
    assert bool(re.search(pattern, failure.message)) == is_retryable(failure)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_an_upstream_said(pattern: str) -> None:
    garbled = not_understood(WireError("$.choices", "required, expected list"))
    failed = fit_to_show(Failure(kind="internal", message="a trace", dialect="openai", status=500), Redactor(()))
    refused = fit_to_show(Failure(kind="authentication", message="no", dialect="openai", status=401), Redactor(()))
    assert re.search(pattern, garbled.message)
    assert re.search(pattern, failed.message)
    assert not re.search(pattern, refused.message)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_stream_that_is_cut(pattern: str) -> None:
    """Every decoder and encoder says the same of a stream without an end."""
    cut = {message for _, kind, message in written() if kind == "upstream" and "ended" in message}
    assert cut
    assert [message for message in sorted(cut) if not re.search(pattern, message)] == []
