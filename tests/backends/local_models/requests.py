"""How the tests of one's own models ask: in turns, and the answer whole."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.model.content import Text
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, Request, Sampling
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure
    from xenoglot.model.request import Role
    from xenoglot.model.response import FinishReason


def turn(role: Role, *content: Part | str) -> Message:
    """A message; a string is a text."""
    return Message(role=role, content=tuple(Text(text=part) if isinstance(part, str) else part for part in content))


def request_of(*messages: Message | str, sampling: Sampling | None = None) -> Request:
    """A request; a string is what the user says."""
    turns = tuple(turn("user", one) if isinstance(one, str) else one for one in messages)
    return Request(model="m", messages=turns, sampling=sampling or Sampling())


def call(request: Request) -> Call:
    """A call of its own."""
    return Call(request=request, losses=Losses())


def lost(losses: Losses) -> list[str]:
    """What was lost: where, what and how."""
    return [f"{loss.where} {loss.what} {loss.how}" for loss in losses]


async def events(backend: Backend, asking: Call) -> list[Event]:
    """The lawful events of an answer."""
    answer = await backend.answer(asking)
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        return list(through([event async for batch in answer.batches for event in batch], Grammar()))


async def respond(backend: Backend, request: Request) -> tuple[Response | Failure, list[str]]:
    """The answer to a request, and what was lost."""
    asking = call(request)
    return fold(await events(backend, asking)), lost(asking.losses)


def response_of(
    text: str, reason: FinishReason = "stop", *, usage: Usage | None = None, stop: str | None = None
) -> Response:
    """An answer of one candidate that says `text`."""
    content = (Text(text=text),) if text else ()
    return Response(
        candidates=(Candidate(content=content, finish=Finish(reason=reason, stop_sequence=stop)),), usage=usage
    )
