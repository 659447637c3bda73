"""Batches in front of servers that verify who calls: every line is signed in, or refused where only a client could."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anthropic import Anthropic

from tests.backends.remote.sign_in.scripted_tokens import token_endpoint
from tests.gateway.api.test_forward_sign_in import Tokens, signed_in
from tests.gateway.batches.batch_requests import wait_until_ended
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from pathlib import Path

    from anthropic.types.messages import MessageBatchResult

    from xenoglot.model.json import JSONObject

LINES = 3


def results(
    server: Upstream, folder: Path, upstream: JSONObject, environ: dict[str, str], key: str
) -> list[MessageBatchResult]:
    """Return the results of a batch in front of a server of Messages."""
    store: JSONObject = {"url": f"sqlite://{folder}/state.db"}
    gateway = DialectGateway(server, "messages", environ, batches={}, upstream=upstream, store=store)
    with gateway as running, Anthropic(base_url=running.url, api_key=key, max_retries=0) as client:
        batch = client.messages.batches.create(
            requests=[
                {
                    "custom_id": str(number),
                    "params": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
                }
                for number in range(LINES)
            ]
        )
        wait_until_ended(client, batch.id)
        return [line.result for line in client.messages.batches.results(batch.id)]


def test_every_line_has_the_token(tmp_path: Path) -> None:
    with token_endpoint(Tokens().issue) as endpoint, Upstream(*answers("messages", text="Hello.").rules()) as server:
        found = results(server, tmp_path, signed_in(endpoint), {"OIDC": "the.identity.token"}, "whatever")
        shown = [sent.header("authorization") for sent in server.requests]
    assert [one.type for one in found] == ["succeeded"] * LINES
    assert shown == ["Bearer sk-ant-oat01-token-1"] * LINES


def test_a_line_has_no_login_of_a_client(tmp_path: Path) -> None:
    """The client is gone when its lines are sent, and its login is not kept."""
    with Upstream(*answers("messages", text="Hello.").rules()) as server:
        found = results(server, tmp_path, {"auth": "client"}, {}, "sk-ant-api03-of-the-client")
        assert server.requests == []
    errors = [one.error.error for one in found if one.type == "errored"]
    assert [(error.type, "batches have" in error.message) for error in errors] == [
        ("authentication_error", True)
    ] * LINES
