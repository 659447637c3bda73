"""Encodes and decodes log probabilities of tokens: `logprobsResult` of a candidate.

Source: `LogprobsResult` (https://ai.google.dev/api/generate-content#LogprobsResult).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.model.content import Logprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject


def decode_logprobs(result: Reader) -> tuple[Logprob, ...]:
    """Take the probabilities of the tokens chosen, and of the most likely tokens in their places.

    Raises:
        WireError: it is not of that form.
    """
    chosen = [_decode(item) for item in result.objects("chosenCandidates")]
    tops = [tuple(_decode(item) for item in step.objects("candidates")) for step in result.objects("topCandidates")]
    return tuple(
        Logprob(
            token=one.token,
            logprob=one.logprob,
            top=tops[index] if index < len(tops) else None,
            extra=one.extra,
        )
        for index, one in enumerate(chosen)
    )


def _decode(reader: Reader) -> Logprob:
    """Read one token; a probability of 1, whose logarithm is nothing, is left out on this wire."""
    return Logprob(
        token=reader.take("token", str) or "",
        logprob=reader.take("logProbability", float) or 0.0,
        extra=reader.extra(NAME),
    )


def encode_logprobs(logprobs: Sequence[Logprob], where: str, losses: Losses) -> JSONObject:
    """Return a result."""
    result: JSONObject = {"chosenCandidates": [_encode(one, where, losses) for one in logprobs]}
    if any(one.top is not None for one in logprobs):
        result["topCandidates"] = [
            {"candidates": [_encode(top, where, losses) for top in one.top or ()]} for one in logprobs
        ]
    return result


def _encode(one: Logprob, where: str, losses: Losses) -> JSONObject:
    if one.bytes is not None:
        losses.approximated(where, "logprobs", "a token of the dialect has no bytes")
    return with_rest({"token": one.token, "logProbability": one.logprob}, one.extra, where, losses)
