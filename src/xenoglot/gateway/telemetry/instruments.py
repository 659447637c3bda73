"""Metrics of requests by the names of the semantic conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.gateway.telemetry import conventions as names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.metrics import Histogram, Meter

    from xenoglot.gateway.observability.request_log import RequestLog


class Instruments:
    """The histograms of one process."""

    def __init__(self, meter: Meter) -> None:
        def histogram(name: str, unit: str, text: str, buckets: Sequence[float]) -> Histogram:
            return meter.create_histogram(name, unit, text, explicit_bucket_boundaries_advisory=buckets)

        seconds, first = names.DURATION_BUCKETS, names.FIRST_TOKEN_BUCKETS
        self._operation = histogram(names.CLIENT_OPERATION_DURATION, "s", "Duration of an operation.", seconds)
        self._tokens = histogram(names.CLIENT_TOKEN_USAGE, "{token}", "Tokens of an operation.", names.TOKEN_BUCKETS)
        self._first_chunk = histogram(names.CLIENT_TIME_TO_FIRST_CHUNK, "s", "Time to the first chunk.", first)
        self._request = histogram(names.SERVER_REQUEST_DURATION, "s", "Duration of a request.", seconds)
        self._first_token = histogram(names.SERVER_TIME_TO_FIRST_TOKEN, "s", "Time to the first token.", first)
        text = "Time per output token after the first."
        self._per_token = histogram(names.SERVER_TIME_PER_OUTPUT_TOKEN, "s", text, names.OUTPUT_TOKEN_BUCKETS)

    def record(self, record: RequestLog, ended: float, attributes: Mapping[str, str]) -> None:
        """Note a request to a model that ended at a time of its clock; estimated tokens are not noted."""
        seconds = ended - record.started
        labels = attributes if record.failure is None else {**attributes, names.ERROR_TYPE: record.failure}
        self._operation.record(seconds, labels)
        self._request.record(seconds, labels)
        if record.first_token is not None and record.stream:
            self._first_chunk.record(record.first_token - record.started, attributes)
            self._first_token.record(record.first_token - record.started, attributes)
            if (gap := record.token_gap(ended)) is not None:
                self._per_token.record(gap, attributes)
        usage = record.usage
        if usage is not None and not usage.estimated:
            for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
                if count is not None:
                    self._tokens.record(count, {**attributes, names.GEN_AI_TOKEN_TYPE: kind})
