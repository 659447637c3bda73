"""Process life: build, serve, supervise workers, reload and shut down a gateway."""
