"""What tests of agents share: a model that plays a script, and an agent that works with it in a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from xenoglot.agent.agent import Agent, AgentSettings
from xenoglot.agent.permissions import Permissions, tools_for
from xenoglot.agent.sandbox.environment import for_command
from xenoglot.agent.sandbox.workspace import Workspace
from xenoglot.client.async_ import AsyncClient
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from xenoglot.agent.session.session_files import SessionFile
    from xenoglot.backends.scripted import Scripted
    from xenoglot.model.content import Part
    from xenoglot.model.request import Message

ALL = Permissions(write="yes", shell="yes")  # noqa: S604  a permission
USAGE = Usage(input_tokens=10, output_tokens=5)


def text_answer(text: str) -> Response:
    """Return an answer in words, which ends the work."""
    return _response((Text(text=text),), Finish(reason="stop"))


def tool_call_answer(*calls: tuple[str, dict[str, object]], first: int = 1) -> Response:
    """Return an answer that calls tools; their ids count from `first`."""
    parts = tuple(
        ToolCall(id=f"call_{number}", name=name, arguments=msgspec.json.encode(arguments).decode())
        for number, (name, arguments) in enumerate(calls, first)
    )
    return _response(parts, Finish(reason="tool_calls"))


def _response(content: tuple[Part, ...], finish: Finish) -> Response:
    candidate = Candidate(content=content, finish=finish)
    return Response(id="r", model="scripted", candidates=(candidate,), usage=USAGE)


def agent_in(
    folder: Path,
    model: Scripted,
    permissions: Permissions = ALL,
    session: SessionFile | None = None,
    manner: AgentSettings | None = None,
) -> Agent:
    """Return an agent that works in `folder`."""
    tools = tools_for(Workspace(folder), permissions, environ=for_command(os.environ))
    return Agent(AsyncClient(model), tools, manner or AgentSettings(system="Work."), session)


def tool_results(messages: Sequence[Message]) -> list[str]:
    """Return what tools have answered, in order: an exclamation mark before errors."""
    return [
        ("!" if part.is_error else "") + "".join(piece.text for piece in part.content if isinstance(piece, Text))
        for message in messages
        for part in message.content
        if isinstance(part, ToolResult)
    ]


def assert_valid(messages: Sequence[Message]) -> None:
    """Check that each call has one result, and each result its call."""
    calls = [part.id for message in messages for part in message.content if isinstance(part, ToolCall)]
    answered = [part.call_id for message in messages for part in message.content if isinstance(part, ToolResult)]
    assert calls == answered
