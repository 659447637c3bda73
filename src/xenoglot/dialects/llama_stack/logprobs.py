"""Encodes and decodes log probabilities: for each position a map from token to its log probability.

The wire (`TokenLogProbs` in `llama_stack/apis/inference/inference.py`) does not mark which of several was drawn. It is
the one with which the text continues; where none does, the likeliest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.llama_stack.extras import NAME
from xenoglot.model.content import Logprob

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject

_BY_TOKEN = "logprobs_by_token"  # noqa: S105  the name of a field


def take_logprobs(reader: Reader, text: str) -> tuple[Logprob, ...]:
    """Take `logprobs`, which are those of `text`; what is not wholly understood is left where it is."""
    places = reader.peek("logprobs")
    if not text or not isinstance(places, list) or not places or not all(map(_is_known, places)):
        return ()
    reader.take("logprobs", list)
    found: list[Logprob] = []
    start = 0
    for place in places:
        tokens = place[_BY_TOKEN]
        token = _drawn(tokens, text, start)
        start += len(token)
        top = tuple(Logprob(token=other, logprob=value) for other, value in tokens.items())
        found.append(Logprob(token=token, logprob=tokens[token], top=top))
    return tuple(found)


def _is_known(place: JSON) -> bool:
    tokens = place.get(_BY_TOKEN) if isinstance(place, dict) and len(place) == 1 else None
    return isinstance(tokens, dict) and bool(tokens) and all(type(value) in (int, float) for value in tokens.values())


def _drawn(tokens: dict[str, float], text: str, start: int) -> str:
    fitting = [token for token in tokens if token and text.startswith(token, start)]
    return max(fitting, key=len) if fitting else max(tokens, key=lambda token: tokens[token])


def encode_logprobs(logprobs: Iterable[Logprob], where: str, losses: Losses) -> JSONObject:
    """Return the field `logprobs`; the token that was drawn is always among its place's (L-W10)."""
    places: list[JSONObject] = []
    for one in logprobs:
        losses.carry(one.extra, where, NAME)
        if one.bytes is not None or any(other.bytes is not None for other in one.top or ()):
            losses.dropped(where, "logprobs", "the dialect has no bytes of a token")
        if one.token not in {other.token for other in one.top or ()}:
            losses.approximated(where, "logprobs", "the token drawn is one of those at its place")
        tokens = {other.token: other.logprob for other in one.top or ()}
        places.append({_BY_TOKEN: tokens | {one.token: one.logprob}})
    return {"logprobs": places} if places else {}
