"""One generation request, encoded for each attempt at a target."""
