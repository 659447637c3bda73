"""How the events of a stream are framed in bytes: SSE, JSON lines, a JSON array."""
