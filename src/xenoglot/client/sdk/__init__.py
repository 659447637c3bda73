"""Conversion to and from the objects of official SDKs."""
