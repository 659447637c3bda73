"""A collector of OTLP over HTTP: it decodes the official protobufs."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.gateway.running_gateway import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

KINDS = {2: "SERVER", 3: "CLIENT"}


class CollectedSpan:
    """A span: ids as hexadecimal digits, attributes as Python values."""

    def __init__(self, span: Span) -> None:
        self.name = span.name
        self.kind = KINDS[span.kind]
        self.trace = span.trace_id.hex()
        self.id = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.state = span.trace_state
        self.failed = span.status.code == span.status.STATUS_CODE_ERROR
        self.why = span.status.message
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.attributes = _values(span.attributes)


class Collector:
    """Takes what is exported to `url`; with a `status`, it answers so."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.spans: list[CollectedSpan] = []
        self.metrics: dict[str, list[HistogramDataPoint]] = {}
        self.resource: dict[str, object] = {}
        self.schema = ""
        self.headers: list[dict[str, str]] = []
        self._news = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.take(self.path, body, dict(self.headers.items()))
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="collector")

    def take(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        """Decode what was exported."""
        with self._news:
            self.headers.append({name.lower(): value for name, value in headers.items()})
            if path == "/v1/traces":
                traces = ExportTraceServiceRequest.FromString(body)
                for batch in traces.resource_spans:
                    self.resource = _values(batch.resource.attributes)
                    for scope in batch.scope_spans:
                        self.schema = scope.schema_url
                        self.spans += map(CollectedSpan, scope.spans)
            elif path == "/v1/metrics":
                found = ExportMetricsServiceRequest.FromString(body)
                for one in found.resource_metrics:
                    for measured in one.scope_metrics:
                        for metric in measured.metrics:
                            self.metrics[metric.name] = list(metric.histogram.data_points)
            self._news.notify_all()

    def wait(self, enough: Callable[[], object]) -> None:
        """Wait until `enough` was exported."""
        with self._news:
            assert self._news.wait_for(enough, TIMEOUT)

    def requests(self, count: int) -> list[CollectedSpan]:
        """Wait for the SERVER spans of so many requests; return them in the order in which they began."""
        self.wait(lambda: len([span for span in self.spans if span.kind == "SERVER"]) >= count)
        return sorted((span for span in self.spans if span.kind == "SERVER"), key=lambda span: span.start)

    def tries(self, request: CollectedSpan) -> list[CollectedSpan]:
        """Return the CLIENT spans below that of a request."""
        below = [span for span in self.spans if span.kind == "CLIENT" and span.parent == request.id]
        assert all(span.trace == request.trace for span in below)
        return sorted(below, key=lambda span: span.start)

    def points(self, name: str) -> dict[tuple[tuple[str, object], ...], HistogramDataPoint]:
        """Return the points of a metric by their attributes."""
        return {tuple(sorted(_values(point.attributes).items())): point for point in self.metrics[name]}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(TIMEOUT)


def _values(pairs: Iterable[KeyValue]) -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind or "string_value")
