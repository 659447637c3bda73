"""A request is changed only where the server's facts demand it, and the change is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from xenoglot.codec.dialect import Target
from xenoglot.codec.fitting import fitted
from xenoglot.codec.loss import Losses
from xenoglot.model.request import Request, ToolChoice

REQUEST = Request(model="m")
FORCED = ToolChoice(mode="required", names=("f",))
TOLD = ["$.tool_choice mode approximated (the server takes only `auto` and `none`)"]


@pytest.mark.parametrize(
    ("choice", "target", "made", "told"),
    [
        pytest.param(None, Target(forced_tools=False), None, [], id="nothing-chosen"),
        pytest.param(FORCED, Target(), FORCED, [], id="forced-and-taken"),
        pytest.param(FORCED, Target(forced_tools=False), replace(FORCED, mode="auto"), TOLD, id="pitfall-18-forced"),
        pytest.param(
            ToolChoice(mode="none"), Target(forced_tools=False), ToolChoice(mode="none"), [], id="pitfall-18-none"
        ),
    ],
)
def test_fitted(choice: ToolChoice | None, target: Target, made: ToolChoice | None, told: list[str]) -> None:
    losses = Losses()
    assert fitted(replace(REQUEST, tool_choice=choice), target, losses) == replace(REQUEST, tool_choice=made)
    assert [str(loss) for loss in losses] == told
