"""Which features a request needs of a model, and the request conditions of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

from xenoglot.model.content import Audio, File, Image, Nested, Part, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.request import Request

Need: TypeAlias = Literal[
    "tools",
    "images",
    "audio",
    "files",
    "reasoning",
    "structured",
    "logprobs",
    "candidates",
    "completion",
]

NEEDS: tuple[Need, ...] = get_args(Need)
"""`candidates` is more than one answer, `completion` a text to continue in place of turns."""

Tokens = Annotated[int, Meta(ge=1)]


class RequestCondition(Struct, frozen=True, kw_only=True):
    """Condition on requests: all fields that are set must match.

    They have all of `needs` and none of `lacks`; their prompt is estimated at `min_input_tokens` or more, and at
    `max_input_tokens` or fewer; they ask for a `stream`, or not.
    """

    needs: tuple[Need, ...] = ()
    lacks: tuple[Need, ...] = ()
    min_input_tokens: Tokens | None = None
    max_input_tokens: Tokens | None = None
    stream: bool | None = None

    @property
    def counts(self) -> bool:
        """Whether the size of the prompt matters."""
        return self.min_input_tokens is not None or self.max_input_tokens is not None


def matches_when(when: RequestCondition, request: Request, estimate: int) -> bool:
    """Return whether `request`, whose prompt is about `estimate` tokens, is one of those that `when` means."""
    if when.stream not in (None, request.stream):
        return False
    if not (when.min_input_tokens or 0) <= estimate <= (when.max_input_tokens or estimate):
        return False
    if not when.needs and not when.lacks:
        return True
    needs = needs_of(request)
    return needs.issuperset(when.needs) and needs.isdisjoint(when.lacks)


def needs_of(request: Request) -> frozenset[Need]:
    """Return what `request` asks for, and what stands in its history for the model to read."""
    sampling = request.sampling
    asked: dict[Need, bool] = {
        "reasoning": _thinks(request),
        "structured": request.output is not None and request.output.kind != "text",
        "logprobs": bool(sampling.logprobs) or bool(sampling.top_logprobs),
        "candidates": (sampling.n or 1) > 1,
        "completion": request.prompt is not None,
    }
    found = {need for need, wanted in asked.items() if wanted}
    if request.tools:
        found.add("tools")
    for message in request.messages:
        found.update(_of_parts(message.content))
    return frozenset(found)


def _thinks(request: Request) -> bool:
    thinking = request.thinking
    if thinking is None or thinking.mode == "disabled" or thinking.effort == "none":
        return False
    return thinking.mode is not None or thinking.effort is not None or thinking.budget_tokens is not None


def _of_parts(parts: tuple[Part, ...]) -> Iterator[Need]:
    for part in parts:
        match part:
            case Image():
                yield "images"
            case Audio():
                yield "audio"
            case File(source=source):
                yield "files"
                if isinstance(source, Nested):
                    yield from _of_parts(source.parts)
            case ToolCall():
                yield "tools"
            case ToolResult(content=content):
                yield "tools"
                yield from _of_parts(content)
            case _:
                pass  # words
