"""A prompt as the tokens of a model, asked for and told."""

from __future__ import annotations

from msgspec import Struct

from xenoglot.model.request import Request


class TokensRequest(Struct, frozen=True, kw_only=True):
    """The tokens of the prompt of `request` are asked for, with their texts if `texts`.

    `special` is whether a text begins with the tokens with which texts of the model begin.
    """

    request: Request
    special: bool = True
    texts: bool = False


class TextRequest(Struct, frozen=True, kw_only=True):
    """The text of `tokens` is asked for."""

    model: str
    tokens: tuple[int, ...]


class Tokens(Struct, frozen=True, kw_only=True):
    """The numbers of the tokens, and how many the model holds at most; their `texts` where they were asked for."""

    numbers: tuple[int, ...]
    longest: int
    texts: tuple[str, ...] | None = None
