"""OpenTelemetry: spans and metrics of requests, exported by OTLP."""
