"""Runs of the tool loop for the sync and async clients."""
