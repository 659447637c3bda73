"""The models that can be asked for, gathered from names and backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.scripted_backends import Backend
from xenoglot.codec.target import Target
from xenoglot.errors import FailureError
from xenoglot.gateway.api.model_facts import ModelFacts
from xenoglot.gateway.api.models import list_models
from xenoglot.gateway.config.extra_endpoints import ModelOverrides
from xenoglot.gateway.config.ledger import PriceSettings
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.settings import UpstreamSettings
from xenoglot.gateway.ledger.request_cost import PriceList
from xenoglot.gateway.routing.router import RoutePlan, Router, single
from xenoglot.model.catalog import ModelInfo, TokenPrice
from xenoglot.model.failure import Failure
from xenoglot.providers.costs import Prices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.policy.capabilities import Need


class Having(Backend):
    """Says which models it has; none at all is a failure to say."""

    def __init__(self, *models: str) -> None:
        super().__init__()
        self._models = models
        self.asked = 0

    async def models(self) -> Sequence[ModelInfo]:
        """Return them."""
        self.asked += 1
        if not self._models:
            raise FailureError(Failure(kind="upstream", message="connection error: the upstream cannot be reached"))
        return tuple(ModelInfo(id=name, owned_by="somebody", max_input_tokens=8192) for name in self._models)


def info(name: str) -> ModelInfo:
    """Return what `Having` says of a model."""
    return ModelInfo(id=name, owned_by="somebody", max_input_tokens=8192)


ALL = single("*", "one")


@pytest.mark.parametrize(
    ("plans", "models", "asked"),
    [
        pytest.param([ALL], [info("a"), info("b")], [1, 0], id="every-name"),
        pytest.param([single("b*", "one")], [info("b")], [1, 0], id="those-that-fit"),
        pytest.param([single("mine", "one", "a")], [ModelInfo(id="mine")], [0, 0], id="an-alias-asks-nobody"),
        pytest.param([single("a", "one")], [info("a")], [1, 0], id="a-name-as-it-is-there"),
        pytest.param([single("mine", "one", "a"), ALL], [info("mine"), info("a"), info("b")], [1, 0], id="both"),
        pytest.param([single("a", "silent"), ALL], [ModelInfo(id="a"), info("b")], [1, 1], id="another-backends-name"),
        pytest.param([ALL, single("*", "silent")], [info("a"), info("b")], [1, 1], id="a-silent-one-is-left-out"),
        pytest.param(
            [single("a", "one"), single("*", "one", "a", substituted=True)],
            [info("a")],
            [1, 0],
            id="what-is-answered-instead-is-not-listed",
        ),
    ],
)
async def test_available(plans: list[RoutePlan], models: list[ModelInfo], asked: list[int]) -> None:
    backends = {"one": Having("a", "b"), "silent": Having()}
    found = await list_models(Router(plans), backends)
    assert (list(found), [backend.asked for backend in backends.values()]) == (models, asked)


@pytest.mark.parametrize(
    ("plans", "listed"),
    [
        pytest.param([single("b", "told")], {"b": 4096}, id="the-first-row-that-tells-it"),
        pytest.param([single("mine", "told", "b1")], {"mine": 4096}, id="by-the-name-at-the-server"),
        pytest.param([single("other", "told")], {"other": None}, id="no-row-fits"),
        pytest.param([single("b", "untold")], {"b": None}, id="no-facts"),
        pytest.param([single("*", "one")], {"a": 8192, "b": 8192}, id="what-the-server-lists-comes-first"),
    ],
)
async def test_findings_clients_3_context_windows_are_those_of_the_facts(
    plans: list[RoutePlan], listed: dict[str, int | None]
) -> None:
    facts = (
        ModelOverrides(names=("b*",), text_syntax="hermes"),
        ModelOverrides(names=("b", "b1"), context=4096),
        ModelOverrides(names=("b*",), context=2048),
    )
    upstream = UpstreamSettings(dialect="chat", base_url="http://127.0.0.1:9")
    upstreams = {
        "told": replace(upstream, model_overrides=facts),
        "one": replace(upstream, model_overrides=facts),
        "untold": upstream,
    }
    backends = {"told": Having("c"), "one": Having("a", "b"), "untold": Having("c")}
    found = await list_models(Router(plans), backends, ModelFacts(upstreams))
    assert {model.id: model.max_input_tokens for model in found} == listed


async def test_nobody_says_anything() -> None:
    with pytest.raises(FailureError, match="connection error: the upstream cannot be reached"):
        await list_models(Router([single("*", "silent")]), {"silent": Having()})


class Limited(Having):
    """A backend that is known to take neither tools nor images."""

    def missing_capabilities(self, model: str) -> frozenset[Need]:  # noqa: ARG002  of every model
        return frozenset({"tools", "images"})


async def test_facts_fill_in_what_a_server_does_not_list() -> None:
    upstream = UpstreamSettings(
        dialect="chat",
        base_url="http://127.0.0.1:9",
        provider="openai",
        model_overrides=(
            ModelOverrides(names=("a",), context=4096, target=Target(max_tokens_limit=512, efforts=("low", "high"))),
        ),
    )
    config = Config(upstreams={"one": upstream}, prices=(PriceSettings(model="a", input=0.5, output=1.25),))
    facts = ModelFacts(config.upstreams, PriceList(config, lambda: 0.0, Prices(packaged=False)))
    found = await list_models(Router([single("a", "one"), single("b", "one")]), {"one": Limited("c")}, facts)
    assert found == (
        ModelInfo(
            id="a",
            max_input_tokens=4096,
            max_output_tokens=512,
            input_modalities=("text",),
            tools=False,
            reasoning=True,
            price=TokenPrice(input="0.0000005", output="0.00000125"),
        ),
        ModelInfo(id="b", input_modalities=("text",), tools=False),
    )


async def test_windows_and_prices_of_the_table() -> None:
    """A provider whose row has no windows, and whose list neither: the table of prices has some of them."""
    upstream = UpstreamSettings(dialect="chat", base_url="http://127.0.0.1:9", provider="together")
    config = Config(upstreams={"one": upstream, "own": replace(upstream, provider=None)}, ledger=None)
    facts = ModelFacts(config.upstreams, PriceList(config, lambda: 1.7e9))
    name = "openai/gpt-oss-120b"
    plans = [single("a", "one", name), single("b", "own", name), single("c", "one", "no-such-model")]
    known, own, unknown = await list_models(Router(plans), {"one": Having(), "own": Having()}, facts)
    assert (known.max_input_tokens or 0) > 0
    assert known.price is not None
    assert (own, unknown) == (ModelInfo(id="b"), ModelInfo(id="c"))
