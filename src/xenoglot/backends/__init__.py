"""Things that answer a request: another server, a local model, a script, a function."""
