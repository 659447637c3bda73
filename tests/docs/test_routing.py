"""docs/routing.md says what `xenoglot.policy` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec
import pytest

from tests.docs.pages import ROOT, UNSET, Rows, code, columns, table
from xenoglot.model.failure import Failure
from xenoglot.policy.affinity import SESSION_FIELDS, SESSION_HEADERS
from xenoglot.policy.capabilities import NEEDS, RequestCondition
from xenoglot.policy.failure_policy import CAUSES, KINDS, STATUSES, judge
from xenoglot.policy.target_health import BreakerSettings, Retry
from xenoglot.policy.target_order import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = "routing.md"


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        pytest.param("`retry`", Retry, id="retry"),
        pytest.param("`breaker`", BreakerSettings, id="breaker"),
        pytest.param("Conditions", RequestCondition, id="when"),
    ],
)
def test_every_setting_is_explained(heading: str, kind: type[msgspec.Struct]) -> None:
    fields = [
        [code(field.name), UNSET if field.default is None else code(msgspec.json.encode(field.default).decode())]
        for field in msgspec.structs.fields(kind)
    ]
    assert [[row[0], row[2]] for row in table(PAGE, heading)] == fields


def retry_rows() -> Iterator[list[str]]:
    found = [(f"cause {code(cause)}", Failure(kind="upstream", message="", cause=cause)) for cause in CAUSES]
    found += [(f"status {status}", Failure(kind="invalid_request", message="", status=status)) for status in STATUSES]
    found += [(f"kind {code(kind)}", Failure(kind=kind, message="")) for kind in KINDS]
    for what, failure in found:
        verdict = judge(failure)
        yield [what, *("yes" if may else "no" for may in (verdict.retry_same, verdict.retry_other)), verdict.blame]


def test_the_retry_table_is_there() -> None:
    assert table(PAGE, "The retry table") == list(retry_rows())


def test_every_strategy_is_there() -> None:
    assert columns(PAGE, "The first choice", 1) == [[code(strategy)] for strategy in get_args(Strategy)]


def test_every_sign_of_a_session_is_there() -> None:
    said: Rows = columns(PAGE, "Affinity", 2)
    assert [names for _, names in said[:2]] == [code(*SESSION_HEADERS), code(*SESSION_FIELDS)]


def test_every_need_is_there() -> None:
    page = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    _, _, words = page.partition("| word | what the request has |\n|---|---|\n")
    assert [row.split(" | ")[0] for row in words.partition("\n\n")[0].splitlines()] == [
        f"| {code(need)}" for need in NEEDS
    ]
