"""Code shared by all dialects. Pure: no I/O, no clock, no random numbers. Imports `model` only."""
