"""Streams, decoded and encoded."""
