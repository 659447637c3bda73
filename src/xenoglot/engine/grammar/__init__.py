"""Constrained decoding: compiles JSON Schema and tool choices to the runtime's grammar notation."""
