"""Thought signatures that Google's servers write in another dialect: on a call, or on a message for its text.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures#openai; Vertex AI has `vertex` where that has `google`
(https://github.com/earendil-works/pi/issues/6733).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.dialects.gemini.extras import NAME, SIGNATURE
from xenoglot.dialects.gemini.signatures import is_base64

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSONObject

_FIELD = "extra_content"
_MESSAGE = "message"
"""Where an answer of that dialect has the field."""


def take_borrowed(extra: Extra | None, where: str, losses: Losses) -> tuple[Extra | None, str | None]:
    """Return the signature in `extra` of a call or a message, and what is left of `extra` without it."""
    signature = None if extra is None or extra.dialect == NAME else _signature_in(extra.fields)
    if extra is None or signature is None:
        return extra, None
    losses.emulated(where, _FIELD, f"written as `{SIGNATURE}`")
    return replace(extra, fields={key: value for key, value in extra.fields.items() if key != _FIELD}), signature


def take_answered(extra: Extra | None, where: str, losses: Losses) -> tuple[Extra | None, str | None]:
    """Return the same of the `extra` of an answer, which has the fields of its message under a key."""
    message = extra.fields.get(_MESSAGE) if extra is not None else None
    if extra is None or not isinstance(message, dict):
        return extra, None
    inner, signature = take_borrowed(replace(extra, fields=message), f"{where}.{_MESSAGE}", losses)
    if inner is None or signature is None:
        return extra, None
    rest = {key: value for key, value in extra.fields.items() if key != _MESSAGE}
    return replace(extra, fields=rest | ({_MESSAGE: inner.fields} if inner.fields else {})), signature


def sign_words(parts: list[JSONObject], signature: str | None, *, alone: bool = False) -> None:
    """Put a signature on the last words of the encoded `parts`; without words, `alone` adds a part that holds it."""
    if signature is None:
        return
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].keys() == {"text"}:
            parts[index] = {**parts[index], SIGNATURE: signature}
            return
    if alone:
        parts.append({"text": "", SIGNATURE: signature})


def _signature_in(fields: JSONObject) -> str | None:
    match fields.get(_FIELD):
        case {"google": {"thought_signature": str() as signature}} | {
            "vertex": {"thought_signature": str() as signature}
        } if is_base64(signature):
            return signature
        case _:
            return None
