"""Request log, access log, metrics and event loop lag."""
