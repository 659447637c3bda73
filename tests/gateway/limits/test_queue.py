"""A request for which there is no room: 429 in every dialect, and when to come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.scripted_backends import Backend
from xenoglot import dialect_registry as dialects
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.target import Target
from xenoglot.engine.errors import queue_full
from xenoglot.model.content import Text
from xenoglot.model.request import Message, Prompt, Request, Sampling

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.backends.backend import Answer, Call

SECONDS = 6.2
CONTINUED = ("completions", "llama_stack_completion", "ollama_generate")
"""Dialects of texts without turns."""


class Crowded(Backend):
    """Has no room."""

    async def answer(self, _call: Call) -> Answer:
        """Refuse, as the line of the embedded model does."""
        raise queue_full(SECONDS)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", dialects.names())
def test_k21_the_wait_is_told_in_every_dialect(
    gateway_server: Callable[..., RunningGateway], name: str, *, stream: bool
) -> None:
    running = gateway_server({"a": Crowded()})
    dialect = dialects.get(name)
    prompt = Prompt(texts=("Hi",)) if name in CONTINUED else None
    turns = () if prompt else (Message(role="user", content=(Text(text="Hi"),)),)
    request = Request(model="m", messages=turns, prompt=prompt, stream=stream, sampling=Sampling(max_tokens=5))
    path, query, body = addressed(dialect.encode_request(request, Losses(), Target()), dialect)
    answer = running.request("POST", f"{path}?{query}" if query else path, body)
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    failure = dialect.decode_error(answer.status, answer.json)
    assert failure.kind == "rate_limit"
    assert "too many requests wait" in failure.message
