"""Requests, decoded and encoded."""
