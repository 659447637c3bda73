"""Stages over the words of an answer, for models that write calls and thoughts as text."""
