"""Backends around a backend: text tools, JSON output, stop strings, fan-out."""
