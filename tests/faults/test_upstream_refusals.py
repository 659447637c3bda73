"""Upstreams that refuse with a status: the client hears it in its own words, with advice that its kind obeys.

U26 and U37 to U42.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from tests.faults.fault_cases import (
    BOTH,
    NON_RETRYABLE,
    OPENAI,
    Fault,
    are_related,
    assert_fault_refused,
    assert_next_request_completes,
    each_dialect,
    every_pair,
    mode_of,
)
from tests.faults.manual_clock import advance
from tests.faults.upstream_steps import whole_response
from tests.faults.wire_responses import DIALECTS, error_body

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.faults.fault_cases import Made
    from tests.faults.harness import GatewayHarness
    from xenoglot.testing.script import Step

PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx of canary-of-the-wire at 10.0.0.7</body></html>"
HIDDEN = (b"canary-of-the-wire", b"10.0.0.7", b"nginx", b"<html")


def page(status: int) -> Made:
    """Return a refusal by what stands before the upstream: a page for people."""
    return lambda *_: whole_response(PAGE, status, "text/html", server="nginx", set_cookie="canary-of-the-wire=1")


def plain(status: int, message: str, words: Callable[[str], tuple[str | None, str | None]]) -> Made:
    """Return a refusal in the upstream's own words."""

    def steps(upstream: str, _streamed: bool) -> Sequence[Step]:  # noqa: FBT001 - the shape of a script
        word, code = words(upstream)
        return whole_response(error_body(upstream, message, word, code, status), status)

    return steps


def by_family(
    openai: tuple[str | None, str | None], messages: str, gemini: str
) -> Callable[[str], tuple[str | None, str | None]]:
    """Return the words by the upstream's dialect."""
    return lambda upstream: openai if upstream in OPENAI else (messages if upstream == "messages" else gemini, None)


INVALID = by_family(("invalid_request_error", None), "invalid_request_error", "INVALID_ARGUMENT")
PAGES = (
    Fault(name="U26-502-page", steps=page(502), message="status 502", hidden=HIDDEN),
    Fault(name="U26-503-page", steps=page(503), kind="overloaded", hidden=HIDDEN, status=503),
    Fault(name="U26-504-page", steps=page(504), kind="timeout", hidden=HIDDEN, status=504),
)
SERVER = by_family(("server_error", None), "api_error", "INTERNAL")
BUSY = by_family(("server_error", "service_unavailable"), "overloaded_error", "UNAVAILABLE")
STATUSES = (
    Fault(name="U38-500", steps=plain(500, "Traceback: canary-of-the-wire", SERVER), kind="internal", hidden=HIDDEN),
    Fault(name="U38-503", steps=plain(503, "come back", BUSY), kind="overloaded", message="come back", status=503),
    Fault(name="U38-408", steps=page(408), kind="timeout", hidden=HIDDEN, status=408),
    Fault(name="U38-425", steps=page(425), kind="overloaded", hidden=HIDDEN, status=425),
    Fault(name="U41-404", steps=page(404), kind="not_found", hidden=HIDDEN),
    Fault(
        name="U41-no-such-model",
        steps=plain(
            404, "no such model", by_family(("invalid_request_error", "not_found"), "not_found_error", "NOT_FOUND")
        ),
        kind="not_found",
        message="no such model",
    ),
    Fault(name="U40-401", steps=page(401), message="the upstream refused the gateway's credentials", hidden=HIDDEN),
    Fault(name="U40-403", steps=page(403), message="the upstream refused the gateway's credentials", hidden=HIDDEN),
)
REDIRECTS = tuple(
    Fault(
        name=f"U42-{status}",
        steps=lambda *_, status=status: whole_response(
            PAGE, status, "text/html", location="http://upstream.test/elsewhere"
        ),
        message=f"(status {status})",
        hidden=(*HIDDEN, b"elsewhere"),
    )
    for status in (301, 302, 303, 307, 308)
)


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), every_pair([*PAGES, *STATUSES]))
def test_a_refusal(harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        answer, _ = await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        ours = fault.name.startswith("U40")  # a key that is refused is a matter for whoever runs the gateway
        futile = "false" if ours or fault.kind_at(upstream) in NON_RETRYABLE else None
        assert answer.headers.get("x-should-retry") == futile
        assert not {"set-cookie", "server"} & answer.headers.keys()
        await advance(600)  # a key that was refused is out of use for a while
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), each_dialect(REDIRECTS))
def test_nothing_is_followed(
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        answer, _ = await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        assert "location" not in answer.headers
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U38-529-{client}" for client in DIALECTS])
def test_an_overloaded_upstream(harness: GatewayHarness, client: str, upstream: str, *, streamed: bool) -> None:
    """529 is Anthropic's own: its clients see it from whomever, others their 503; a client of the same its status."""

    async def scenario() -> None:
        fault = Fault(name="U38-529", steps=plain(529, "come back", BUSY), kind="overloaded", message="come back")
        harness.upstream.script(fault.steps(upstream, streamed))
        answer = await harness.request(client, f"{upstream}-small", streamed=streamed)
        assert answer.status == (529 if client == "messages" or are_related(client, upstream) else 503)
        assert "x-should-retry" not in answer.headers

    harness.run(scenario())


WAITS = {
    "seconds": ({"retry_after": "7"}, {"7"}),
    "date": ({"retry_after": "date"}, {"29", "30", "31"}),
    "past-date": ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, {"0"}),
    "milliseconds": ({"retry_after_ms": "1500"}, {"2"}),
    "negative": ({"retry_after": "-7"}, {"5"}),
    "nan": ({"retry_after": "nan"}, {"5"}),
    "1e9": ({"retry_after": "1e9"}, {"60"}),
    "infinity": ({"retry_after": "inf"}, {"5"}),
    "words": ({"retry_after": "soon"}, {"5"}),
    "missing": ({}, {"5"}),
}
LIMITED = by_family(("rate_limit_error", "rate_limit_exceeded"), "rate_limit_error", "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize("wait", WAITS, ids=[f"U37-{wait}" for wait in WAITS])
@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"),
    each_dialect([Fault(name="429", steps=plain(429, "slow down", LIMITED), kind="rate_limit", message="slow down")]),
)
def test_a_rate_limit(  # noqa: PLR0913 - the axes
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, wait: str, *, streamed: bool
) -> None:
    """U37: clients always hear how long to wait, and never longer than a minute."""

    async def scenario() -> None:
        said, expected = WAITS[wait]
        headers = {
            name: formatdate(time.time() + 30, usegmt=True) if value == "date" else value
            for name, value in said.items()
        }
        word, code = LIMITED(upstream)
        harness.upstream.script(whole_response(error_body(upstream, "slow down", word, code, 429), 429, **headers))
        answer = await harness.request(client, f"{upstream}-small", streamed=streamed)
        assert answer.status == 429
        assert answer.headers["retry-after"] in expected
        assert "x-should-retry" not in answer.headers
        assert harness.access_log_line()["failure"] == fault.kind
        await advance(600)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


WORDINGS = {
    "openai": (
        "chat",
        "This model's maximum context length is 10 tokens. However, your messages resulted in 12 tokens.",
    ),
    "vllm": (
        "completions",
        "This model's maximum context length is 10 tokens. However, you requested 12 tokens (9 in your prompt).",
    ),
    "anthropic": ("messages", "prompt is too long: 12 tokens > 10 maximum"),
    "gemini": ("gemini", "The input token count (12) exceeds the maximum number of tokens allowed (10)."),
    "mistral": (
        "chat",
        "Prompt contains 12 tokens and 0 draft tokens, too large for model with 10 maximum context length",
    ),
    "together": (
        "chat",
        "`inputs` tokens + `max_new_tokens` must be <= 10. Given: 12 `inputs` tokens and 3 `max_new_tokens`",
    ),
    "llama.cpp": ("chat", "request (12 tokens) exceeds the available context size (10 tokens), try increasing it"),
    "xai": ("chat", "This model's maximum prompt length is 10 but the request contains 12 tokens."),
    "ollama": ("ollama", "the input length exceeds the context length"),
    "llama-stack": (
        "llama_stack",
        "This model's maximum context length is 10 tokens. However, your messages resulted in 12 tokens.",
    ),
    "responses": ("responses", "Your input exceeds the context window of this model. Please adjust your input."),
}


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("provider", WORDINGS, ids=[f"U39-{provider}" for provider in WORDINGS])
def test_a_prompt_that_is_too_long(harness: GatewayHarness, provider: str, client: str, *, streamed: bool) -> None:
    """Clients compact their history on the words they know."""

    async def scenario() -> None:
        upstream, wording = WORDINGS[provider]
        code = "context_length_exceeded" if upstream in OPENAI else None
        fault = Fault(
            name="U39",
            steps=plain(400, wording, lambda name: (INVALID(name)[0], code)),
            kind="context_overflow",
        )
        answer, told = await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        assert answer.headers["x-should-retry"] == "false"
        if client == "messages":
            numbers = "12 tokens > 10 maximum" if "12" in wording else ""
            assert told.message.startswith("prompt is too long")
            assert "12" not in wording or numbers in told.message or provider == "vllm"
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())
