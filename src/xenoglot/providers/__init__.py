"""Provider catalogue: one row of data for each provider, found by name."""
