"""Ledger of requests in the store: one row for each request, hourly sums, and what administration needs."""
