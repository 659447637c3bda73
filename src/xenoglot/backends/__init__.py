"""Backends: another server, a local model, a script or a function that answers canonical requests."""
