"""Decoders from the embedded model's text to content, reasoning and tool calls."""
