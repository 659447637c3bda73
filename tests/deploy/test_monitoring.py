"""Dashboard and alert rules use metrics and labels that a gateway exposes, in queries that Prometheus parses."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.architecture.tree import ROOT
from tests.deploy.tools import parse_promql, tool, yaml
from tests.gateway.running_gateway import RunningGateway, config_for
from tests.gateway.scripted_backends import HELLO, Backend
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.loss import Loss
from xenoglot.engine.metrics import EngineMetrics
from xenoglot.gateway.api.metrics import ledger_exposition
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.ledger import PriceSettings
from xenoglot.gateway.config.settings import ModelSettings
from xenoglot.gateway.observability.request_log import RequestLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.backends.backend import Backend as Answering
    from xenoglot.model.json import JSON

FOLDER = ROOT / "deploy" / "monitoring"
BOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
NAME = re.compile(r"\bxenoglot_\w+")
SELECTED = re.compile(r"(xenoglot_\w+)\{([^}]*)\}")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ", re.MULTILINE)
OF_PROMETHEUS = {"job", "instance"}
"""Labels that the scrape adds."""


class Measured(Backend):
    """A backend with the metrics of an embedded model."""

    def measures(self) -> EngineMetrics:
        """Return some."""
        return EngineMetrics(model="small", slots=4)


@pytest.fixture(scope="module")
def exposed() -> dict[str, set[str]]:
    """The metrics of a gateway with a ledger and prices that has answered and failed: name -> labels."""
    down = Backend("down")
    backends: dict[str, Answering] = {"main": Scripted(HELLO), "down": down, "embedded": Measured("embedded")}
    models = (ModelSettings(name="large", upstream="main"), ModelSettings(name="small", upstream="down"))
    prices = (PriceSettings(model="*", input=1, output=1),)
    with RunningGateway(Gateway(config_for(*backends, models=models, prices=prices), backends)) as gateway:
        for model, stream, status in (("large", False, 200), ("large", True, 200), ("small", False, 503)):
            body: JSON = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "stream": stream, "top_k": 3}
            answer = gateway.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            assert answer.status == status
        lossy = RequestLog(request_id="", method="POST", started=0.0, clock=lambda: 1.0, model="large")
        lossy.losses = (Loss("$", "top_k", "dropped", "why"),)
        gateway.gateway.tally.add(lossy)
        text = gateway.request("GET", "/metrics").body.decode()
    text += ledger_exposition(written=1, dropped=0, waiting=0).decode()
    labels: dict[str, set[str]] = defaultdict(set)
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)", text, re.MULTILINE):
        labels[name] = set()
        if kind == "histogram":
            labels |= {f"{name}_{part}": set() for part in ("bucket", "sum", "count")}
    for name, pairs in SAMPLE.findall(text):
        labels[name] |= set(re.findall(r'(\w+)="', pairs))
    return labels


def rules() -> Iterator[dict[str, Any]]:
    """Yield the alert rules."""
    [document] = yaml((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
    for group in document["groups"]:
        yield from group["rules"]


def queries() -> dict[str, str]:
    """The queries of the dashboard and the rules, by what shows them, with Grafana's variables filled in."""
    found = {rule["alert"]: rule["expr"] for rule in rules()}
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    return {title: query.replace("$__rate_interval", "1m").replace("$job", ".*") for title, query in found.items()}


def test_queries_parse() -> None:
    parse_promql(list(queries().values()))


def test_queries_use_metrics_that_exist(exposed: dict[str, set[str]]) -> None:
    used = {name for query in queries().values() for name in NAME.findall(query)}
    variables = {name for row in BOARD["templating"]["list"] for name in NAME.findall(row["query"])}
    assert sorted((used | variables) - set(exposed)) == []


def test_queries_use_labels_that_exist(exposed: dict[str, set[str]]) -> None:
    wrong = []
    for title, query in queries().items():
        names = NAME.findall(query)
        known = OF_PROMETHEUS.union(*(exposed[name] for name in names))
        grouped = {label.strip() for labels in GROUPED.findall(query) for label in labels.split(",")}
        selected = {label for _, pairs in SELECTED.findall(query) for label in re.findall(r"(\w+)[=!]~?\"", pairs)}
        limits = {"scope", "failure"} if any("_limits_" in name for name in names) else set()  # only where one waited
        wrong += [(title, label) for label in sorted((grouped | selected) - known - limits)] if names else []
    assert wrong == []


def test_the_dashboard_shows_each_counter_of_the_gateway(exposed: dict[str, set[str]]) -> None:
    """Counters that only restate others, and deprecated names, need no panel."""
    used = {name for query in queries().values() for name in NAME.findall(query)}
    others = ("xenoglot_engine_", "xenoglot_ledger_")
    histograms = {name.removesuffix("_bucket") for name in exposed if name.endswith("_bucket")}
    parts = {f"{name}_{part}" for name in histograms for part in ("sum", "count")} | histograms
    missing = {name for name in exposed if not name.startswith(others)} - used - parts
    assert missing == {"xenoglot_target_tries_total", "xenoglot_gateway_cost_total"}


def test_the_dashboard_has_what_grafana_needs() -> None:
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= set(BOARD)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        legends = {name for target in panel["targets"] for name in re.findall(r"{{(\w+)}}", target["legendFormat"])}
        grouped = {
            label.strip()
            for target in panel["targets"]
            for labels in GROUPED.findall(target["expr"])
            for label in labels.split(",")
        }
        assert legends <= grouped, panel["title"]


def test_alerts_say_what_happened_and_what_to_look_at() -> None:
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in {"warning", "critical"}


def test_yaml_is_in_form() -> None:
    tool("yamllint", "--strict", "--config-file", "deploy/yamllint.yml", "deploy/monitoring")
