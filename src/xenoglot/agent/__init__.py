"""The coding agent: a model with tools for one folder, its permissions, its sessions and its commands."""
