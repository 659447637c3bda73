"""Programs that `xenoglot run` knows by name: their rows, and the environment that points them at a gateway."""
