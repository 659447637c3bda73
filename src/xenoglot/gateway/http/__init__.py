"""HTTP/1.1 server and ASGI adapter. Knows nothing of models."""
