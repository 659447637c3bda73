"""Shortcuts for the most common shapes; each is held to the general way by a law."""
