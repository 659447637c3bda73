"""Upstreams that refuse with a status: the client hears it in its own words, with advice that its kind obeys.

U26 and U37 to U42.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from tests.faults.cases import BOTH, FUTILE, OPENAI, Fault, after, are_related, each, everywhere, is_refused, mode_of
from tests.faults.house import House, push, whole
from tests.faults.wires import DIALECTS, error_body

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.faults.cases import Made
    from xenoglot.testing.script import Step

PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx of canary-of-the-wire at 10.0.0.7</body></html>"
SAID = (b"canary-of-the-wire", b"10.0.0.7", b"nginx", b"<html")


def page(status: int) -> Made:
    """Return a refusal by what stands before the upstream: a page for people."""
    return lambda *_: whole(PAGE, status, "text/html", server="nginx", set_cookie="canary-of-the-wire=1")


def plain(status: int, message: str, words: Callable[[str], tuple[str | None, str | None]]) -> Made:
    """Return a refusal in the upstream's own words."""

    def steps(upstream: str, _streamed: bool) -> Sequence[Step]:  # noqa: FBT001 - the shape of a script
        word, code = words(upstream)
        return whole(error_body(upstream, message, word, code, status), status)

    return steps


def by_family(
    openai: tuple[str | None, str | None], messages: str, gemini: str
) -> Callable[[str], tuple[str | None, str | None]]:
    """Return the words by the upstream's dialect."""
    return lambda upstream: openai if upstream in OPENAI else (messages if upstream == "messages" else gemini, None)


INVALID = by_family(("invalid_request_error", None), "invalid_request_error", "INVALID_ARGUMENT")
PAGES = (
    Fault(name="U26-502-page", steps=page(502), said="status 502", unsaid=SAID),
    Fault(name="U26-503-page", steps=page(503), kind="overloaded", unsaid=SAID, status=503),
    Fault(name="U26-504-page", steps=page(504), kind="timeout", unsaid=SAID, status=504),
)
SERVER = by_family(("server_error", None), "api_error", "INTERNAL")
BUSY = by_family(("server_error", "service_unavailable"), "overloaded_error", "UNAVAILABLE")
STATUSES = (
    Fault(name="U38-500", steps=plain(500, "Traceback: canary-of-the-wire", SERVER), kind="internal", unsaid=SAID),
    Fault(name="U38-503", steps=plain(503, "come back", BUSY), kind="overloaded", said="come back", status=503),
    Fault(name="U38-408", steps=page(408), kind="timeout", unsaid=SAID, status=408),
    Fault(name="U38-425", steps=page(425), kind="overloaded", unsaid=SAID, status=425),
    Fault(name="U41-404", steps=page(404), kind="not_found", unsaid=SAID),
    Fault(
        name="U41-no-such-model",
        steps=plain(
            404, "no such model", by_family(("invalid_request_error", "not_found"), "not_found_error", "NOT_FOUND")
        ),
        kind="not_found",
        said="no such model",
    ),
    Fault(name="U40-401", steps=page(401), said="the upstream refused the gateway's credentials", unsaid=SAID),
    Fault(name="U40-403", steps=page(403), said="the upstream refused the gateway's credentials", unsaid=SAID),
)
REDIRECTS = tuple(
    Fault(
        name=f"U42-{status}",
        steps=lambda *_, status=status: whole(PAGE, status, "text/html", location="http://upstream.test/elsewhere"),
        said=f"(status {status})",
        unsaid=(*SAID, b"elsewhere"),
    )
    for status in (301, 302, 303, 307, 308)
)


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), everywhere([*PAGES, *STATUSES]))
def test_a_refusal(house: House, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    async def scene() -> None:
        answer, _ = await is_refused(house, fault, client, upstream, streamed=streamed)
        ours = fault.name.startswith("U40")  # a key that is refused is a matter for whoever runs the gateway
        futile = "false" if ours or fault.kind_at(upstream) in FUTILE else None
        assert answer.headers.get("x-should-retry") == futile
        assert not {"set-cookie", "server"} & answer.headers.keys()
        await push(600)  # a key that was refused is out of use for a while
        await after(house, client, upstream)

    house.play(scene())


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), each(REDIRECTS))
def test_nothing_is_followed(house: House, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    async def scene() -> None:
        answer, _ = await is_refused(house, fault, client, upstream, streamed=streamed)
        assert "location" not in answer.headers
        await after(house, client, upstream)

    house.play(scene())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U38-529-{client}" for client in DIALECTS])
def test_an_overloaded_upstream(house: House, client: str, upstream: str, *, streamed: bool) -> None:
    """529 is Anthropic's own: its clients see it from whomever, others their 503; a client of the same its status."""

    async def scene() -> None:
        fault = Fault(name="U38-529", steps=plain(529, "come back", BUSY), kind="overloaded", said="come back")
        house.upstream.script(fault.steps(upstream, streamed))
        answer = await house.ask(client, f"{upstream}-small", streamed=streamed)
        assert answer.status == (529 if client == "messages" or are_related(client, upstream) else 503)
        assert "x-should-retry" not in answer.headers

    house.play(scene())


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
    each([Fault(name="429", steps=plain(429, "slow down", LIMITED), kind="rate_limit", said="slow down")]),
)
def test_a_rate_limit(house: House, fault: Fault, client: str, upstream: str, wait: str, *, streamed: bool) -> None:  # noqa: PLR0913 - the axes
    """U37: clients always hear how long to wait, and never longer than a minute."""

    async def scene() -> None:
        said, expected = WAITS[wait]
        headers = {
            name: formatdate(time.time() + 30, usegmt=True) if value == "date" else value
            for name, value in said.items()
        }
        word, code = LIMITED(upstream)
        house.upstream.script(whole(error_body(upstream, "slow down", word, code, 429), 429, **headers))
        answer = await house.ask(client, f"{upstream}-small", streamed=streamed)
        assert answer.status == 429
        assert answer.headers["retry-after"] in expected
        assert "x-should-retry" not in answer.headers
        assert house.line()["failure"] == fault.kind
        await push(600)
        await after(house, client, upstream)

    house.play(scene())


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
def test_a_prompt_that_is_too_long(house: House, provider: str, client: str, *, streamed: bool) -> None:
    """Clients compact their history on the words they know."""

    async def scene() -> None:
        upstream, wording = WORDINGS[provider]
        code = "context_length_exceeded" if upstream in OPENAI else None
        fault = Fault(
            name="U39",
            steps=plain(400, wording, lambda name: (INVALID(name)[0], code)),
            kind="context_overflow",
        )
        answer, told = await is_refused(house, fault, client, upstream, streamed=streamed)
        assert answer.headers["x-should-retry"] == "false"
        if client == "messages":
            numbers = "12 tokens > 10 maximum" if "12" in wording else ""
            assert told.message.startswith("prompt is too long")
            assert "12" not in wording or numbers in told.message or provider == "vllm"
        await after(house, client, upstream)

    house.play(scene())
