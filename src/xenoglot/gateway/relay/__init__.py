"""Passing an upstream's answer on to the client."""
