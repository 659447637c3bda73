"""The protocol of backends that can tokenize and detokenize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.tokens import TextRequest, TokenizerInfo, Tokens, TokensRequest


@runtime_checkable
class Tokenizer(Protocol):
    """A backend that tells the tokens of a prompt, and the text of tokens."""

    async def tokenize(self, asked: TokensRequest, losses: Losses) -> Tokens:
        """Return the tokens of the prompt, as they would be sent to the model.

        Raises:
            FailureError: they cannot be told.
        """
        ...

    async def tokenizer_info(self) -> TokenizerInfo:
        """Return the facts of the tokenizer.

        Raises:
            FailureError: they cannot be told.
        """
        ...

    async def detokenize(self, asked: TextRequest) -> str:
        """Return the text of the tokens.

        Raises:
            FailureError: some are none of the model's.
        """
        ...
