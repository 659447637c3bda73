"""Requests to tokenize a prompt, and their results."""

from __future__ import annotations

from msgspec import Struct

from xenoglot.model.request import Request


class TokensRequest(Struct, frozen=True, kw_only=True):
    """Request for the tokens of the prompt of `request`, with their texts if `texts`.

    `special` is whether a text begins with the tokens with which texts of the model begin, `control` whether control
    tokens in it are read as such. With `pieces` the exact piece of text of each token is wanted; `bare` is the form of
    llama-server, whose answer has the tokens alone.
    """

    request: Request
    special: bool = True
    control: bool = True
    texts: bool = False
    pieces: bool = False
    bare: bool = False

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.request.model


class TextRequest(Struct, frozen=True, kw_only=True):
    """Request for the text of `tokens`."""

    model: str
    tokens: tuple[int, ...]


class TokenizerInfoRequest(Struct, frozen=True, kw_only=True):
    """Request for the facts of the tokenizer of `model`."""

    model: str


class Tokens(Struct, frozen=True, kw_only=True):
    """The numbers of the tokens, and how many the model holds at most; their `texts` if requested.

    Of `pieces` each is the text of a token, or its bytes where these are not whole characters. `bare` is as in the
    request.
    """

    numbers: tuple[int, ...]
    longest: int
    texts: tuple[str, ...] | None = None
    pieces: tuple[str | tuple[int, ...], ...] | None = None
    bare: bool = False


class TokenizerInfo(Struct, frozen=True, kw_only=True):
    """What clients have to know of a model's tokenizer to use it from afar; `None` where it is not known.

    `kind` is the class of the transformers library that does the same; `eos`, `bos` and `pad` are the texts of tokens.
    """

    kind: str
    eos: str | None = None
    bos: str | None = None
    pad: str | None = None
    chat_template: str | None = None
