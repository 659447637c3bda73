"""Other people's programs, started so that they ask a gateway, and what else makes it easy to begin."""
