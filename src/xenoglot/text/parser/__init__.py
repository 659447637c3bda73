"""The streaming parser that splits model text into content, reasoning and tool calls."""
