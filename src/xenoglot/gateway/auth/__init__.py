"""API keys and request checks."""
