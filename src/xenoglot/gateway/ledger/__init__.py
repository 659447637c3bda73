"""Ledger of requests: usage, cost, and the rows that are stored."""
