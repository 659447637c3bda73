"""Route table and the endpoints that answer in one piece."""
