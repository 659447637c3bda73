"""Replies of a client: the answer with its cost and losses."""

from __future__ import annotations

from typing import Generic, Self, TypeVar

from msgspec import Struct

from xenoglot.codec.loss import Loss, Losses
from xenoglot.dialect_registry import get
from xenoglot.model.content import Part, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.embedding import Embeddings, Vector
from xenoglot.model.json import JSONObject  # at run time: msgspec reads the annotations of a struct
from xenoglot.model.limits import RateLimits
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.model.short_repr import described, short_repr
from xenoglot.providers.costs import Cost

Made = TypeVar("Made")

_NOTHING = Candidate()


class Reply(Struct, frozen=True, kw_only=True):
    """A complete answer; `print(reply)` prints its text. The properties are those of the first candidate.

    Args:
        response: The canonical answer with all its candidates.
        losses: Features that the upstream does not support, or that could not be translated back.
        request_id: The upstream's id of the request. `None` if it sent none.
        limits: The rate limits that the upstream reported. `None` if it reported none.
        cost: The cost. `None` if no price is known.

    Example:
        >>> import xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> reply = xenoglot.Client(Callable(lambda request: "Hello!")).complete("Hi")
        >>> reply.text, reply.finish.reason, reply.tool_calls, reply.losses
        ('Hello!', 'stop', (), ())
        >>> reply.to("messages")["content"]
        [{'type': 'text', 'text': 'Hello!'}]
    """

    response: Response
    losses: tuple[Loss, ...] = ()
    request_id: str | None = None
    limits: RateLimits | None = None
    cost: Cost | None = None

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def __repr__(self) -> str:
        finish = self.finish.reason if self.finish else None
        calls = tuple(call.name for call in self.tool_calls)
        facts = {"tool_calls": calls, "usage": self.usage, "losses": len(self.losses) or None, "cost": self.cost}
        return described(self, text=self.text, finish=finish, model=self.model, **facts)

    @property
    def id(self) -> str | None:
        """The upstream's id of the answer."""
        return self.response.id

    @property
    def model(self) -> str | None:
        """The model that answered, as the upstream names it."""
        return self.response.model

    @property
    def usage(self) -> Usage | None:
        """The token counts; `None` if not reported, which is not zero."""
        return self.response.usage

    @property
    def content(self) -> tuple[Part, ...]:
        """The parts of the answer, in order."""
        return self._first.content

    @property
    def finish(self) -> Finish | None:
        """Why it ended."""
        return self._first.finish

    @property
    def text(self) -> str:
        """The text; empty if there is none."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        """The reasoning, or its summaries; empty if not visible."""
        return "\n\n".join(
            filter(None, (_reasoning_text(part) for part in self.content if isinstance(part, Reasoning)))
        )

    @property
    def refusal(self) -> str | None:
        """The text of a refusal; `None` without one."""
        said = [part.text for part in self.content if isinstance(part, Refusal)]
        return "".join(said) if said else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that the model requests."""
        return tuple(part for part in self.content if isinstance(part, ToolCall))

    @property
    def message(self) -> Message:
        """The answer as a message to append to the next request, with its reasoning and signatures."""
        return Message(role="assistant", content=self.content)

    def to(self, dialect: str) -> JSONObject:
        """Return the answer as JSON of `dialect`; features that it does not support are left out.

        Raises:
            ConfigurationError: unknown dialect.
        """
        return get(dialect).encode_response(self.response, Request(model=self.model or ""), Losses())

    @property
    def _first(self) -> Candidate:
        return self.response.candidates[0] if self.response.candidates else _NOTHING


def _reasoning_text(part: Reasoning) -> str:
    return part.text or "\n\n".join(part.summary or ())


class OperationReply(Struct, Generic[Made], frozen=True, kw_only=True):
    """The result of an operation; the rest as in a `Reply`."""

    result: Made
    usage: Usage | None = None
    losses: tuple[Loss, ...] = ()
    limits: RateLimits | None = None
    cost: Cost | None = None

    __repr__ = short_repr


class EmbeddingReply(Struct, frozen=True, kw_only=True):
    """Vectors of texts.

    Args:
        vectors: One vector for each input, in their order.
        model: The model, as the upstream names it.
        usage: The token counts; `None` if not reported.
        losses: Features that the upstream does not support.
        limits: The rate limits that the upstream reported.
        cost: The cost. `None` if no price is known.

    Example:
        >>> import xenoglot
        >>> reply = xenoglot.EmbeddingReply(vectors=((0.6, 0.8), (1.0, 0.0)))
        >>> round(sum(a * b for a, b in zip(*reply.vectors)), 3)  # their cosine similarity
        0.6
    """

    vectors: tuple[Vector, ...]
    model: str | None = None
    usage: Usage | None = None
    losses: tuple[Loss, ...] = ()
    limits: RateLimits | None = None
    cost: Cost | None = None

    __repr__ = short_repr

    @classmethod
    def of(cls, reply: OperationReply[Embeddings]) -> Self:
        """Return the reply to a request for embeddings."""
        made = reply.result
        return cls(
            vectors=made.vectors,
            model=made.model,
            usage=reply.usage,
            losses=reply.losses,
            limits=reply.limits,
            cost=reply.cost,
        )
