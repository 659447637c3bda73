"""Paths of losses: wherever a part stands, what it lost is told at a place that is there."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING

import pytest

from tests.laws.test_crossing import TARGET, misplaced
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    CacheMark,
    CompactedHistory,
    Extra,
    File,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Stored,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.request import Message, Request

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER = Extra(dialect="nobody", fields={"odd": 1})
DATA = Inline(data="AAAA", media_type="image/png")
PARTS: dict[str, Part] = {
    "text": Text(text="a", cache=CacheMark(ttl="1h", extra=OTHER), extra=OTHER),
    "refusal": Refusal(text="a", extra=OTHER),
    "compacted": CompactedHistory(text="a", cache=CacheMark(), extra=OTHER),
    "image": Image(source=DATA, detail="high", cache=CacheMark(), extra=OTHER),
    "image-url": Image(source=Remote(url="https://example.com/a.png"), extra=OTHER),
    "image-id": Image(source=Stored(id="file-1"), extra=OTHER),
    "image-odd": Image(source=Inline(data="AAAA", media_type="image/tiff"), extra=OTHER),
    "audio": Audio(source=Inline(data="AAAA", media_type="audio/wav"), transcript="a", extra=OTHER),
    "video": Video(source=Inline(data="AAAA", media_type="video/mp4"), start=1.5, fps=2.0, extra=OTHER),
    "file": File(source=Inline(data="AAAA", media_type="application/pdf"), name="a.pdf", context="c", extra=OTHER),
    "file-text": File(source=Plain(text="a"), name="a.txt", citable=True, extra=OTHER),
    "reasoning": Reasoning(text="a", signature="s", extra=OTHER),
    "opaque": Opaque(dialect="nobody", data={"type": "odd"}, text="a"),
    "opaque-silent": Opaque(dialect="nobody", data={"type": "odd"}),
    "hosted-call": HostedCall(id="h", kind="web_search", arguments="{}", cache=CacheMark(), extra=OTHER),
    "hosted-result": HostedResult(call_id="h", kind="web_search", content=(Text(text="a", extra=OTHER),), extra=OTHER),
    "call": ToolCall(id="c2", name="g", arguments="{}", extra=OTHER),
}
"""Parts of which something is lost nearly everywhere."""

CALL = ToolCall(id="c1", name="f", arguments="{}")
TARGETS = {"able": TARGET, "usual": Target(), "blind": Target(images=False), "no-urls": Target(image_urls=False)}


def nested(part: Part) -> File:
    """Return a file that is made of a text and `part`."""
    return File(source=Nested(parts=(Text(text="first"), part)))


def result(part: Part) -> ToolResult:
    """Return a tool's result of a text and `part`."""
    return ToolResult(call_id="c1", content=(Text(text="first"), part))


PLACES: dict[str, Callable[[Part], Part]] = {
    "in-a-turn": lambda part: part,
    "in-a-file": nested,
    "in-a-file-in-a-file": lambda part: nested(nested(part)),
    "in-a-result": result,
    "in-a-file-in-a-result": lambda part: result(nested(part)),
}


def request_of(role: str, part: Part) -> Request:
    """Return a request in which `part` is not the first of anything."""
    turns = [Message(role="user", content=(Text(text="Hi"),)), Message(role="assistant", content=(CALL,))]
    answer = () if isinstance(part, ToolResult) else (ToolResult(call_id="c1", content=(Text(text="ok"),)),)
    turns.append(Message(role="user", content=(*answer, Text(text="And"))))
    if role == "assistant" or isinstance(part, ToolResult):
        last = turns.pop() if isinstance(part, ToolResult) else None
        turns.append(Message(role="user" if last else "assistant", content=(part, Text(text="too"))))
    else:
        turns[-1] = Message(role="user", content=(*answer, Text(text="And"), part))
    return Request(model="m", messages=tuple(turns))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", names())
def test_every_loss_stands_somewhere_in_the_request(name: str, place: str, target: str) -> None:
    """findings-nested-paths: a loss in a file that is made of parts was told at `$.messages[0].content[0][0]`."""
    for (kind, part), role in product(PARTS.items(), ("user", "assistant")):
        request, losses = request_of(role, PLACES[place](part)), Losses()
        able = TARGETS[target]
        with suppress(WireError):
            get(name).encode_request(fitted(request, name, able, losses), losses, able)
        assert misplaced(losses, request) == [], (kind, role)
