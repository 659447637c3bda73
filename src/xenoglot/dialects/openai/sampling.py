"""Sampling and stop fields that OpenAI's dialects share."""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import Field, FieldTexts
from xenoglot.codec.reader import Reader, expected, leave
from xenoglot.codec.requests.checks import LEAST_SEED, MOST_PENALTY, MOST_SEED, MOST_TOKENS, is_token, shown
from xenoglot.codec.requests.encode_context import EncodeContext, extended
from xenoglot.errors import WireError
from xenoglot.model.json import JSON, JSONObject

BANNED: Final = -100
"""The bias that bans a token (https://developers.openai.com/api/docs/api-reference/chat/create)."""

PAIR: Final = 2


def _out_of_range(value: float, least: float, most: float | None) -> str:
    kind = "decimal" if type(value) is float else "integer"
    if value < least:
        return f"{kind} below minimum value. Expected a value >= {least}, but got {shown(value)} instead."
    return f"{kind} above maximum value. Expected a value <= {most}, but got {shown(value)} instead."


TEXTS: Final = FieldTexts(out_of_range=_out_of_range)
"""A number out of range is refused as OpenAI refuses it."""


def numbers(*beyond: str) -> tuple[Field, ...]:
    """Return the rows of how the next token is drawn; those `beyond` the standard are for servers that support them."""
    return tuple(
        row._replace(when=extended, note="where the server supports it") if row.name in beyond else row
        for row in _NUMBERS
    )


_NUMBERS: Final = (
    Field("temperature", "temperature", float, 0, 2),
    Field("top_p", "top_p", float, 0, 1),
    Field("top_k", "top_k", int, -1, MOST_TOKENS),
    Field("min_p", "min_p", float, 0, 1),
    Field("seed", "seed", int, LEAST_SEED, MOST_SEED, server_key="seed_field"),
    Field("frequency_penalty", "frequency_penalty", float, -2, 2),
    Field("presence_penalty", "presence_penalty", float, -2, 2),
    Field("repetition_penalty", ("repetition_penalty", "repeat_penalty"), float, 0, MOST_PENALTY),
)


def take_bias(reader: Reader, key: str, form: JSONObject) -> dict[str, float] | None:
    """Take `logit_bias`: biases by tokens, or llama-server's list of pairs of a token, or a text, and its bias.

    `false` in place of a bias bans the token. A pair whose text is a number is left in the rest: it is no token.

    Raises:
        WireError: it is of a wrong type, or a bias is out of its range.
    """
    value, path = reader.peek(key), reader.at(key)
    if value is None or (isinstance(value, list) and any(map(_is_numeral, value))):
        return None
    reader.take_any(key)
    biases = _biases(value, path)
    if biases != value:
        form["logit_bias"] = value
    return biases


def encode_bias(biases: dict[str, float], form: JSONObject, _context: EncodeContext) -> JSON:
    """Return `logit_bias` as it came where it still means the same."""
    value = form.get("logit_bias")
    return biases if value is None or _biases(value, "$.logit_bias") != biases else value


def _biases(value: JSON, path: str) -> dict[str, float]:
    if isinstance(value, dict):
        return {token: _bias(bias, f"{path}.{token}") for token, bias in value.items()}
    if not isinstance(value, list):
        raise expected(path, "object or list", value)
    biases: dict[str, float] = {}
    for index, pair in enumerate(value):
        where = f"{path}[{index}]"
        if not isinstance(pair, list) or len(pair) != PAIR:
            raise WireError(where, "expected a pair of a token and its bias")
        token = pair[0]
        if type(token) is not str and not (type(token) is int and 0 <= token <= MOST_TOKENS):
            raise WireError(f"{where}[0]", "expected the number of a token, or a text")
        name = str(token)
        both = biases.get(name, 0) + _bias(pair[1], f"{where}[1]")
        biases[name] = max(-MOST_PENALTY, min(both, MOST_PENALTY))  # more neither bans nor forces any further
    return biases


def _bias(value: JSON, path: str) -> float:
    if value is False:
        return BANNED
    if type(value) not in (int, float):
        raise expected(path, "number", value)
    if not -MOST_PENALTY <= value <= MOST_PENALTY:
        raise WireError(path, _out_of_range(value, -MOST_PENALTY, MOST_PENALTY))
    bias: float = value
    return bias


def _is_numeral(pair: JSON) -> bool:
    return isinstance(pair, list) and bool(pair) and isinstance(pair[0], str) and is_token(pair[0])


def take_stream_options(reader: Reader, form: JSONObject) -> bool | None:
    """Take whether usage is wanted at the end of a stream.

    Raises:
        WireError: it is of a wrong type.
    """
    options = reader.object("stream_options")
    if options is None:
        return None
    include = options.take("include_usage", bool)
    form["stream_options"] = leave(reader, "stream_options", options)
    return include
