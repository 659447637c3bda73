"""Tools that the server runs: in requests, and the calls and results of answers."""
