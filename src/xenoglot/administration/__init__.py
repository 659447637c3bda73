"""Commands that administer a gateway through its store: API keys."""
