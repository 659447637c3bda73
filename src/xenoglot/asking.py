"""One question to a model, its answer printed as it comes: `xenoglot ask`."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, Call
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError
from xenoglot.gateway.assembly import assembled
from xenoglot.gateway.reading import reading
from xenoglot.model.content import Text
from xenoglot.model.events import Failed, TextDelta
from xenoglot.model.request import Message, Request

if TYPE_CHECKING:
    from xenoglot.gateway.config import Config
    from xenoglot.model.events import Event
    from xenoglot.model.request import Sampling


def question(prompt: str, *, model: str, system: str | None, sampling: Sampling) -> Request:
    """Return the request that asks `prompt`, to be answered in a stream."""
    told = () if system is None else (Message(role="system", content=(Text(text=system),)),)
    messages = (*told, Message(role="user", content=(Text(text=prompt),)))
    return Request(model=model, messages=messages, sampling=sampling, stream=True)


async def print_answer(config: Config, request: Request) -> Losses:
    """Print the answer to `request` on standard output; return what was lost on the way.

    Raises:
        ConfigurationError: who answers cannot be made.
        FailureError: there is no answer, or no whole one.
    """
    losses = Losses()
    async with assembled(config) as gateway:
        route = gateway.route(request.model)
        call = Call(request=replace(request, model=route.model), losses=losses)
        answer = await reading(gateway.backend(route.backend), route).answer(call)
        if isinstance(answer, ByteAnswer):
            raise TypeError("a call without a body of its own is answered in events")
        async with aclosing(answer):
            async for batch in answer.batches:
                for event in batch:
                    _print_event(event)
    print()
    return losses


def _print_event(event: Event) -> None:
    match event:
        case TextDelta(text=text):
            print(text, end="", flush=True)
        case Failed(failure=failure):
            raise FailureError(failure)
        case _:
            pass
