"""Formats that are messages with recipients or channels (Harmony, Functionary, Glimmer)."""
