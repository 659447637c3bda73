"""A request as Claude Code sends it, 90 KB with all its betas, to an upstream of each dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.matrix.case import HELLO, chat_usage, delta, last_usage, stream_body
from tests.matrix.claude_code import ASKED, BETAS, HEADERS, LOST, MCP, MCP_FITTED, TOLD
from tests.matrix.matrix_gateway import MatrixGateway, model
from tests.matrix.sdk import SyncMessages, to_json
from tests.matrix.test_matrix import upstream_headers
from tests.matrix.upstream import Received, stream_reply
from xenoglot.gateway.observability.request_log import MAX_LOSSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSON

SIZE = 90_000


@pytest.fixture
def claude_code(matrix_gateway: MatrixGateway) -> Iterator[SyncMessages]:
    """Give anthropic with the headers of Claude Code."""
    client = SyncMessages(matrix_gateway.url, default_headers=HEADERS)
    yield client
    client.close()


def exchange(
    client: SyncMessages, matrix_gateway: MatrixGateway, upstream: str, answer: bytes
) -> tuple[Received, JSON]:
    """Return what the upstream was asked, and what the client heard."""
    matrix_gateway.upstreams[upstream].script(stream_reply(answer))
    with client.client.beta.messages.stream(model=model(upstream), betas=BETAS, **ASKED) as stream:
        heard = to_json(stream.get_final_message())
    (received,) = matrix_gateway.upstreams[upstream].received()
    assert len(client.tap.sent) > SIZE
    return received, heard["content"]


def test_at_home(matrix_gateway: MatrixGateway, claude_code: SyncMessages, lines: AccessLines) -> None:
    received, heard = exchange(
        claude_code, matrix_gateway, "messages", stream_body("messages", HELLO["messages"].stream)
    )
    assert received.body == claude_code.tap.sent
    assert received.lasting == upstream_headers("messages", "messages", "streamed") | {
        "anthropic-beta": ",".join(BETAS)
    }
    assert heard == [{"type": "text", "text": "Hello"}]
    assert lines.next()["losses"] == []


def test_across(matrix_gateway: MatrixGateway, claude_code: SyncMessages, lines: AccessLines) -> None:
    """The tool whose name was too long for the upstream is called by the name that the client knows."""
    called = {"index": 0, "id": "call_1", "type": "function", "function": {"name": MCP_FITTED, "arguments": "{}"}}
    answer = (delta(tool_calls=[called]), delta("tool_calls"), last_usage(chat_usage(9, 9)))
    received, heard = exchange(claude_code, matrix_gateway, "chat", stream_body("chat", answer))
    assert received.json == {"model": model("chat"), **TOLD}
    assert received.lasting == upstream_headers("messages", "chat", "streamed")
    assert heard == [{"type": "tool_use", "id": "call_1", "name": MCP, "input": {}}]
    assert lines.next()["losses"] == list(LOST[:MAX_LOSSES])
