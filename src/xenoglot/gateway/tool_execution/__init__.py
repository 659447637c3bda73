"""Tools that the gateway runs in place of an upstream: executors, and the rounds between them and the model."""
