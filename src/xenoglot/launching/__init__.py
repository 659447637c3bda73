"""Starts programs of other projects with a gateway configured, and creates first configuration files."""
