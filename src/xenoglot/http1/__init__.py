"""HTTP/1.1 (RFC 9112) without I/O, for the server, the client and the test bench. Imports nothing of the product."""
