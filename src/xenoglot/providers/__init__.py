"""Who is at the other end, as data: a row for each provider, found by name."""
