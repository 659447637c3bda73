"""Blocks of content, decoded and encoded."""
