"""Endpoints that are spoken to over a WebSocket: each message is a request, each event of its answer a message."""
