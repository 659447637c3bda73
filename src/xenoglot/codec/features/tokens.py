"""The record of a dialect's tokenize, detokenize and tokenizer-info endpoints."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.tokens import TextRequest, TokenizerInfo, Tokens, TokensRequest


class TokensForm(Struct, frozen=True, kw_only=True):
    """Endpoints that tokenize, detokenize and describe the tokenizer. Decoders raise `WireError`."""

    path: str
    back_path: str
    decode_request: Callable[[JSON], TokensRequest]
    encode_response: Callable[[Tokens], JSONObject]
    decode_back: Callable[[JSON], TextRequest]
    encode_back: Callable[[str], JSONObject]
    info_path: str
    encode_info: Callable[[TokenizerInfo], JSONObject]
