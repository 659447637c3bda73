"""The embedded model: its weights, and the child process that runs it."""
