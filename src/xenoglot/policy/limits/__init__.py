"""Pure state of rate and concurrency limits."""
