"""The models that can be asked for, gathered from names and backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.said import Backend
from xenoglot.errors import FailureError
from xenoglot.gateway.listing import available
from xenoglot.gateway.routing import Plan, Router, single
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence


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
async def test_available(plans: list[Plan], models: list[ModelInfo], asked: list[int]) -> None:
    backends = {"one": Having("a", "b"), "silent": Having()}
    found = await available(Router(plans), backends)
    assert (list(found), [backend.asked for backend in backends.values()]) == (models, asked)


async def test_nobody_says_anything() -> None:
    with pytest.raises(FailureError, match="connection error: the upstream cannot be reached"):
        await available(Router([single("*", "silent")]), {"silent": Having()})
