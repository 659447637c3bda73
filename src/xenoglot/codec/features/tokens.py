"""The operations of tokenizers: `tokenize`, `detokenize` and `tokenizer_info`."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from xenoglot.codec.features.operation import Operation
from xenoglot.model.tokens import TextRequest, TokenizerInfo, TokenizerInfoRequest, Tokens, TokensRequest

_UNABLE: Final = "the tokens of `{model}` are not known here: only those of the embedded models are"


def _with_model(request: TokensRequest, model: str) -> TokensRequest:
    return replace(request, request=replace(request.request, model=model))


TOKENIZE = Operation[TokensRequest, Tokens](name="tokenize", unable=_UNABLE, limited=False, with_model=_with_model)
DETOKENIZE = Operation[TextRequest, str](name="detokenize", unable=_UNABLE, limited=False)
TOKENIZER_INFO = Operation[TokenizerInfoRequest, TokenizerInfo](name="tokenizer_info", unable=_UNABLE, limited=False)
