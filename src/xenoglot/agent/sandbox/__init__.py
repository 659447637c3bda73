"""Limits of the agent's access: workspace, file names, environment, processes."""
