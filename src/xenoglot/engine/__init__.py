"""The embedded model: its weights, its server process, and the backend that uses it."""
