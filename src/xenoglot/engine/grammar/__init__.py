"""Constrained decoding: JSON Schema, and the choice of a tool, as grammars in the runtime's notation."""
