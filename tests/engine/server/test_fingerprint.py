"""What names the build and the weights that made an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.engine.shared_engine import call_of, events
from xenoglot.engine.server.server_process import Settings, fingerprint
from xenoglot.engine.server.weights import Weights
from xenoglot.model.events import Started
from xenoglot.model.request import Sampling

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.engine.backend import Engine


def test_findings_f_it_tells_weights_and_templates_apart(tmp_path: Path) -> None:
    one = Weights(path=tmp_path / "one.gguf", name="one")
    other = Weights(path=tmp_path / "other.gguf", name="one")
    one.path.write_bytes(b"1")
    before = fingerprint(one, Settings())
    assert before == fingerprint(one, Settings())
    assert before.startswith("fp_")
    others = {fingerprint(other, Settings()), fingerprint(one, Settings(template="{{ x }}"))}
    one.path.write_bytes(b"12")
    assert len({before, *others, fingerprint(one, Settings())}) == 4


@pytest.mark.parametrize(
    ("dialect", "tells"), [("chat", True), ("completions", True), ("messages", False), ("", False)]
)
async def test_findings_f_answers_of_openai_have_it(
    engine: Engine, weights: Weights, dialect: str, *, tells: bool
) -> None:
    call = replace(call_of("Hi", sampling=Sampling(max_tokens=1)), dialect=dialect)
    (started,) = [event for event in await events(engine, call) if isinstance(event, Started)]
    found = None if started.extra is None else started.extra.fields["system_fingerprint"]
    assert (found is not None) == tells
    assert [*call.losses] == []
    assert weights.path.is_file()
