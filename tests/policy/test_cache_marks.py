"""Cache marks: at the end of what later requests have in common, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import CacheMark, Image, Inline, Opaque, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Prompt, Request, Tool
from xenoglot.policy.cache_marks import with_cache_marks

if TYPE_CHECKING:
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Role

LONG = "The quick brown fox jumps over the lazy dog. " * 30
"""More than 100 tokens."""
LEAST = 100
TOOL = Tool(name="search", description=LONG, parameters={"type": "object"})
SHORT_TOOL = Tool(name="search", parameters={"type": "object"})


def say(role: Role, *content: str | Part) -> Message:
    parts = tuple(Text(text=part) if isinstance(part, str) else part for part in content)
    return Message(role=role, content=parts)


def conversation(*messages: Message, tools: tuple[Tool | Opaque, ...] = ()) -> Request:
    return Request(model="m", messages=messages, tools=tools)


def marks(request: Request) -> list[str]:
    """Where marks stand: of tools by index, of messages by index and part."""
    found = [f"tool {at}" for at, tool in enumerate(request.tools) if isinstance(tool, Tool) and tool.cache]
    for at, message in enumerate(request.messages):
        found += [f"{at}.{place}" for place, part in enumerate(message.content) if getattr(part, "cache", None)]
    return found


FIRST = (say("system", LONG), say("user", "Hi"))
SECOND = (*FIRST, say("assistant", "Hello."), say("user", "And now?"))
RESULT = ToolResult(call_id="1", content=(Text(text="found"),))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(conversation(*FIRST), ["0.0"], id="first-turn-is-not-marked"),
        pytest.param(conversation(*FIRST, tools=(TOOL,)), ["tool 0", "0.0"], id="tools-and-system"),
        pytest.param(conversation(*FIRST, tools=(SHORT_TOOL,)), ["0.0"], id="short-tools-are-marked-by-system"),
        pytest.param(conversation(*SECOND), ["0.0", "1.0", "3.0"], id="this-turn-and-that-of-the-request-before"),
        pytest.param(conversation(*SECOND, tools=(TOOL,)), ["tool 0", "0.0", "1.0", "3.0"], id="four-at-most"),
        pytest.param(
            conversation(*SECOND, say("assistant", "Later."), say("user", "When?")), ["0.0", "3.0", "5.0"], id="goes-on"
        ),
        pytest.param(conversation(*SECOND, say("assistant", "Well,")), ["0.0", "1.0", "3.0"], id="begun-answer"),
        pytest.param(
            conversation(
                *FIRST,
                say("assistant", ToolCall(id="1", name="search")),
                say("tool", RESULT),
            ),
            ["0.0", "1.0", "3.0"],
            id="result-of-a-tool",
        ),
        pytest.param(conversation(say("user", "Hi")), [], id="below-the-minimum"),
        pytest.param(
            conversation(say("user", "Hi"), say("assistant", LONG), say("user", "More")),
            ["2.0"],
            id="long-from-there-on",
        ),
        pytest.param(conversation(say("system", LONG, ""), say("user", "Hi")), ["0.0"], id="no-mark-on-empty-text"),
        pytest.param(
            conversation(say("system", LONG), say("user", "a", Opaque(dialect="messages", data={}))),
            ["0.0"],
            id="no-mark-on-opaque-parts",
        ),
        pytest.param(
            conversation(say("system", LONG), say("developer", "Be brief."), say("user", "Hi")),
            ["1.0"],
            id="end-of-the-system-prompt",
        ),
        pytest.param(
            conversation(say("user", "Hi"), tools=(TOOL, Opaque(dialect="messages", data={"type": "web_search"}))),
            [],
            id="no-mark-on-a-tool-of-the-provider",
        ),
        pytest.param(Request(model="m", prompt=Prompt(texts=(LONG,))), [], id="prompt-without-turns"),
    ],
)
def test_where_marks_stand(request_: Request, expected: list[str]) -> None:
    marked = with_cache_marks(request_, LEAST)
    assert marks(marked) == expected
    assert without_marks(marked) == request_


def without_marks(request: Request) -> Request:
    tools = tuple(replace(tool, cache=None) if isinstance(tool, Tool) else tool for tool in request.tools)
    messages = tuple(
        replace(
            message,
            content=tuple(replace(part, cache=None) if hasattr(part, "cache") else part for part in message.content),
        )
        for message in request.messages
    )
    return replace(request, tools=tools, messages=messages)


MARK = CacheMark(ttl="1h")


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(replace(conversation(*SECOND), cache=MARK), id="request"),
        pytest.param(conversation(*SECOND, tools=(replace(TOOL, cache=MARK),)), id="tool"),
        pytest.param(conversation(*SECOND, say("user", Text(text="x", cache=MARK))), id="text"),
        pytest.param(conversation(*SECOND, say("user", Image(source=Inline("AA=="), cache=MARK))), id="image"),
        pytest.param(
            conversation(*SECOND, say("tool", replace(RESULT, content=(Text(text="x", cache=MARK),)))), id="in-a-result"
        ),
    ],
)
def test_a_request_with_a_mark_of_its_own_is_unchanged(own: Request) -> None:
    assert with_cache_marks(own, LEAST) is own


def test_the_next_request_finds_what_this_one_marked() -> None:
    """Each mark but the last turn's stands on the same words in the next request, so that its prefix is found."""
    before = with_cache_marks(conversation(*SECOND, tools=(TOOL,)), LEAST)
    after = with_cache_marks(conversation(*SECOND, say("assistant", "Yes."), say("user", "So?"), tools=(TOOL,)), LEAST)
    assert marks(before)[-1] == "3.0"
    assert "3.0" in marks(after)


def test_marks_on_the_wire() -> None:
    reasoning = Reasoning(text="hm", encrypted="sig")
    request = conversation(*FIRST, say("assistant", reasoning, "Hello."), say("user", "And now?"), tools=(TOOL,))
    body = get("messages").encode_request(with_cache_marks(request, LEAST), Losses(), Target())
    assert wire_marks(body) == ["$.messages[0].content[0]", "$.messages[2].content[0]", "$.system[0]", "$.tools[0]"]


def wire_marks(value: JSON, path: str = "$") -> list[str]:
    """The paths of all objects with a mark, in order."""
    if isinstance(value, list):
        return sorted(found for at, item in enumerate(value) for found in wire_marks(item, f"{path}[{at}]"))
    if not isinstance(value, dict):
        return []
    body: JSONObject = value
    own = [path] if body.get("cache_control") == {"type": "ephemeral"} else []
    return sorted(own + [found for key, item in body.items() for found in wire_marks(item, f"{path}.{key}")])
