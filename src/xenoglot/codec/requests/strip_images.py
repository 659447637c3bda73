"""Replaces images by text, for a model without vision or a server that does not fetch URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.content import File, Image, Nested, Remote, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.content import Part
    from xenoglot.model.request import Message

UNSEEN = "[a picture that this model cannot see]"
UNFETCHED = "[a picture that could not be fetched]"


def without_pictures(messages: Sequence[Message], target: Target, losses: Losses) -> tuple[Message, ...]:
    """Return the messages, each image that the server cannot take replaced by a text that says so."""
    return tuple(
        replace(message, content=_parts(message.content, f"$.messages[{index}].content", target, losses))
        for index, message in enumerate(messages)
    )


def _parts(parts: Sequence[Part], where: str, target: Target, losses: Losses) -> tuple[Part, ...]:
    return tuple(_part(part, f"{where}[{index}]", target, losses) for index, part in enumerate(parts))


def _part(part: Part, where: str, target: Target, losses: Losses) -> Part:
    match part:
        case Image() if not target.images:
            losses.dropped(where, "image", "the model accepts no images; a text replaces it")
            return Text(text=UNSEEN, cache=part.cache)
        case Image(source=Remote()) if not target.image_urls:
            losses.dropped(where, "image", "the server fetches no URL: send the data; a text replaces it")
            return Text(text=UNFETCHED, cache=part.cache)
        case ToolResult():
            return replace(part, content=_parts(part.content, f"{where}.content", target, losses))
        case File(source=Nested(parts=inner) as source):
            return replace(part, source=replace(source, parts=_parts(inner, f"{where}.source.parts", target, losses)))
        case _:
            return part
