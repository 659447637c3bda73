"""Several embedded models: what is wrong with one is told with its place in the file, before anything listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.engine.errors import WeightsError
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.engine.server.weights import Weights
    from xenoglot.model.json import JSONObject


async def starts(embedded: JSONObject) -> None:
    """Assemble a gateway and let it go again, without loading the usual model."""
    async with build_gateway(check({"store": {"url": "off"}, "embedded": embedded}, {}, "the tests"), ready=False):
        pass


async def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_text("no model")
    with pytest.raises(WeightsError, match=r"`embedded\.models\.a\.gguf`: not a GGUF file"):
        await starts({"models": {"a": {"gguf": str(tmp_path / "a.gguf")}}})


async def test_a_template_that_is_not_there(tmp_path: Path, weights: Weights) -> None:
    missing = str(tmp_path / "none.jinja")
    with pytest.raises(ConfigurationError, match=r"embedded\.models\.a\.chat_template: found .*expected a file"):
        await starts({"models": {"a": {"gguf": str(weights.path), "chat_template": missing}}})
    with pytest.raises(ConfigurationError, match=r"embedded\.chat_template: found"):
        await starts({"chat_template": missing})


async def test_k21_nothing_is_loaded_before_it_is_asked(weights: Weights) -> None:
    async with build_gateway(
        check({"store": {"url": "off"}, "embedded": {"models": {"a": {"gguf": str(weights.path)}}}}, {}, "the tests"),
        ready=False,
    ) as gateway:
        assert gateway.router.names == ("smollm2-135m-instruct", "a", "all-minilm-l6-v2")


@pytest.mark.parametrize("name", ["smollm2-135m-instruct", "all-minilm-l6-v2"])
async def test_a_name_that_another_one_has(name: str, weights: Weights) -> None:
    with pytest.raises(ConfigurationError, match=rf"embedded\.models\.\S*{name}\S*: .*another embedded model"):
        await starts({"models": {name: {"gguf": str(weights.path)}}})
