"""The canonical model: one vocabulary of frozen values, richer than every dialect. Imports nothing of ours."""
