"""Reading whole answers."""

import time
from collections.abc import Iterator

import pytest

from xenoglot.dialects.interactions import INTERACTIONS
from xenoglot.model.json import JSON


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize(
    ("moment", "created"),
    [("2026-01-01T00:00:00Z", 1767225600), ("2026-01-01T00:00:00", None), ("2026-01-01", None), ("soon", None)],
)
def test_time_does_not_depend_on_the_zone_of_this_machine(moment: str, created: int | None) -> None:
    body: JSON = {"id": "v1_1", "model": "m", "status": "completed", "created": moment, "steps": []}
    response = INTERACTIONS.decode_response(body)
    assert response.created == created
