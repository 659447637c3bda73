"""Cache of complete answers, by their requests."""
