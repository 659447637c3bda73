"""Reports and summaries of losses."""
