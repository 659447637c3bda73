"""Stages over the text of an answer, for models that write tool calls and reasoning as text."""
