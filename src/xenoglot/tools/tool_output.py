"""Conversion of a tool's result of any type into message parts within size limits."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from xenoglot.errors import XenoglotError
from xenoglot.model.content import Audio, File, Image, Inline, Opaque, Part, Text, ToolResult, Video
from xenoglot.model.json import JSON
from xenoglot.model.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import ToolCall

RESULT_LIMIT: Final = 100_000
"""Default characters of text of one result; the middle of a longer one is left out."""

MOST_MEDIA: Final = 30_000_000
"""Most base64 characters of one image, audio or file."""

LONGEST_ERROR: Final = 2_000
"""Most characters of an exception's text."""

_KNOWN = ("builtins", "datetime")
"""Packages of types whose own conversion is trusted: a mock's would return further mocks without end."""

_MEDIA = (Image, Audio, Video, File)
_PARTS = (Text, Image, Audio, Video, File, Opaque)


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a tool that is more than a value or a text.

    Args:
        content: The parts that the model gets, like `Text` and `Image`.
        is_error: Whether the result is reported to the model as an error.
        data: A value for observers of the run; the model does not see it.

    Example:
        >>> import xenoglot
        >>> output = xenoglot.ToolOutput(content=(xenoglot.Text(text="3 rows"),), data=[1, 2, 3])
        >>> output.text
        '3 rows'
    """

    content: tuple[Part, ...] = ()
    is_error: bool = False
    data: JSON = None

    __repr__ = short_repr

    @property
    def text(self) -> str:
        """Its text."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


class ToolError(XenoglotError):
    """Raised by a tool to report a failure to the model.

    Args:
        text: The text for the model.
        data: A value for observers of the run, as in `ToolOutput`.

    Example:
        >>> import xenoglot
        >>> @xenoglot.tool
        ... def read(path: str) -> str:
        ...     raise xenoglot.ToolError(f"{path} does not exist; list the folder first")
    """

    def __init__(self, text: str, data: JSON = None) -> None:
        super().__init__(text)
        self.data = data


def failed(text: str, data: JSON = None) -> ToolOutput:
    """Return the output that reports an error to the model."""
    return ToolOutput(content=(Text(text=_valid_text(text)),), is_error=True, data=data)


def raised(error: BaseException) -> ToolOutput:
    """Return the output for an exception of a tool: the text of a `ToolError`, of others the class and text.

    Raises:
        KeyboardInterrupt: raised in the main thread, so it is the user's.
    """
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error
    try:
        said = str(error).strip()
    except Exception:  # noqa: BLE001  an exception may be as broken as the tool
        said = ""
    said = said if len(said) <= LONGEST_ERROR else said[:LONGEST_ERROR] + " ..."
    if isinstance(error, ToolError):
        return failed(said or "the tool failed", error.data)
    kind = type(error).__name__
    return failed(f"{kind}: {said}" if said else kind)


def as_output(value: object, limit: int = RESULT_LIMIT) -> ToolOutput:
    """Return a tool's result as an output of at most `limit` characters; an unsupported value is an error."""
    if not isinstance(value, ToolOutput):
        content = _content(value)
        value = content if isinstance(content, ToolOutput) else ToolOutput(content=content)
    strange = next((part for part in value.content if not isinstance(part, _PARTS)), None)
    if strange is not None:
        return failed(f"the tool gave a `{type(strange).__name__}`, which is no content of a result")
    return replace(value, content=_bounded(value.content, limit))


def result_of(call: ToolCall, output: ToolOutput) -> ToolResult:
    """Return the part of the transcript that answers `call`."""
    return ToolResult(
        call_id=call.id,
        content=output.content,
        is_error=True if output.is_error else None,
        name=call.name,
        kind=call.kind,
    )


def truncate(text: str, limit: int) -> str:
    """Return `text`; if it is longer than `limit` characters, only its start and end, which matter most."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[len(text) - tail :]}"


def _content(value: object) -> tuple[Part, ...] | ToolOutput:
    if isinstance(value, str):
        return (Text(text=value),)
    if isinstance(value, _PARTS):
        return (value,)
    if isinstance(value, list | tuple) and value and all(isinstance(item, _PARTS) for item in value):
        return tuple(value)
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
        return (Text(text=json.dumps(plain, ensure_ascii=False, allow_nan=False)),)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        return failed(f"the result of the tool, a `{type(value).__name__}`, cannot be written as JSON: {_why(error)}")
    except Exception as error:  # noqa: BLE001  `model_dump` is somebody's code, too
        return raised(error)


def _plain(value: object) -> JSON:
    """Return a value in types that msgspec knows; pydantic's models and NumPy's numbers convert themselves."""
    for way in ("model_dump", "tolist", "item"):
        if callable(tell := getattr(value, way, None)) and type(told := tell()).__module__ in _KNOWN:
            plain: JSON = told
            return plain
    raise TypeError(f"a `{type(value).__name__}` is no JSON")


def _why(error: Exception) -> str:
    return "it is nested too deeply, or holds itself" if isinstance(error, RecursionError) else str(error)


def _bounded(content: Sequence[Part], limit: int) -> tuple[Part, ...]:
    left = limit
    made: list[Part] = []
    for part in content:
        if isinstance(part, Text):
            kept = _valid_text(truncate(part.text, left)) if left else ""
            left = max(0, left - len(part.text))
            if kept or not part.text:
                made.append(part if kept == part.text else replace(part, text=kept))
        elif _is_huge(part):
            made.append(Text(text=f"[{type(part).__name__.lower()} left out: it is too large]"))
        else:
            made.append(part)
    return tuple(made)


def _is_huge(part: Part) -> bool:
    return isinstance(part, _MEDIA) and isinstance(part.source, Inline) and len(part.source.data) > MOST_MEDIA


def _valid_text(text: str) -> str:
    """Return `text` with U+FFFD for lone surrogates, which JSON cannot represent (RFC 8259 section 8.2)."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
