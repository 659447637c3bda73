"""Keys of `Sampling.logit_bias`: the number of a token, or a text that stands for each of its tokens."""

from __future__ import annotations


def is_token(key: str) -> bool:
    """Return whether `key` is the number of a token."""
    return key.isascii() and key.isdigit()
