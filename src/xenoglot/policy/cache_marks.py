"""Cache marks for servers that cache a prompt only where it is marked, set where the client set none.

Such a server caches the prompt up to a mark, in the order tools, system, messages, and bills what it reads from the
cache at a fraction. So a mark belongs at the end of what later requests have in common. Tools and system prompt stay
the same from request to request. A conversation grows at its end: its last turn is marked, so that the next request
finds it, and the user's turn before, where the request before left its mark. A first turn alone is not marked: nothing
shows that it will be continued, and writing costs more than reading.

Sources: https://platform.claude.com/docs/en/build-with-claude/prompt-caching (at most four marks; a prefix below the
least length is not cached, without an error; empty text and reasoning take no mark; a mark is looked up 20 blocks
back), https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html (the same marks and lengths).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.model.content import Audio, CacheMark, File, Image, Text, ToolCall, ToolResult, Video
from xenoglot.model.request import Request, RequestTool, Tool
from xenoglot.policy.token_estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.request import Message

MARK: Final = CacheMark()

_MARKABLE = (Text, Image, File, Audio, Video, ToolCall, ToolResult)
_SYSTEM: Final = ("system", "developer")
_GIVEN: Final = ("user", "tool")
"""Roles of the turns that a request adds; the turn of the assistant is between two of them."""


def with_cache_marks(request: Request, minimum: int) -> Request:
    """Return `request` with at most four marks, each after at least `minimum` tokens, as they are estimated.

    A request with a mark of its own, or whose prompt is no conversation, is returned as it is.
    """
    if request.prompt is not None or _is_marked(request):
        return request
    messages = list(request.messages)
    head = _leading(messages)
    tools = _estimate(request, ())
    before = _estimate(request, messages[:head])
    if request.tools and tools >= minimum:
        request = replace(request, tools=_mark_tools(request.tools))
    if head and before >= minimum:
        messages[head - 1] = _mark_message(messages[head - 1])
    for index in _turns(messages, head):
        if _estimate(request, messages[: index + 1]) >= minimum:
            messages[index] = _mark_message(messages[index])
    return replace(request, messages=tuple(messages))


def _estimate(request: Request, messages: Sequence[Message]) -> int:
    """Return about how many tokens the tools and the first messages are."""
    return estimate(Request(model="", tools=request.tools, messages=tuple(messages)))


def _leading(messages: Sequence[Message]) -> int:
    """Return how many messages the system prompt is."""
    return next((index for index, one in enumerate(messages) if one.role not in _SYSTEM), len(messages))


def _turns(messages: Sequence[Message], head: int) -> Sequence[int]:
    """Return the last turn that was added to the conversation, and the last of the request before; none of the first.

    A beginning of the answer, after the last turn, is not part of it.
    """
    given = [index for index in range(head, len(messages)) if messages[index].role in _GIVEN]
    if not given:
        return ()
    last = given[-1]
    answers = [index for index in range(head, last) if messages[index].role == "assistant"]
    earlier = [index for index in given if answers and index < answers[-1]]
    return (last, earlier[-1]) if earlier else ()


def _is_marked(request: Request) -> bool:
    """Return whether the client set a mark anywhere."""
    if request.cache is not None or any(isinstance(tool, Tool) and tool.cache is not None for tool in request.tools):
        return True
    return any(_has_mark(part) for message in request.messages for part in message.content)


def _has_mark(part: Part) -> bool:
    if isinstance(part, ToolResult) and any(_has_mark(inner) for inner in part.content):
        return True
    return isinstance(part, _MARKABLE) and part.cache is not None


def _mark_message(message: Message) -> Message:
    content = _mark_last(message.content)
    return message if content is message.content else replace(message, content=content)


def _mark_last(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return `parts` with a mark on the last that takes one; the same where none does."""
    for index in reversed(range(len(parts))):
        part = parts[index]
        if isinstance(part, _MARKABLE) and not (isinstance(part, Text) and not part.text):
            return (*parts[:index], replace(part, cache=MARK), *parts[index + 1 :])
    return parts


def _mark_tools(tools: tuple[RequestTool, ...]) -> tuple[RequestTool, ...]:
    last = tools[-1]
    return (*tools[:-1], replace(last, cache=MARK)) if isinstance(last, Tool) else tools
