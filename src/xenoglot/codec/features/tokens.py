"""How a dialect's clients ask for the tokens of a prompt, and for the text of tokens: a record of functions."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.tokens import TextRequest, TokenizerInfo, Tokens, TokensRequest


class TokensForm(Struct, frozen=True, kw_only=True):
    """Endpoints: from a prompt to its tokens, back, and the facts of the tokenizer. Decoders raise `WireError`."""

    path: str
    back_path: str
    decode_request: Callable[[JSON], TokensRequest]
    encode_response: Callable[[Tokens], JSONObject]
    decode_back: Callable[[JSON], TextRequest]
    encode_back: Callable[[str], JSONObject]
    info_path: str
    encode_info: Callable[[TokenizerInfo], JSONObject]
