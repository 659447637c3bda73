"""How a dialect's clients ask for the tokens of a prompt, and for the text of tokens: a record of functions."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.tokens import TextRequest, Tokens, TokensRequest


class TokensForm(Struct, frozen=True, kw_only=True):
    """Two endpoints: from a prompt to its tokens, and back. Decoders raise `WireError`."""

    path: str
    back_path: str
    decode_request: Callable[[JSON], TokensRequest]
    encode_response: Callable[[Tokens], JSONObject]
    decode_back: Callable[[JSON], TextRequest]
    encode_back: Callable[[str], JSONObject]
