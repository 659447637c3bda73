"""What the agent may reach: workspace, file names, environment, processes."""
