"""Settings of OpenTelemetry: what is exported, and to which collector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.gateway.config.schema import url_problem

if TYPE_CHECKING:
    from xenoglot.gateway.config.schema import Problems


class TelemetrySettings(Struct, frozen=True, kw_only=True):
    """Traces and metrics by OTLP over HTTP, to the collector at the base URL `endpoint`.

    What is not set here is taken from the variables of OpenTelemetry (`OTEL_EXPORTER_OTLP_ENDPOINT` and others).
    """

    enabled: bool = True
    endpoint: str | None = None
    headers_env: str | None = None
    """The environment variable with headers for the collector, as `name=value,name=value`."""
    service_name: str | None = None
    traces: bool = True
    metrics: bool = True
    content: bool = False
    """Whether spans hold prompts and answers."""


def check_telemetry(telemetry: TelemetrySettings | None, problems: Problems) -> None:
    """Note what is wrong with the settings."""
    if telemetry is not None and telemetry.endpoint is not None and (problem := url_problem(telemetry.endpoint)):
        problems.add("telemetry.endpoint", problem)
