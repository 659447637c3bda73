"""The coding agent: a model with tools for one folder, what it may do there, and what is kept of its work."""
