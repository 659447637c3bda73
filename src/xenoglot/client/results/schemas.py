"""Types as answer formats: the JSON Schema sent to the model, and the parser of its answer.

A type is anything that msgspec reads: a `Struct`, a dataclass, a `TypedDict`, `list[int]`, a union; or a pydantic model
or `TypeAdapter`, recognised by their methods: pydantic is not a dependency.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast, overload

import msgspec
from msgspec import Struct

from xenoglot.client.results.strict_schema import VALUE, is_strict, to_strict
from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError, XenoglotError
from xenoglot.model.request import OutputFormat
from xenoglot.text.json.code_fence import StripFence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.json import JSONObject

T = TypeVar("T")

MOST_MISMATCHES: Final = 5
"""Most problems that are reported for one text."""

_LONGEST: Final = 200
_WHERE = re.compile(r"(?P<problem>.*) - at `(?P<path>\$.*)`", re.DOTALL)
_QUOTING = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Mismatch(Struct, frozen=True):
    """One problem of a text: `path` is its place in the value (`$.items[0]`), `problem` the reason, without quoting."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class MismatchError(XenoglotError):
    """A text is not a value of the type; `mismatches` are the first few problems."""

    def __init__(self, mismatches: Sequence[Mismatch]) -> None:
        super().__init__("; ".join(map(str, mismatches)))
        self.mismatches = tuple(mismatches)

    def __reduce__(self) -> tuple[type[MismatchError], tuple[Sequence[Mismatch]]]:
        """Pickle by its arguments."""
        return type(self), (self.mismatches,)


class Shape(Generic[T]):
    """The form of an answer: `format` is sent to the model, `read` parses the answer."""

    __slots__ = ("_read", "format")

    def __init__(self, output: OutputFormat, read: Callable[[bytes], T]) -> None:
        self.format = output
        self._read = read

    def read(self, text: str) -> T:
        """Return the value in `text`; a code fence around it is ignored.

        Raises:
            MismatchError: not JSON, or not of this type.
        """
        fence = StripFence()
        text = fence.feed(text) + fence.close()
        if not text.strip():
            raise MismatchError([Mismatch("$", "expected JSON, found nothing")])
        try:
            return self._read(text.encode())
        except UnicodeError:
            problem = "expected JSON, found half a surrogate pair"
        except RecursionError:
            problem = "it is nested too deeply"
        raise MismatchError([Mismatch("$", problem)])


class _Reading(NamedTuple):
    """A type's JSON Schema and its parser."""

    schema: JSONObject
    read: Callable[[bytes], Any]


class _Adapter(Protocol):
    """A `TypeAdapter` of pydantic's."""

    def json_schema(self) -> JSONObject: ...

    def validate_json(self, data: bytes, /) -> object: ...


@overload
def shape_of(output: type[T]) -> Shape[T]: ...
@overload
def shape_of(output: object) -> Shape[Any]: ...  # a union or a `TypeAdapter`: no class to the type system


def shape_of(output: object) -> Shape[Any]:
    """Return the format and parser of answers of the type `output`.

    The schema is closed and requires every property, including those with defaults, as strict servers demand. A type
    that is not an object is wrapped in an object with the property `value`.

    Raises:
        TypeError: not a type, or one that JSON cannot represent.
    """
    try:
        found = _reading(output)
    except RuntimeError as error:  # pydantic's: what has no schema
        raise _unfit(output, str(error).partition("\n")[0]) from None
    schema, wrapped = to_strict(found.schema)
    strict = None if is_strict(schema) else False
    read = _unwrapped(found.read) if wrapped else found.read
    return Shape(OutputFormat(kind="json_schema", schema=schema, strict=strict), read)


def schema_of(output: object) -> OutputFormat:
    """Return the format of answers of the type `output`.

    Raises:
        TypeError: not a type, or one that JSON cannot represent.
    """
    return shape_of(output).format


@overload
def read(output: type[T], text: str) -> T: ...
@overload
def read(output: object, text: str) -> Any: ...  # noqa: ANN401  what a union holds, the type system cannot say


def read(output: object, text: str) -> Any:
    """Return the value of the type `output` in `text`.

    Raises:
        TypeError: not a type, or one that JSON cannot represent.
        MismatchError: the text is not JSON, or not of this type.
    """
    return shape_of(output).read(text)


def _reading(output: object) -> _Reading:
    if _has(output, "model_json_schema", "model_validate_json"):
        model: Any = output
        return _Reading(model.model_json_schema(), _checked(model.model_validate_json))
    if _has(output, "json_schema", "validate_json"):
        return _adapted(cast("_Adapter", output))
    if _has(output, "__pydantic_validator__") and (adapter := _adapter(output)):  # a dataclass of pydantic's
        return _adapted(adapter)
    try:
        return _Reading(msgspec.json.schema(output), _decoding(msgspec.json.Decoder(cast("type[object]", output))))
    except TypeError as error:
        if adapter := _adapter(output):
            return _adapted(adapter)
        raise _unfit(output, str(error).rpartition("\n")[2]) from None


def _unfit(output: object, said: str) -> TypeError:
    return TypeError(f"answers cannot be of the type {output!r}: {said}")


def _has(output: object, *names: str) -> bool:
    return all(hasattr(output, name) for name in names)


def _adapter(output: object) -> _Adapter | None:
    """Return pydantic's adapter of a type, if pydantic is loaded: without it, no type contains its models."""
    pydantic: Any = sys.modules.get("pydantic")
    try:
        return None if pydantic is None else cast("_Adapter", pydantic.TypeAdapter(output))
    except pydantic.errors.PydanticUserError:
        return None


def _adapted(adapter: _Adapter) -> _Reading:
    return _Reading(adapter.json_schema(), _checked(adapter.validate_json))


def _decoding(decoder: msgspec.json.Decoder[T]) -> Callable[[bytes], T]:
    def read(data: bytes) -> T:
        try:
            return decoder.decode(data)
        except msgspec.DecodeError as error:
            mismatch = _mismatch(str(error))
        raise MismatchError([mismatch])

    return read


def _mismatch(said: str) -> Mismatch:
    found = _WHERE.fullmatch(said)
    path, problem = (found["path"], found["problem"]) if found else ("$", said)
    return Mismatch(path, _QUOTING.sub(r"\1", problem)[:_LONGEST])


def _checked(validate: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a parser by pydantic, whose errors are `ValueError`s that list the problems."""

    def read(data: bytes) -> T:
        try:
            return validate(data)
        except ValueError as error:
            listed: Any = getattr(error, "errors", None)
            if listed is None:
                raise
            problems = listed(include_url=False, include_context=False, include_input=False)
            mismatches = [Mismatch(_path(one["loc"]), one["msg"][:_LONGEST]) for one in problems[:MOST_MISMATCHES]]
        raise MismatchError(mismatches)

    return read


def _path(steps: Sequence[str | int]) -> str:
    return ("$" + "".join(map(_step, steps)))[:_LONGEST]


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_NAME.fullmatch(step) else f"[{step[:_LONGEST]!a}]"


def _unwrapped(read_inner: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a parser of the object that wraps an answer."""

    def read(data: bytes) -> T:
        try:
            found = decode_json(data)
        except WireError as error:
            raise MismatchError([Mismatch("$", error.problem)]) from None
        if not isinstance(found, dict) or VALUE not in found:
            raise MismatchError([Mismatch("$", f"expected an object with the property `{VALUE}`")])
        try:
            return read_inner(msgspec.json.encode(found[VALUE]))
        except MismatchError as error:
            moved = [Mismatch(f"$.{VALUE}{one.path[1:]}", one.problem) for one in error.mismatches]
        raise MismatchError(moved)

    return read
