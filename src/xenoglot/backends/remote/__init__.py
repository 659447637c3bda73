"""Backend that sends requests to another server, in any dialect."""
