"""Thought signatures of calls and text, as Google's OpenAI-compatible server writes them.

The field is `extra_content.google.thought_signature`.
Source: https://ai.google.dev/gemini-api/docs/thought-signatures#openai. That of a call is in the call, that of words in
the message, or in a delta of it. Clients that return a message as they got it return the signatures, and a model
without them loses its reasoning within a loop of tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.reasoning import FORMATS
from xenoglot.model.content import Extra, Reasoning, Refusal, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part, ToolCall
    from xenoglot.model.json import JSON, JSONObject

FIELD = "extra_content"
"""The field of a call, a message or a delta that holds what only Google's servers send."""

_MAKER = FORMATS["google-gemini-v1"].dialect
_SIGNATURE = "thoughtSignature"


def with_signature(call: ToolCall, where: str, losses: Losses) -> ToolCall:
    """Return a call of an answer with the signature that it has in its maker's dialect, in the field of this one."""
    signature = _signature_of(call)
    if signature is None:
        return call
    carry_unsigned(call, where, losses)
    return replace(call, extra=Extra(dialect=NAME, fields=_written(signature, where, losses)))


def carry_unsigned(part: Text | Refusal | ToolCall, where: str, losses: Losses) -> None:
    """Record what of the `extra` of a part is dropped, its signature apart: that is written."""
    extra = part.extra
    if extra is not None and _signature_of(part) is not None:
        extra = replace(extra, fields={key: value for key, value in extra.fields.items() if key != _SIGNATURE})
    losses.carry(extra, where, NAME)


def unsigned(part: Part) -> Part:
    """Return words without their signature, which is written elsewhere; any other part as it is."""
    extra = part.extra if isinstance(part, Text) and _signature_of(part) is not None else None
    if extra is None:
        return part
    rest = {key: value for key, value in extra.fields.items() if key != _SIGNATURE}
    return replace(part, extra=replace(extra, fields=rest))


def is_seal_alone(part: Part) -> TypeGuard[Reasoning]:
    """Whether a part is a signature of its maker's and nothing else."""
    if not isinstance(part, Reasoning) or part.text is not None or part.summary or part.encrypted is not None:
        return False
    return part.signature is not None and part.origin is not None and part.origin.dialect == _MAKER


def message_signature(parts: Sequence[tuple[str, Part]], losses: Losses) -> JSONObject:
    """Return the field of a message for the signature of its words, each given with its path, or for one alone.

    A message has one: the last.
    """
    signed = [(at, signature) for at, part in parts if (signature := _message_signature(part))]
    for at, _ in signed[:-1]:
        losses.dropped(at, _SIGNATURE, "a message has one signature, that of its last text")
    return _written(signed[-1][1], signed[-1][0], losses) if signed else {}


def is_signature(value: JSON) -> bool:
    """Whether the value of `extra_content` is a signature and nothing else."""
    match value:
        case {"google": {"thought_signature": str()} as inner} | {"vertex": {"thought_signature": str()} as inner}:
            return len(value) == len(inner) == 1
        case _:
            return False


def _message_signature(part: Part) -> str | None:
    if is_seal_alone(part):
        return part.signature
    return _signature_of(part) if isinstance(part, Text) else None


def _signature_of(part: Text | Refusal | ToolCall) -> str | None:
    extra = None if isinstance(part, Refusal) else part.extra
    signature = extra.fields.get(_SIGNATURE) if extra is not None and extra.dialect == _MAKER else None
    return signature if isinstance(signature, str) else None


def _written(signature: str, where: str, losses: Losses) -> JSONObject:
    losses.emulated(where, _SIGNATURE, "written as `extra_content.google.thought_signature`")
    return {FIELD: {"google": {"thought_signature": signature}}}
