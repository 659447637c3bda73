"""The SDK of OpenTelemetry, set up for one process: providers of spans and metrics, and their exporters by OTLP.

Exports happen in threads of the SDK. What the collector does not take is dropped there: spans beyond the queue
(`OTEL_BSP_MAX_QUEUE_SIZE`) and batches that fail. No request waits for any of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NoOpTracerProvider

from xenoglot.gateway.telemetry import conventions as names
from xenoglot.gateway.telemetry.instruments import Instruments

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from opentelemetry.metrics import MeterProvider as AnyMeterProvider
    from opentelemetry.trace import Tracer
    from opentelemetry.trace import TracerProvider as AnyTracerProvider

    from xenoglot.gateway.config.telemetry import TelemetrySettings

PROTOCOL: Final = "http/protobuf"
FLUSH_SECONDS: Final = 5.0
"""How long the end of a process waits for the collector."""

_logger = logging.getLogger("xenoglot.gateway")


class Telemetry:
    """Spans and metrics of one process."""

    def __init__(self, settings: TelemetrySettings, headers: str | None, environ: Mapping[str, str]) -> None:
        self.content = settings.content
        on = environ.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"
        fields = None if headers is None else _headers(headers)
        resource = _resource(settings, environ)
        for variable in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"):
            if environ.get(variable, PROTOCOL) != PROTOCOL:
                _logger.warning("%s=%s: spans are exported by %s alone", variable, environ[variable], PROTOCOL)
        self._exporters: list[OTLPSpanExporter | OTLPMetricExporter] = []
        self._spans: TracerProvider | None = None
        if on and settings.traces and environ.get("OTEL_TRACES_EXPORTER") != "none":
            self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
            spans = OTLPSpanExporter(_url(settings, "traces"), headers=fields)
            self._spans.add_span_processor(BatchSpanProcessor(spans))
            self._exporters.append(spans)
        self._metrics: MeterProvider | None = None
        if on and settings.metrics and environ.get("OTEL_METRICS_EXPORTER") != "none":
            metrics = OTLPMetricExporter(_url(settings, "metrics"), headers=fields)
            self._exporters.append(metrics)
            self._metrics = MeterProvider(
                [PeriodicExportingMetricReader(metrics)], resource=resource, shutdown_on_exit=False
            )
        tracers: AnyTracerProvider = self._spans or NoOpTracerProvider()
        meters: AnyMeterProvider = self._metrics or NoOpMeterProvider()
        own = version("xenoglot")
        self.tracer: Tracer = tracers.get_tracer("xenoglot", own, schema_url=names.SCHEMA_URL)
        self.instruments = Instruments(meters.get_meter("xenoglot", own, schema_url=names.SCHEMA_URL))

    def close(self) -> None:
        """Export what is left, within some seconds; it blocks."""
        late = threading.Timer(FLUSH_SECONDS, self._give_up)
        late.start()
        try:
            if self._spans is not None:
                self._spans.shutdown()
            if self._metrics is not None:
                self._metrics.shutdown()
        finally:
            late.cancel()
            late.join()

    def _give_up(self) -> None:
        """Have exporters stop their retries."""
        for exporter in self._exporters:
            exporter.shutdown()


@asynccontextmanager
async def open_telemetry(
    settings: TelemetrySettings, headers: str | None, environ: Mapping[str, str]
) -> AsyncGenerator[Telemetry]:
    """Give the SDK as the settings have it; at the end, what is left is exported. `headers` are for the collector."""
    telemetry = await asyncio.to_thread(Telemetry, settings, headers, environ)
    try:
        yield telemetry
    finally:
        await asyncio.to_thread(telemetry.close)


def _resource(settings: TelemetrySettings, environ: Mapping[str, str]) -> Resource:
    """Return what describes this service; what the file does not set is taken from the environment."""
    own = {names.SERVICE_NAME: "xenoglot", names.SERVICE_VERSION: version("xenoglot")}
    resource = Resource(own).merge(Resource.create())
    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    name = settings.service_name or (None if named else "xenoglot")
    return resource if name is None else resource.merge(Resource({names.SERVICE_NAME: name}))


def _url(settings: TelemetrySettings, signal: str) -> str | None:
    """Return the URL of a signal; `None` leaves it to the environment."""
    return None if settings.endpoint is None else f"{settings.endpoint.rstrip('/')}/v1/{signal}"


def _headers(text: str) -> dict[str, str]:
    """Return the headers in `name=value,name=value`."""
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
