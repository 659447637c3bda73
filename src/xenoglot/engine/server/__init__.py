"""The server process of the embedded model, and its weights."""
