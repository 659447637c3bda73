"""Terminal commands: conversation, single question, agent view, and download progress."""
