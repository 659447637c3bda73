"""Words of failures: clients that decide by words retry what can be retried, and nothing else."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from xenoglot.backends.http.timeouts import TransportError
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.remote.upstream_errors import for_client, invalid_answer, unreachable
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get
from xenoglot.dialects.responses.errors import encode_failure
from xenoglot.errors import WireError
from xenoglot.gateway.endpoint.responses import retry_headers
from xenoglot.model.events import Failed, Started
from xenoglot.model.failure import Failure
from xenoglot.model.request import Request
from xenoglot.policy.failure_policy import KINDS, judge
from xenoglot.policy.limits.admission_queue import AdmissionQueue
from xenoglot.policy.limits.usage_ledger import Scope, Shortage, Window
from xenoglot.policy.target_health import Retry

SOURCE = ROOT / "src" / "xenoglot"
CLIENTS = tomllib.loads((Path(__file__).parent / "retrying_clients.toml").read_text(encoding="utf-8"))
PATTERNS = [pytest.param(client["words"], id=name) for name, client in CLIENTS.items() if "words" in client]


def is_retryable(failure: Failure) -> bool:
    """Whether the same request may well be answered when it is sent again, by the same client with the same key."""
    return judge(failure, Retry(timeouts=True)).retry_same and failure.cause not in ("credentials", "forbidden")


@cache
def written() -> tuple[tuple[str, str, str], ...]:
    """Return place, kind and message of each failure that the source writes out; of an f-string what is constant.

    Those that are marked as not to be retried, such as a used-up budget, are left out.

    A message in a variable counts once for each text that the module, or the function around, gives to the variable.
    """
    found: list[tuple[str, str, str]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = _assigned(tree.body)
        found += _failures(tree, known, path.relative_to(SOURCE).as_posix())
    return tuple(dict.fromkeys(found))


def _failures(tree: ast.AST, known: Mapping[str, list[str]], path: str) -> Iterator[tuple[str, str, str]]:
    for node in ast.iter_child_nodes(tree):
        inside = known
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = {**known, **_assigned(list(ast.walk(node)))}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Failure":
            said = {word.arg: word.value for word in node.keywords}
            kind = said.get("kind")
            if isinstance(kind, ast.Constant) and "non_retryable" not in said:
                for message in _texts(said.get("message"), inside):
                    yield f"{path}:{node.lineno}", str(kind.value), message
        yield from _failures(node, inside, path)


def _assigned(nodes: Sequence[ast.AST]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                found[name] = found.get(name, []) + _texts(value, {})
            case _:
                pass
    return found


def _texts(node: ast.expr | None, known: Mapping[str, list[str]]) -> list[str]:
    """Return each text that an expression may be."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return ["".join(_constant(value) or "..." for value in values)]
        case ast.Name(id=name):
            return known.get(name, [])
        case ast.IfExp(body=one, orelse=other):
            return _texts(one, known) + _texts(other, known)
        case _:
            return []


def _constant(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


FINAL = {kind for kind, verdict in KINDS.items() if not verdict.retry_same and kind != "cancelled"}
PASSING = ("internal", "overloaded", "timeout", "rate_limit")
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
@pytest.mark.parametrize("kind", ["connect", "tls", "timeout", "protocol", "closed", "too_large", "exhausted"])
def test_what_became_of_the_connection(kind: str, pattern: str) -> None:
    """findings-clients-4: pi gave up where the upstream had broken off."""
    failure = unreachable(TransportError(kind, "body", "how it was"))  # type: ignore[arg-type]
    assert bool(re.search(pattern, failure.message)) == is_retryable(failure)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_an_upstream_said(pattern: str) -> None:
    garbled = invalid_answer(WireError("$.choices", "required, expected list"))
    failed = for_client(Failure(kind="internal", message="a trace", dialect="openai", status=500), Redactor(()))
    refused = for_client(Failure(kind="authentication", message="no", dialect="openai", status=401), Redactor(()))
    assert re.search(pattern, garbled.message)
    assert re.search(pattern, failed.message)
    assert not re.search(pattern, refused.message)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_stream_that_is_cut(pattern: str) -> None:
    """Every decoder and encoder says the same of a stream without an end."""
    cut = {message for _, kind, message in written() if kind == "upstream" and "ended" in message}
    assert cut
    assert [message for message in sorted(cut) if not re.search(pattern, message)] == []


TRANSIENT = (*PASSING, "upstream")
RULES = [
    pytest.param(name, dialect, id=f"{name}-{dialect}") for name, one in CLIENTS.items() for dialect in one["dialects"]
]
WITH_STATUSES = [rule for rule in RULES if "statuses" in CLIENTS[str(rule.values[0])]]


def retries_whole(client: str, dialect: str, failure: Failure) -> bool:
    """Whether the client retries after a whole answer that tells of `failure`."""
    rule = CLIENTS[client]
    status, body = get(dialect).encode_error(failure)
    if dict(retry_headers(failure)).get("x-should-retry") == "false" and client.endswith(
        ("openai-sdk", "anthropic-sdk")
    ):
        return False
    if re.search(rule.get("never", "$^"), json.dumps(body)):
        return False
    return str(status) in rule["statuses"] or (status >= 500 and "5xx" in rule["statuses"])


@pytest.mark.parametrize(("client", "dialect"), WITH_STATUSES)
@pytest.mark.parametrize("kind", TRANSIENT)
def test_a_status_that_can_be_retried(kind: str, client: str, dialect: str) -> None:
    failure = Failure(kind=kind, message="m")  # type: ignore[arg-type]
    assert retries_whole(client, dialect, failure) or kind in CLIENTS[client].get("gives_up", ())


@pytest.mark.parametrize(("client", "dialect"), WITH_STATUSES)
@pytest.mark.parametrize("kind", sorted(FINAL | {"authentication", "billing", "permission"}))
def test_a_status_that_fails_again(kind: str, client: str, dialect: str) -> None:
    retries = retries_whole(client, dialect, Failure(kind=kind, message="m"))  # type: ignore[arg-type]
    assert retries == (kind in CLIENTS[client].get("goes_on", ()))


def code_in_a_stream(failure: Failure) -> str:
    """Return the code with which a stream of `responses` fails."""
    dialect = get("responses")
    stage = Pipeline(dialect.stream_encoder(Request(model="m", stream=True), Losses()), dialect.framing.encoder())
    data = b"".join(through([Started(id="r", model="m"), Failed(failure=failure)], stage))
    events = [json.loads(event.data) for event in through([data], dialect.framing.decoder()) if event.data != b"[DONE]"]
    (response,) = [event["response"] for event in events if event["type"] == "response.failed"]
    return str(response["error"]["code"])


@pytest.mark.parametrize("kind", TRANSIENT)
def test_codex_retries_a_stream(kind: str) -> None:
    """Codex gives up after `server_is_overloaded`, which is OpenAI's word for a model that has no capacity."""
    failure = Failure(kind=kind, message="m")  # type: ignore[arg-type]
    assert code_in_a_stream(failure) not in CLIENTS["codex"]["final_codes"]


@pytest.mark.parametrize("kind", sorted(FINAL | {"authentication", "billing", "permission"}))
def test_codex_gives_a_stream_up(kind: str) -> None:
    """Of the others the code names the kind: Codex does not know it, and tries a few times more."""
    failure = Failure(kind=kind, message="m")  # type: ignore[arg-type]
    gives_up = code_in_a_stream(failure) in CLIENTS["codex"]["final_codes"]
    assert gives_up == (kind not in CLIENTS["codex"]["goes_on_in_streams"])


NUMBERS = ("0", "3", "0.5", "17", "1024", "8192", "65536", "131072", "1048576", "33554432")
"""What may stand in a message where it is put together: seconds, places, and the usual sizes."""


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_fails_again_does_not_whatever_its_numbers_are(pattern: str, number: str) -> None:
    messages = {place: message.replace("...", number) for place, kind, message in written() if kind in FINAL}
    assert {place: message for place, message in messages.items() if re.search(pattern, message)} == {}


@pytest.mark.parametrize("number", [*NUMBERS, "429", "502"])
@pytest.mark.parametrize("name", [name for name, client in CLIENTS.items() if "never" in client])
def test_what_can_be_retried_is_not_given_up_whatever_its_numbers_are(name: str, number: str) -> None:
    messages = {place: message.replace("...", number) for place, kind, message in written() if kind in TRANSIENT}
    assert len(messages) > 10
    never = CLIENTS[name]["never"]
    assert {place: message for place, message in messages.items() if re.search(never, message)} == {}


@pytest.mark.parametrize("kind", [*TRANSIENT, *sorted(FINAL)])
def test_a_message_says_when_to_retry_only_where_that_helps(kind: str) -> None:
    """Clients retry after `try again in`, and Codex waits for as long as that says."""
    failure = Failure(kind=kind, message="m", retry_after=3.0)  # type: ignore[arg-type]
    message = str(encode_failure(failure)["message"])
    assert message.endswith("m Please try again in 3s." if kind in TRANSIENT else "m")


SCOPE = Scope(name="model:m", requests=(Window(amount=1, seconds=60),), tokens=(Window(amount=10, seconds=60),))
REFUSALS = {
    "window": ("window", True),
    "places": ("places", True),
    "never": ("never", False),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("why", "again"), REFUSALS.values(), ids=REFUSALS)
def test_what_our_own_limits_say(why: str, pattern: str, *, again: bool) -> None:
    """These messages are put together when a request is refused."""
    room = AdmissionQueue()
    assert room.try_acquire([SCOPE], 1, 0.0) is not None
    failure = room.refusal([Shortage(scope=SCOPE, reason=why, ends_at=1.0)], 0.0)  # type: ignore[arg-type]
    assert is_retryable(failure) == again
    assert bool(re.search(pattern, failure.message)) == again
