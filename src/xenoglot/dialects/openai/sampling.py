"""How the next token is drawn and when to stop: the fields that OpenAI's dialects read alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.leftovers import leave
from xenoglot.codec.ranges import LEAST_SEED, MOST_PENALTY, MOST_SEED, shown, taken
from xenoglot.codec.reader import Reader, expected
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


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


def take_bias(reader: Reader) -> dict[str, float] | None:
    """Take `logit_bias`; its values are numbers.

    Raises:
        WireError: it is of a wrong type.
    """
    bias = reader.take("logit_bias", dict)
    for token, value in (bias or {}).items():
        if type(value) not in (int, float):
            raise expected(f"{reader.at('logit_bias')}.{token}", "number", value)
        if not -MOST_PENALTY <= value <= MOST_PENALTY:
            raise WireError(f"{reader.at('logit_bias')}.{token}", _out_of_range(value, -MOST_PENALTY, MOST_PENALTY))
    return bias


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
