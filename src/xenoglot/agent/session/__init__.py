"""Session files, locks and background runs."""
