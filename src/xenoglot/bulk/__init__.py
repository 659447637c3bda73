"""Batches of requests from a file: input lines, the journal of answers, and the runner."""
