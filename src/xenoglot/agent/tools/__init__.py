"""The tools of the coding agent."""
