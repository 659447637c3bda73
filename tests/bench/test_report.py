"""The report: medians, ratios to nginx of the same round, goals, and tables."""

from __future__ import annotations

import pytest

from bench import report
from bench.measuring import Result, Sample, Spread
from bench.scenarios import EVERY, MATRIX, Goal, Scenario
from bench.starting import Begun

PACED = Scenario(
    name="p",
    title="paced",
    stream=True,
    connections=10,
    pace_us=20_000,
    goals=(Goal("ratio", 1.25), Goal("delivered", 0.99, least=True), Goal("token_p99_us", 5000), Goal("rss_mb", 64)),
)
WHOLE = Scenario(name="w", title="whole", goals=(Goal("ratio", 1.75), Goal("cpu_us", 500)))


def spread(p50: float, p99: float) -> Spread:
    return Spread(n=10, mean=p50, p50=p50, p99=p99, p999=p99, max=p99)


def sample(units: int, cpu_us: float, *, p50: float = 100, p99: float = 200, errors: int = 0) -> Sample:
    """A window of a second in which each unit, request or token, took `cpu_us`."""
    return Sample(
        seconds=1.0,
        answers=units,
        tokens=units,
        bytes=0,
        late=0,
        errors={"status": errors},
        request_us=spread(p50, p99),
        first_us=spread(p50 / 2, p99),
        token_us=spread(p50, p99),
        cpu_ns=round(cpu_us * 1000 * units),
        loop_ns=round(cpu_us * 750 * units),
        rss_kb=20 * 1024,
        peak_kb=0,
    )


def found(scenario: str, **of: tuple[Sample, ...]) -> list[Result]:
    return [Result(scenario, name, samples) for name, samples in of.items()]


def test_a_row_has_medians_and_the_ratio_is_that_of_each_round() -> None:
    nginx = (sample(100, 20), sample(100, 40), sample(100, 10))
    ours = (sample(100, 40), sample(100, 44), sample(100, 30))  # 2.0, 1.1 and 3.0 times
    rows = report.rows([WHOLE], found("w", nginx=nginx, xenoglot=ours))
    assert [(row.gateway, row.cpu_us, row.ratio) for row in rows] == [("nginx", 20.0, 1.0), ("xenoglot", 40.0, 2.0)]
    assert (rows[0].loop_us, rows[1].loop_us) == (15.0, 30.0)
    assert (rows[1].per_second, rows[1].p50, rows[1].p99, rows[1].first, rows[1].rss_mb) == (100, 100, 200, 50, 20)


def test_what_could_not_be_measured_says_why() -> None:
    rows = report.rows([WHOLE], [Result("w", "xenoglot", reason="not offered")])
    assert report.cells(rows[0])[:3] == ["w", "xenoglot", "not offered"]
    assert [verdict.found for verdict in report.verdicts([WHOLE], rows)] == ["not offered", "not offered"]
    assert not any(verdict.met for verdict in report.verdicts([WHOLE], rows))


def test_errors_are_summed_and_told() -> None:
    rows = report.rows([WHOLE], found("w", xenoglot=(sample(5, 1, errors=2), sample(5, 1, errors=1))))
    assert report.cells(rows[0])[-1] == "3"


def test_goals_are_held_against_ours_alone() -> None:
    results = found("p", nginx=(sample(500, 10),), xenoglot=(sample(500, 12, p99=4000),), other=(sample(1, 9000),))
    verdicts = report.verdicts([PACED], report.rows([PACED], results))
    assert [(verdict.found, verdict.met) for verdict in verdicts] == [
        ("1.2", True),
        ("1", True),
        ("4,000", True),
        ("20", True),
    ]


def test_a_goal_that_is_missed_says_no() -> None:
    results = found("p", nginx=(sample(500, 10),), xenoglot=(sample(400, 13, p99=6000),))
    verdicts = report.verdicts([PACED], report.rows([PACED], results))
    assert [cells[-1] for cells in report.goal_cells(verdicts)] == ["NO", "NO", "NO", "yes"]


def test_goals_that_are_met_are_apart_from_targets_that_are_not() -> None:
    verdicts = [
        report.Verdict("a token: CPU, times nginx", "1.15", "at most 1.25", met=True, scenario="paced-1000"),
        report.Verdict("import xenoglot, ms", "120", "at most 100", met=False),
    ]
    met, _, missed = report.sections(verdicts).partition("### Targets that are not met")
    assert met == (
        "### Goals that are met\n\n| what | limit | command | measured |\n| --- | --- | --- | ---: |\n"
        '| a token: CPU, times nginx | at most 1.25 | `make bench ARGS="--only paced-1000"` | 1.15 |\n\n'
    )
    assert missed.splitlines()[-1] == "| import xenoglot, ms | at most 100 | `make bench` | 120 |"
    assert report.sections([]).count("None.") == 2


def test_the_start_has_goals_too() -> None:
    verdicts = report.start_verdicts(Begun("xenoglot", 0.2, 41.0), 90.0)
    assert [(verdict.found, verdict.met) for verdict in verdicts] == [("0.2", True), ("41", False), ("90", True)]


def test_tables_are_lined_up_for_a_terminal_and_ruled_for_a_page() -> None:
    heads, body = ("name", "of", "n"), [["a", "b", "1"], ["longer", "c", "20"]]
    assert report.table(heads, body) == "name    of   n\na       b    1\nlonger  c   20\n"
    assert (
        report.markdown(heads, body) == "| name | of | n |\n| --- | --- | ---: |\n| a | b | 1 |\n| longer | c | 20 |\n"
    )


def test_the_matrix_has_a_line_for_each_client() -> None:
    results = [
        *found("chat-chat", xenoglot=(sample(10, 5),)),
        *found("chat-messages", xenoglot=(sample(10, 7, errors=1),)),
    ]
    rows = report.rows(MATRIX, results)
    pairs = [(client, upstream) for client in ("chat", "messages") for upstream in ("chat", "messages")]
    assert report.matrix(rows, pairs) == (
        ["client \\ upstream", "chat", "messages"],
        [["chat", "5.0", "7.0!"], ["messages", "-", "-"]],
    )


def test_charts_are_drawn_of_what_was_measured() -> None:
    names = ["verbatim", "translated", *(f"verbatim-c{count}" for count in (1, 16))]
    results = [each for name in names for each in found(name, nginx=(sample(9, 10),), xenoglot=(sample(9, 11),))]
    drawn = report.charts(EVERY, report.rows(EVERY, results))
    assert sorted(drawn) == ["cost", "ratio", "verbatim-connections"]
    assert all(image.startswith("<svg") for image in drawn.values())


@pytest.mark.parametrize("scenarios", [EVERY, MATRIX])
def test_each_scenario_has_a_name_of_its_own(scenarios: tuple[Scenario, ...]) -> None:
    names = [scenario.name for scenario in scenarios]
    assert len(names) == len(set(names))
