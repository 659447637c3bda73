"""Tools rendered into prompts, and calls rendered as text."""
