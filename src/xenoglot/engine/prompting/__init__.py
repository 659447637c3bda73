"""Converts a request to a prompt and a grammar for the embedded model."""
