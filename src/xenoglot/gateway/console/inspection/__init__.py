"""What the console shows of one request: its bodies as trees, aligned by meaning, with losses and times."""
