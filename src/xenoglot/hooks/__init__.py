"""Hooks of the gateway: code of the operator's that sees, changes, rejects or tags requests and answers."""
