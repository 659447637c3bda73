"""Shortcuts for the most common shapes; a law holds each to the result of the general code."""
