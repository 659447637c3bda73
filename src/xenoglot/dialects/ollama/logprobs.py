"""Encodes and decodes log probabilities of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.dialects.ollama.extras import FAMILY, extra_of, own_fields
from xenoglot.errors import WireError
from xenoglot.model.content import Logprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject


def take_logprobs(reader: Reader) -> tuple[Logprob, ...]:
    """Take `logprobs`.

    Raises:
        WireError: they are no list of tokens with their probabilities.
    """
    return tuple(_decode(item) for item in reader.objects("logprobs"))


def encode_logprobs(logprobs: Sequence[Logprob], where: str, losses: Losses) -> list[JSONObject]:
    """Return the list of tokens, each with the likeliest others at its place."""
    return [_encode(logprob, where, losses) for logprob in logprobs]


def _decode(reader: Reader, *, alternative: bool = False) -> Logprob:
    token, logprob = reader.need("token", str), reader.need("logprob", float)
    codes = reader.take("bytes", list)
    if codes is not None and not all(type(code) is int for code in codes):
        raise WireError(reader.at("bytes"), "expected list of int")
    bare = "top_logprobs" not in reader  # an empty list is left out (`omitempty` in `api/types.go`)
    top = tuple(_decode(item, alternative=True) for item in reader.objects("top_logprobs"))
    return Logprob(
        token=token,
        logprob=logprob,
        bytes=None if codes is None else tuple(codes),
        top=None if alternative and bare else top,
        extra=extra_of(reader, FAMILY, {"bare": bare and not alternative}),
    )


def _encode(logprob: Logprob, where: str, losses: Losses) -> JSONObject:
    fields: JSONObject = {"token": logprob.token, "logprob": logprob.logprob}
    if logprob.bytes is not None:
        fields["bytes"] = list(logprob.bytes)
    if logprob.top is not None and (logprob.top or "bare" not in form_of(logprob.extra, FAMILY)):
        fields["top_logprobs"] = encode_logprobs(logprob.top, where, losses)
    return own_fields(logprob.extra, where, losses, FAMILY) | fields
