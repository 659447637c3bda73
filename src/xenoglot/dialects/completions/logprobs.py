"""Log probabilities of tokens: this dialect's four columns, and the list of objects that llama.cpp sends instead.

In the columns a token may have no probability, as the first of a prompt that is echoed has none. Such a token stands in
the form of its neighbour that has one. Columns that do not fit together stay as they are, in the rest of the choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, leave, left
from xenoglot.dialects.completions.extras import NAME, extra_of, own_fields
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Logprob

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

_COLUMNS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")

_MISSING = object()


class Row(Struct):
    """One token position of the columns."""

    token: str
    logprob: float | None
    top: dict[str, float] | None
    offset: int | None


def take_logprobs(choice: Reader, form: JSONObject) -> tuple[Logprob, ...]:
    """Take the `logprobs` of a choice; what is not understood stays where it is."""
    value = choice.peek("logprobs")
    if value is None:
        form["unweighed"] = choice.rest().pop("logprobs", _MISSING) is _MISSING
    if not isinstance(value, dict):
        return ()
    if isinstance(value.get("content"), list):
        return _take_objects(choice, form)
    rows = _rows(value)
    if rows is None:
        return ()
    if all(row.logprob is None for row in rows):
        form["silent"] = choice.take("logprobs", dict)
        return ()
    inner = Reader(choice.take("logprobs", dict), choice.at("logprobs"))
    form["columns"] = {key: value[key] for key in _COLUMNS if key in value and value[key] in (None, [])}
    form["columns"] |= {key: "filled" for key in _COLUMNS if key in value and key not in form["columns"]}
    for key in _COLUMNS:
        inner.rest().pop(key, None)
    form["logprobs"] = leave(choice, "logprobs", inner)
    return tuple(_logprobs(rows))


def encode_logprobs(
    placed: Sequence[tuple[str, Logprob]],
    start: int,
    losses: Losses,
    form: JSONObject | None = None,
    head: str | None = None,
) -> JSONObject:
    """Return the `logprobs` of a text whose first token stands at the character `start`; each comes with its path.

    `head` is a token before them that has none.
    """
    if placed and "objects" in form_of(placed[0][1].extra, NAME):
        return {"content": [_encode_object(logprob, where, losses) for where, logprob in placed]}
    rows = [] if head is None else [Row(head, None, None, None)]
    rows += [row for where, logprob in placed for row in _rows_of(logprob, where, losses)]
    for row in rows:
        row.offset = start if row.offset is None else row.offset
        start = row.offset + len(row.token)
    columns: JSONObject = {
        "tokens": [row.token for row in rows],
        "token_logprobs": [row.logprob for row in rows],
        "top_logprobs": [row.top for row in rows],
        "text_offset": [row.offset for row in rows],
    }
    spelled = (form or {}).get("columns")
    if spelled is None:
        if all(row.top is None for row in rows):
            del columns["top_logprobs"]
        return columns
    return {key: columns[key] if said == "filled" else said for key, said in spelled.items()}


def unknown_rows(silent: JSONObject) -> list[JSON]:
    """Return the tokens of columns in which none has a probability, as `preceded` and `silent_columns` take them."""
    return [_plain(row) for row in _rows(silent) or ()] if silent else []


def preceded(logprob: Logprob, unknown: Sequence[JSON]) -> Logprob:
    """Return the probability of a token with tokens before it that have none."""
    form = form_of(logprob.extra, NAME)
    fields = {} if logprob.extra is None else logprob.extra.fields
    before = [*unknown, *form.get("before", ())]
    return replace(logprob, extra=Extra(dialect=NAME, fields=fields, form=form | {"before": before}))


def silent_columns(unknown: Sequence[JSON]) -> JSONObject:
    """Return the columns of tokens without a probability."""
    tokens, tops, offsets = (list(column) for column in zip(*unknown, strict=True))
    return dict(zip(_COLUMNS, (tokens, [None] * len(tokens), tops, offsets), strict=True))


def left_logprobs(own: JSONObject, form: JSONObject) -> JSONObject:
    """Return the unknown fields of the `logprobs` of a choice."""
    return left(own, form, "logprobs") if "logprobs" in form else {}


def _rows(value: JSONObject) -> list[Row] | None:
    """Return the columns as rows; `None` if they do not fit together."""
    tokens = value.get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return None
    columns = [_column(value.get(key), len(tokens)) for key in _COLUMNS[1:]]
    if any(column is None for column in columns):
        return None
    rows = [Row(*row) for row in zip(tokens, *(column or [] for column in columns), strict=True)]
    return rows if all(map(_is_sound, rows)) else None


def _column(items: JSON, length: int) -> list[JSON] | None:
    if items is None or items == []:
        return [None] * length
    return items if isinstance(items, list) and len(items) == length else None


def _is_number(value: JSON) -> bool:
    return type(value) in (int, float)


def _is_sound(row: Row) -> bool:
    top: JSON = row.top
    tops = top is None or (isinstance(top, dict) and all(_is_number(one) for one in top.values()))
    return tops and (row.logprob is None or _is_number(row.logprob)) and type(row.offset) in (int, type(None))


def _logprobs(rows: Sequence[Row]) -> Iterator[Logprob]:
    """Yield the tokens that have a probability; those without stand in the form of the next, or of the last."""
    likely = [index for index, row in enumerate(rows) if row.logprob is not None]
    before = 0
    for index in likely:
        row = rows[index]
        form: JSONObject = {} if row.offset is None else {"offset": row.offset}
        if unknown := [_plain(one) for one in rows[before:index]]:
            form["before"] = unknown
        if index == likely[-1] and (unknown := [_plain(one) for one in rows[index + 1 :]]):
            form["after"] = unknown
        before = index + 1
        yield Logprob(
            token=row.token,
            logprob=row.logprob or 0,
            top=None if row.top is None else tuple(Logprob(token=key, logprob=one) for key, one in row.top.items()),
            extra=Extra(dialect=NAME, form=form) if form else None,
        )


def _plain(row: Row) -> JSON:
    return [row.token, row.top, row.offset]


def _rows_of(logprob: Logprob, where: str, losses: Losses) -> Iterator[Row]:
    form = form_of(logprob.extra, NAME)
    own_fields(logprob.extra, where, losses)
    if any(one.bytes is not None for one in (logprob, *(logprob.top or ()))):
        losses.dropped(where, "bytes", "a token is identified by its text only")
    for token, top, offset in form.get("before", ()):
        yield Row(token, None, top, offset)
    yield Row(logprob.token, logprob.logprob, _tops(logprob, where, losses), form.get("offset"))
    for token, top, offset in form.get("after", ()):
        yield Row(token, None, top, offset)


def _tops(logprob: Logprob, where: str, losses: Losses) -> dict[str, float] | None:
    if logprob.top is None:
        return None
    tops: dict[str, float] = {}
    for one in logprob.top:
        if one.token in tops:
            losses.approximated(where, "top", "of alternatives with one text the first is kept")
        tops.setdefault(one.token, one.logprob)
    return tops


def _take_objects(choice: Reader, form: JSONObject) -> tuple[Logprob, ...]:
    inner = Reader(choice.peek("logprobs"), choice.at("logprobs"))
    try:
        found = tuple(_decode_object(item) for item in inner.objects("content"))
    except WireError:
        return ()
    if not found:
        form["silent"] = choice.take("logprobs", dict)
        return ()
    choice.take("logprobs", dict)
    form["logprobs"] = leave(choice, "logprobs", inner)
    return found


def _decode_object(reader: Reader) -> Logprob:
    token, logprob = reader.need("token", str), reader.need("logprob", float)
    codes = reader.take_if("bytes", list)
    if codes is not None and not all(type(code) is int for code in codes):
        raise WireError(reader.at("bytes"), "expected list of int")
    top = tuple(map(_decode_object, reader.objects("top_logprobs"))) if "top_logprobs" in reader else None
    return Logprob(
        token=token,
        logprob=logprob,
        bytes=None if codes is None else tuple(codes),
        top=top,
        extra=extra_of(reader, {"objects": True}),
    )


def _encode_object(logprob: Logprob, where: str, losses: Losses) -> JSONObject:
    fields: JSONObject = {"token": logprob.token, "logprob": logprob.logprob}
    if logprob.bytes is not None:
        fields["bytes"] = list(logprob.bytes)
    if logprob.top is not None:
        fields["top_logprobs"] = [_encode_object(one, where, losses) for one in logprob.top]
    return fields | own_fields(logprob.extra, where, losses)
