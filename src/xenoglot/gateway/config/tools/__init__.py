"""Tools that the gateway runs: their settings, and the checks of these."""
