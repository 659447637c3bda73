"""Sampling and stop fields that OpenAI's dialects share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from xenoglot.codec.json.nested_extra import leave
from xenoglot.codec.logit_bias import is_token
from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.bounds import LEAST_SEED, MOST_PENALTY, MOST_SEED, MOST_TOKENS, shown, taken
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.json import JSON, JSONObject


BANNED: Final = -100
"""The bias that bans a token (https://developers.openai.com/api/docs/api-reference/chat/create)."""

PAIR: Final = 2

Take: TypeAlias = "Callable[[Reader, str, JSONObject], JSON]"
"""Takes what stands under a key; how it was spelled, where that is unusual, goes into the form."""


def take_fields(reader: Reader, fields: Mapping[str, tuple[str, Take]], form: JSONObject) -> JSONObject:
    """Take those of `fields` that are there, in the order of the table: name on the wire -> our name, how to take it.

    Of two names for one field the first counts; the other stays in the rest.

    Raises:
        WireError: one of them is of a wrong type, or out of its range.
    """
    said: JSONObject = {}
    left = reader.rest()
    for key in fields:
        if key in left and left[key] is not None:
            name, take = fields[key]
            if name not in said:
                said[name] = take(reader, key, form)
    return said


def number(kind: type[float], least: float, most: float) -> Take:
    """Return what takes a number between `least` and `most`, both allowed."""
    return lambda reader, key, _: ranged(reader, key, kind, least, most)


def spelled(name: str, take: Take) -> Take:
    """Return what takes a field as `take` does, and notes under `name` which of its names it had."""

    def noted(reader: Reader, key: str, form: JSONObject) -> JSON:
        form[name] = key
        return take(reader, key, form)

    return noted


def ranged(reader: Reader, key: str, kind: type[float], least: float, most: float | None = None) -> JSON:
    """Take a number between `least` and `most`, both allowed; another is refused as OpenAI refuses it.

    Raises:
        WireError: it is another, or of a wrong type.
    """
    return taken(reader, key, kind, least, most, _out_of_range)


def _out_of_range(value: float, least: float, most: float | None) -> str:
    kind = "decimal" if type(value) is float else "integer"
    if value < least:
        return f"{kind} below minimum value. Expected a value >= {least}, but got {shown(value)} instead."
    return f"{kind} above maximum value. Expected a value <= {most}, but got {shown(value)} instead."


NUMBERS: Mapping[str, tuple[str, Take]] = {
    "temperature": ("temperature", number(float, 0, 2)),
    "top_p": ("top_p", number(float, 0, 1)),
    "top_k": ("top_k", number(int, -1, MOST_TOKENS)),
    "min_p": ("min_p", number(float, 0, 1)),
    "seed": ("seed", number(int, LEAST_SEED, MOST_SEED)),
    "frequency_penalty": ("frequency_penalty", number(float, -2, 2)),
    "presence_penalty": ("presence_penalty", number(float, -2, 2)),
    "repetition_penalty": ("repetition_penalty", spelled("repetition_penalty", number(float, 0, MOST_PENALTY))),
    "repeat_penalty": ("repetition_penalty", spelled("repetition_penalty", number(float, 0, MOST_PENALTY))),
}
"""How the next token is drawn, in the dialects that are asked in turns."""


def take_seed(reader: Reader) -> int | None:
    """Take `seed`.

    Raises:
        WireError: it is of a wrong type, or of more than 64 bits.
    """
    seed: int | None = ranged(reader, "seed", int, LEAST_SEED, MOST_SEED)
    return seed


def take_repetition(reader: Reader, form: JSONObject) -> float | None:
    """Take the penalty under either of its names.

    Raises:
        WireError: it is of a wrong type.
    """
    for key in ("repetition_penalty", "repeat_penalty"):
        if key in reader:
            form["repetition_penalty"] = key
            penalty: float = ranged(reader, key, float, 0, MOST_PENALTY)
            return penalty
    return None


def take_bias(reader: Reader, form: JSONObject) -> dict[str, float] | None:
    """Take `logit_bias`: biases by tokens, or llama-server's list of pairs of a token, or a text, and its bias.

    `false` in place of a bias bans the token. A pair whose text is a number is left in the rest: it is no token.

    Raises:
        WireError: it is of a wrong type, or a bias is out of its range.
    """
    value, path = reader.peek("logit_bias"), reader.at("logit_bias")
    if value is None or (isinstance(value, list) and any(map(_is_numeral, value))):
        return None
    reader.take_any("logit_bias")
    biases = _biases(value, path)
    if biases != value:
        form["logit_bias"] = value
    return biases


def encode_bias(biases: dict[str, float], form: JSONObject) -> JSON:
    """Return `logit_bias` as it came where it still says the same."""
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


def take_stop(reader: Reader, form: JSONObject) -> tuple[str, ...] | None:
    """Take the stop strings: one alone, or a list.

    Raises:
        WireError: it is of a wrong type.
    """
    alone = reader.take_if("stop", str)
    if alone is not None:
        form["stop"] = "string"
        return (alone,)
    if "stop" in reader and type(reader.peek("stop")) is not list:
        raise expected(reader.at("stop"), "str or list", reader.peek("stop"))
    return reader.strings("stop")


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
