"""From the text of the embedded model to content, reasoning and tool calls."""
