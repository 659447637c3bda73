"""Probes of servers that are there: the embedded model's own, and a gateway in front of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.engine.embedded_gateway import Serving
from tests.engine.shared_engine import running_engine, weights
from xenoglot.backends.probe_runner import run_probe
from xenoglot.dialect_registry import names
from xenoglot.providers.catalog import checked
from xenoglot.providers.probe.catalog_row import row_of
from xenoglot.providers.probe.runner import ProbeOptions, ordered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.engine.server.server_process import EngineEndpoint
    from xenoglot.providers.probe.findings import Report

__all__ = ["running_engine", "weights"]

SMOLLM = "smollm2-135m-instruct"


def verdicts(report: Report, face: str) -> Mapping[str, str]:
    """What was found in one dialect."""
    return {finding.what: finding.verdict for finding in report.findings if finding.face == face}


def test_the_runtime_of_the_engine(running_engine: EngineEndpoint) -> None:
    options = ProbeOptions(base_url=running_engine.url, keyed=True)
    report = asyncio.run(
        run_probe(options, key=running_engine.key, patience=60.0, socket_path=running_engine.socket_path)
    )
    found = verdicts(report, "chat")
    wanted = {
        "custom_tools": "no",
        "inline_system": "yes",
        "json_schema": "yes",
        "logprobs": "yes",
        "refuses_unknown_fields": "no",
        "refuses_wrong_types": "yes",
        "speaks": "yes",
        "stop_limit": "yes",
        "stream_options": "yes",
        "stream_usage": "yes",
        "streaming": "yes",
        "tool_results": "yes",
        "usual_fields": "yes",
    }
    assert {what: found[what] for what in wanted} == wanted
    assert report.faces == ("chat", "responses", "messages", "completions")
    assert report.settings("chat", "server") | {"lacks": ["repetition_penalty"]} == report.settings("chat", "server")
    assert checked(row_of(report), "the row").models[0].context == 512


def test_a_gateway_in_front_of_the_embedded_model() -> None:
    with Serving({}) as serving:
        report = asyncio.run(run_probe(ProbeOptions(base_url=serving.url), patience=60.0))
    found = verdicts(report, "chat")
    wanted = {
        "custom_tools": "yes",
        "developer_role": "yes",
        "extended_sampling": "yes",
        "forced_tools": "yes",
        "json_schema": "yes",
        "logprobs": "yes",
        "n": "yes",
        "parallel_tool_calls": "yes",
        "strict_tools": "yes",
        "tool_results": "yes",
        "usual_fields": "yes",
    }
    assert {what: found[what] for what in wanted} == wanted
    assert (report.faces, report.model) == (ordered(names()), SMOLLM)
    assert {verdicts(report, face)["streaming"] for face in report.faces} == {"yes"}
    assert report.spent.input_tokens is not None
