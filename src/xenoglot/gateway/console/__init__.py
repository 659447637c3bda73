"""The web console at `/console`. Imported at the first visit, not at the start."""
