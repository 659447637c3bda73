"""The machinery that dialects share. Pure: no I/O, no clock, no chance. Imports the model only."""
