"""Rendering in a terminal: frontend, Markdown, progress."""
