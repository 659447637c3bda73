"""Renders tools into prompts, and tool calls as text."""
