"""Model names to targets; retry, fallback, reservations and target health."""
