"""Pages on which administrators change what the store has: API keys and budgets; and the log of changes."""
