"""Every client in front of every server: the words, the tokens and the tool calls come through, whatever the pair."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.matrix.all_dialects_gateway import AllDialectsGateway
from tests.matrix.sdk_clients import (
    QUESTION,
    RESULT,
    SCHEMA,
    TALKERS,
    TOOL,
    WRITERS,
    ReceivedText,
    ReceivedToolAnswer,
    TextClient,
)
from xenoglot import dialect_registry as dialects
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.request import Request, Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLIENTS: dict[str, Callable[[str], TextClient]] = {**TALKERS, **WRITERS}
USAGE = Usage(input_tokens=11, output_tokens=5)
WORDS = Response(
    id="a1",
    created=1,
    candidates=(Candidate(content=(Text(text="Rain, mostly."),), finish=Finish(reason="stop")),),
    usage=USAGE,
)
CALL = Response(
    id="a2",
    created=1,
    candidates=(
        Candidate(
            content=(ToolCall(id="call_1", name=TOOL, arguments='{"city":"Oslo"}'),),
            finish=Finish(reason="tool_calls"),
        ),
    ),
    usage=USAGE,
)
HEARD = ReceivedText("Rain, mostly.", (11, 5))


@pytest.fixture(scope="module")
def all_dialects() -> Iterator[AllDialectsGateway]:
    """Give the gateway with all its servers."""
    with AllDialectsGateway() as running:
        yield running


def user_text(request: Request) -> str:
    """Return what the user said, or the text to be continued."""
    if request.prompt is not None:
        (text,) = request.prompt.texts
        assert isinstance(text, str)
        return text
    return "".join(
        part.text
        for message in request.messages
        if message.role == "user"
        for part in message.content
        if isinstance(part, Text)
    )


@pytest.mark.parametrize("server", dialects.names())
@pytest.mark.parametrize("client", [name for name in CLIENTS if name in dialects.names()])
def test_words(all_dialects: AllDialectsGateway, client: str, server: str) -> None:
    all_dialects.speakers[server].script(WORDS, WORDS)
    with closing(CLIENTS[client](all_dialects.url)) as sdk:
        assert (sdk.ask(f"{server}-m"), sdk.stream(f"{server}-m")) == (HEARD, HEARD)
    asked = all_dialects.speakers[server].requests
    assert [(user_text(request), request.stream) for request in asked] == [(QUESTION, False), (QUESTION, True)]


@pytest.mark.parametrize("server", [name for name in TALKERS if name in dialects.names()])
@pytest.mark.parametrize("client", [name for name in TALKERS if name in dialects.names()])
def test_a_tool(all_dialects: AllDialectsGateway, client: str, server: str) -> None:
    all_dialects.speakers[server].script(CALL, WORDS)
    with closing(TALKERS[client](all_dialects.url)) as sdk:
        assert sdk.call(f"{server}-m") == (ReceivedToolAnswer(TOOL, {"city": "Oslo"}), HEARD)
    first, second = all_dialects.speakers[server].requests
    (tool,) = first.tools
    assert isinstance(tool, Tool)
    assert tool.name == TOOL
    assert tool.parameters["properties"].keys() == SCHEMA["properties"].keys()
    *_, last = (part for message in second.messages for part in message.content)
    assert isinstance(last, ToolResult)
    assert RESULT in "".join(part.text for part in last.content if isinstance(part, Text))


def test_no_dialect_is_left_out() -> None:
    assert sorted(CLIENTS) == list(dialects.names())
