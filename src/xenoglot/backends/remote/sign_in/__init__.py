"""Sign-in of upstreams: credentials that expire, and requests that are signed."""
