"""Tests for plain parts and messages: those with common fields only, which each dialect encodes the same way.

Most of every request is plain: turns of one text, calls with a name and arguments, results of one text. Dialects read
and write these in a step of their own (their `plain` modules), without a `Reader`, paths or losses: there is nothing to
keep, to refuse or to lose. Such a step gives `None` for whatever else it is shown, and where it gives something it is
what the general way gives, to the byte: `tests/dialects/test_plain.py` holds them to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.model.content import Text

if TYPE_CHECKING:
    from xenoglot.model.content import Extra, Part, ToolCall, ToolResult
    from xenoglot.model.json import JSON


def bare_text(item: JSON) -> str | None:
    """Return the text of `{"type": "text", "text": ...}` that has no other field."""
    if type(item) is dict and len(item) == 2 and item.get("type") == "text":  # noqa: PLR2004  its two fields
        text = item.get("text")
        return text if type(text) is str else None
    return None


def bare_texts(items: JSON) -> tuple[Text, ...] | None:
    """Return the parts of a list that is of bare texts alone, and of one at least."""
    texts: list[Text] = []
    for item in items:
        text = bare_text(item)
        if text is None:
            return None
        texts.append(Text(text=text))
    return tuple(texts) or None


def silent(extra: Extra | None, dialect: str) -> bool:
    """Whether `extra` adds nothing in `dialect`, and contains nothing that could be lost there."""
    return extra is None or (extra.dialect != dialect and not extra.fields)


def plain_words(part: Part, dialect: str) -> str | None:
    """Return the text of a part without any other field."""
    if type(part) is not Text or part.citations or part.logprobs or part.cache is not None:
        return None
    return part.text if part.extra is None or silent(part.extra, dialect) else None


def is_plain_call(call: ToolCall, dialect: str) -> bool:
    """Whether a call is of a function, and nothing but its id, its name and its arguments."""
    if call.kind != "function" or call.namespace is not None or call.cache is not None:
        return False
    return call.extra is None or silent(call.extra, dialect)


def plain_result(result: ToolResult, dialect: str) -> str | None:
    """Return the text of a function's result that is one text and no error."""
    if result.is_error or result.name is not None or result.cache is not None or result.kind != "function":
        return None
    if len(result.content) != 1 or (result.extra is not None and not silent(result.extra, dialect)):
        return None
    return plain_words(result.content[0], dialect)
