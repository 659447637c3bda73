"""The gateway: other programs' requests in, answers out, over HTTP."""
