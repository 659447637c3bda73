"""Interceptors at the edges: what is asked of them that no served request shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.backend import Call
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.errors import LossError
from xenoglot.gateway.config.settings import CacheSettings
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.gateway.routing.router import single
from xenoglot.gateway.upstream.interceptors import interceptors_of
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.backend import Answer, EventAnswer
    from xenoglot.backends.remote.sign_in.client_credential import ClientCredential
    from xenoglot.gateway.routing.router import RoutePlan


class Intercepted:
    """A call."""

    def __init__(self, plan: RoutePlan) -> None:
        self.record = RequestLog("req_1", "POST", 0.0, float)
        self.plan = plan
        self.request = Request(model="m")
        self.dialect = get("chat")
        self.headers: Sequence[tuple[str, str]] = ()
        self.passed: tuple[tuple[str, str], ...] = ()
        self.size = 0
        self.losses = Losses()
        self.credential: ClientCredential | None = None

    def change(self, request: Request) -> None:
        """Send another request."""
        self.request = request


async def test_a_cached_answer_whose_request_lost_something_is_refused_where_losses_are() -> None:
    """Another policy may have allowed the loss when the answer was cached."""
    interceptors = interceptors_of(config_for("scripted", cache=CacheSettings()))
    assert interceptors is not None
    backend, call = Scripted(HELLO), Intercepted(single("m", "scripted"))

    async def ask() -> Answer:
        call.losses.dropped("$.sampling", "seed", "there is none")
        return await backend.answer(Call(request=call.request, losses=call.losses))

    answer: EventAnswer = await interceptors.answer(call, ask)  # type: ignore[assignment]
    assert [batch async for batch in answer.batches]
    strict = Intercepted(call.plan)
    strict.losses = Losses(strict=True)
    with pytest.raises(LossError, match="seed"):
        await interceptors.answer(strict, ask)
    assert (len(backend.requests), strict.record.cache) == (1, None)


@pytest.mark.parametrize("routed", [False, True], ids=["as-planned", "by-a-budget"])
async def test_the_answer_of_a_model_that_a_budget_chose_is_not_cached(*, routed: bool) -> None:
    """It is what another model answers, as long as the budget is used up."""
    interceptors = interceptors_of(config_for("scripted", cache=CacheSettings()))
    assert interceptors is not None
    backend, seen = Scripted(HELLO), []
    for _ in range(2):
        call = Intercepted(single("m", "scripted"))

        async def ask(call: Intercepted = call) -> Answer:
            if routed:
                call.plan = single("cheap", "scripted")
            return await backend.answer(Call(request=call.request, losses=call.losses))

        answer: EventAnswer = await interceptors.answer(call, ask)  # type: ignore[assignment]
        assert [batch async for batch in answer.batches]
        seen.append(call.record.cache)
    assert (seen, len(backend.requests)) == ((["miss", "miss"], 2) if routed else (["miss", "hit"], 1))
