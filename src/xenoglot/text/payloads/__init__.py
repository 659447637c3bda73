"""Parsers for tool call payloads: JSON, XML-like markup, Python, key-value."""
