"""Responses over a WebSocket: the events of clients and of answers, and steering."""
