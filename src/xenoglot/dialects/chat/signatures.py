"""Signatures of calls as Google's server of this dialect writes them: `extra_content.google.thought_signature`.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures#openai. Clients that return a call as they got it
return the signature, and a model without it loses its reasoning within a loop of tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.dialects.chat.leftovers import NAME
from xenoglot.dialects.chat.reasoning import FORMATS
from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import ToolCall

_MAKER = FORMATS["google-gemini-v1"].dialect
_FIELD = "thoughtSignature"


def with_signature(call: ToolCall, where: str, losses: Losses) -> ToolCall:
    """Return a call of an answer with the signature that it has in its maker's dialect, in the field of this one."""
    extra = call.extra
    signature = extra.fields.get(_FIELD) if extra is not None and extra.dialect == _MAKER else None
    if extra is None or not isinstance(signature, str):
        return call
    losses.carry(
        replace(extra, fields={key: value for key, value in extra.fields.items() if key != _FIELD}), where, NAME
    )
    losses.emulated(where, _FIELD, "written as `extra_content.google.thought_signature`")
    fields = {"extra_content": {"google": {"thought_signature": signature}}}
    return replace(call, extra=Extra(dialect=NAME, fields=fields))
