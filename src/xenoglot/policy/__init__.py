"""Retry, target order, limits and estimates: pure functions and small states; time and chance are arguments."""
