"""HTTP/1.1 client for upstreams: connections, TLS, proxies, timeouts."""
