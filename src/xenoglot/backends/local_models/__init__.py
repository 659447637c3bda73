"""Models in this process: transformers, functions, engines."""
