"""Thought signatures: the dialect's own, in base64, and those of another dialect, wrapped for the client to return.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures. The field holds bytes, so what is no base64 cannot
stand in it; the official SDK for Python writes them in the URL-safe alphabet.

Thought signatures that Google's servers write in another dialect: on a call, or on a message for its text.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures#openai; Vertex AI has `vertex` where that has `google`
(https://github.com/earendil-works/pi/issues/6733).
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64decode
from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.dialects.gemini.extras import NAME, SIGNATURE
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Origin, Reasoning

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part, Refusal, Text
    from xenoglot.model.json import JSON, JSONObject


_MARK = b"xenoglot:sealed:"
_HEAD = b64encode(_MARK[:15]).decode()
"""How every wrapped signature begins, whatever follows."""

APART = "signature_apart"
"""Key of the `form` of words whose signature stands in a part of its own after them."""

UNCHECKED = "skip_thought_signature_validator"
"""The signature of a call that no model of the dialect made: servers let it pass.

See https://ai.google.dev/gemini-api/docs/thought-signatures#faqs.
"""


def sealed(part: Reasoning, signature: str, form: JSONObject) -> Reasoning:
    """Return `part` with what the `thoughtSignature` of its part holds."""
    brought = _unpack(signature) if signature.startswith(_HEAD) else None
    if brought is None:
        whole = replace(part, signature=signature, origin=Origin(dialect=NAME))
    else:
        dialect, provider, seal, encrypted, redacted = brought
        origin = None if dialect is None else Origin(dialect=dialect, provider=provider)
        whole = replace(part, signature=seal, encrypted=encrypted, redacted=redacted is True, origin=origin)
        form = {**form, "signature": signature}
    if not form:
        return whole
    extra = part.extra or Extra(dialect=NAME)
    return replace(whole, extra=replace(extra, form={**extra.form, **form}))


def signature_of(part: Reasoning) -> str | None:
    """Return the `thoughtSignature` that a client of the dialect returns; `None` for reasoning without a signature."""
    extra = part.extra
    if extra is not None and extra.dialect == NAME and "signature" in extra.form:
        given: str = extra.form["signature"]
        return given
    if part.signature is None and part.encrypted is None:
        return None
    if is_own(part) and part.encrypted is None and part.signature and is_base64(part.signature):
        return part.signature
    return _pack(part)


def is_seal_alone(part: Part) -> TypeGuard[Reasoning]:
    """Whether a part is nothing but a signature of this dialect, as servers send it after the words that it is for."""
    if not isinstance(part, Reasoning) or part.text is not None or part.signature is None or not is_own(part):
        return False
    extra = part.extra
    return extra is not None and not extra.fields and extra.form == {"part": "text"}


def signed(extra: Extra | None, signature: str | None) -> Extra:
    """Return the `extra` of words whose signature follows them in a part of its own, as it is written again."""
    form = {} if extra is None else extra.form
    return Extra(dialect=NAME, fields={SIGNATURE: signature}, form={**form, APART: True})


def signature_of_words(part: Text | Refusal) -> str | None:
    """Return the signature of words that came from this dialect, if they have one."""
    extra = part.extra
    signature = extra.fields.get(SIGNATURE) if extra is not None and extra.dialect == NAME else None
    return signature if isinstance(signature, str) else None


def split(encoded: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Return words without their signature, and the part that holds it."""
    words = {key: value for key, value in encoded.items() if key != SIGNATURE}
    return words, {"text": "", SIGNATURE: encoded.get(SIGNATURE)}


def is_own(part: Reasoning) -> bool:
    """Whether a server of this dialect signed the reasoning."""
    return part.origin is not None and part.origin.dialect == NAME


def _pack(part: Reasoning) -> str:
    origin = part.origin
    dialect, provider = (None, None) if origin is None else (origin.dialect, origin.provider)
    seal = encode_json([dialect, provider, part.signature, part.encrypted, part.redacted or None])
    return b64encode(_MARK + seal).decode()


def _unpack(signature: str) -> tuple[str | None, str | None, str | None, str | None, bool | None] | None:
    data = _decoded(signature)
    if data is None or not data.startswith(_MARK):
        return None
    try:
        value: JSON = decode_json(data.removeprefix(_MARK))
    except WireError:
        return None
    match value:
        case [str() | None as dialect, str() | None as provider, str() | None as seal, str() | None as more, redacted]:
            return dialect, provider, seal, more, redacted is True
        case _:
            return None


def is_base64(text: str) -> bool:
    """Whether a text can stand in the field, which holds bytes."""
    return _decoded(text) is not None


def _decoded(text: str) -> bytes | None:
    """Return the bytes of base64 in either alphabet, with or without its padding."""
    try:
        standard = text.replace("+", "-").replace("/", "_")
        data = urlsafe_b64decode(standard + "=" * (-len(standard) % 4))
    except ValueError:
        return None
    written = b64encode(data).decode().rstrip("=").replace("+", "-").replace("/", "_")
    return data if written == standard.rstrip("=") else None


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
