"""Configuration: schema, settings and validation."""
