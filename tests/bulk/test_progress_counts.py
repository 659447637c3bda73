"""What is told of a run in a few words."""

from __future__ import annotations

import pytest

from xenoglot.backends.batch_lines import LineOutcome
from xenoglot.bulk.line_request import LineReport
from xenoglot.bulk.progress_counts import ProgressCounts
from xenoglot.model.response import Usage

ANSWER = LineReport(outcome=LineOutcome(body={}), usage=Usage(input_tokens=900, output_tokens=600))
LOSSY = LineReport(outcome=LineOutcome(body={}, losses=("x",)))
ERROR = LineReport(outcome=LineOutcome(status=500, body={}))


@pytest.mark.parametrize(
    ("told", "words", "summary"),
    [
        pytest.param([], "0.0 lines/s", "20 of 120 lines answered, in 10 s", id="nothing-yet"),
        pytest.param(
            [(ANSWER, 0.02)] * 20,
            "2.0 lines/s, 30.0k tokens, $0.40, 40 s left",
            "40 of 120 lines answered, 30.0k tokens, $0.40, in 10 s",
            id="answers",
        ),
        pytest.param(
            [(ANSWER, 0.0001), (LOSSY, None), (ERROR, None)],
            "0.3 lines/s, 1.5k tokens, at least $0.00010, 1 failed, 5 min left",
            "23 of 120 lines answered, 1 with an error, 1.5k tokens, at least $0.00010, 1 with losses, in 10 s",
            id="all-sorts",
        ),
        pytest.param(
            [(ERROR, None)] * 100,
            "10.0 lines/s, 100 failed",
            "120 of 120 lines answered, 100 with an error, in 10 s",
            id="done",
        ),
    ],
)
def test_how_it_goes(told: list[tuple[LineReport, float | None]], words: str, summary: str) -> None:
    tally = ProgressCounts(total=120, started_at=5.0, before=20, done=20)
    for asked, cost in told:
        tally.count(asked, cost)
    assert (tally.text(15.0), tally.summary(15.0)) == (words, summary)
