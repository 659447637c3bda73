"""Repairs and filters for answers in every dialect."""
