"""Stored responses and conversations, background responses, and cached reasoning."""
