"""Commands that administer a gateway: API keys and budgets in its store, a check of the whole."""
