"""Adapting a request to what its target supports."""
