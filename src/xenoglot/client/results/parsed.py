"""Answers parsed into values of a type, with retries for answers that are not valid.

A refusal, a truncated answer and one that calls tools are final: a retry would not help, and costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from xenoglot.client.results.schemas import Mismatch, MismatchError
from xenoglot.errors import XenoglotError
from xenoglot.model.content import Refusal, Text, ToolCall
from xenoglot.model.request import Message
from xenoglot.model.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.client.results.schemas import Shape
    from xenoglot.model.content import Part
    from xenoglot.model.response import Candidate, Response

_TRUNCATED: Final = {
    "length": "it was cut at `max_tokens` before its JSON was whole",
    "context": "the context window was full before its JSON was whole",
}


class AnswerResult(Protocol):
    """The part of a reply that is used here: the answer."""

    @property
    def response(self) -> Response:
        """The answer."""
        ...


T = TypeVar("T")
R = TypeVar("R", bound=AnswerResult)


class Parsed(Struct, Generic[T, R], frozen=True, kw_only=True):
    """An answer as a value; returned by `Client.parse`.

    Args:
        value: The value.
        replies: The replies of all attempts, oldest first; the value was read from the last.

    Example:
        >>> import xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> parsed = xenoglot.Client(Callable(lambda request: '{"value": 42}')).parse("How many?", int)
        >>> parsed.value, len(parsed.replies)
        (42, 1)
    """

    value: T
    replies: tuple[R, ...]

    __repr__ = short_repr

    @property
    def reply(self) -> R:
        """The answer that the value was read from."""
        return self.replies[-1]


class ParseError(XenoglotError):
    """No attempt of `Client.parse` returned a valid value.

    Args:
        message: What is wrong with the last answer.
        replies: The replies of all attempts, oldest first.
        mismatches: Each problem of the last answer, with its path.

    Example:
        >>> import xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> try:
        ...     xenoglot.Client(Callable(lambda request: "many")).parse("How many?", int)
        ... except xenoglot.ParseError as error:
        ...     print(error.reply.text)
        many
    """

    def __init__(self, message: str, replies: Sequence[AnswerResult] = (), mismatches: Sequence[Mismatch] = ()) -> None:
        super().__init__(message)
        self.replies = tuple(replies)
        self.mismatches = tuple(mismatches)

    @property
    def reply(self) -> AnswerResult:
        """The last answer."""
        return self.replies[-1]


class AnswerRefusedError(ParseError):
    """The model declined, or a filter blocked the answer.

    Args:
        message: What happened.
        replies: The replies of all attempts, oldest first.
        explanation: The text of the refusal. `None` if there is none.
    """

    def __init__(self, message: str, replies: Sequence[AnswerResult] = (), explanation: str | None = None) -> None:
        super().__init__(message, replies)
        self.explanation = explanation


class AnswerTruncatedError(ParseError):
    """The answer was truncated: `max_tokens` was reached, or the context window was full. Set a higher `max_tokens`."""


async def parse(ask: Callable[[tuple[Message, ...]], Awaitable[R]], shape: Shape[T], retries: int = 0) -> Parsed[T, R]:
    """Return the answer as a value of the type of `shape`.

    `ask` sends the request with further messages appended, none at first; the request sets `shape.format`. After an
    invalid answer the model gets the list of problems, up to `retries` times.

    Raises:
        ParseError: no attempt returned a valid value.
        XenoglotError: as raised by `ask`.
    """
    turns: tuple[Message, ...] = ()
    replies: list[R] = []
    while True:
        replies.append(await ask(turns))
        response = replies[-1].response
        try:
            return Parsed(value=value_of(response, shape, replies), replies=tuple(replies))
        except MismatchError as error:
            wrong = error.mismatches
        if len(replies) > retries:
            raise ParseError(_describe(wrong, len(replies)), replies, wrong)
        turns = (*turns, *retry_messages(response, wrong))


def value_of(response: Response, shape: Shape[T], replies: Sequence[AnswerResult]) -> T:
    """Return the value of an answer's first candidate.

    Raises:
        MismatchError: not valid; a retry may help.
        ParseError: final: refused, truncated, or tool calls; `replies` are passed on.
    """
    candidate = response.candidates[0] if response.candidates else None
    if candidate is None:
        raise MismatchError([Mismatch("$", "expected JSON, found nothing")])
    text = "".join(part.text for part in candidate.content if isinstance(part, Text))
    reason = candidate.finish.reason if candidate.finish else None
    if (refused := _refused(candidate)) is not None:
        raise AnswerRefusedError("the model declined to answer", replies, refused or None)
    try:
        return shape.read(text)
    except MismatchError as error:
        if reason in _TRUNCATED:
            raise AnswerTruncatedError(_TRUNCATED[reason], replies, error.mismatches) from None
        if any(isinstance(part, ToolCall) for part in candidate.content):
            raise ParseError("the model calls tools in place of an answer", replies, error.mismatches) from None
        raise


def retry_messages(response: Response, wrong: Sequence[Mismatch]) -> tuple[Message, ...]:
    """Return the messages to append after an invalid answer: the answer, and the list of problems."""
    content = response.candidates[0].content if response.candidates else ()
    listed = "\n".join(f"- {one}" for one in wrong)
    told = f"That is not valid:\n{listed}\n\nGive the whole answer again, mended, and nothing else."
    kept = tuple(filter(_has_content, content))  # servers refuse empty texts
    turns = (Message(role="assistant", content=kept),) if kept else ()
    return (*turns, Message(role="user", content=(Text(text=told),)))


def _has_content(part: Part) -> bool:
    return not isinstance(part, Text) or bool(part.text.strip())


def _refused(candidate: Candidate) -> str | None:
    """Return the text of a refusal, which may be empty; `None` if there was no refusal."""
    said = [part.text for part in candidate.content if isinstance(part, Refusal)]
    finish = candidate.finish
    if said or (finish is not None and finish.reason == "refusal"):
        return "".join(said) or (finish.explanation if finish else None) or ""
    return None


def _describe(wrong: Sequence[Mismatch], tries: int) -> str:
    asked = f" (asked {tries} times)" if tries > 1 else ""
    return f"the model's answer is not what was asked for: {'; '.join(map(str, wrong))}{asked}"
