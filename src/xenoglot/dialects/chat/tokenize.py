"""`/tokenize`, `/detokenize` and `/tokenizer_info` of vLLM, for a text or a conversation in its chat template.

Source: `vllm/entrypoints/serve/tokenize/protocol.py` (https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html).
A text in `content` is in the form of llama-server:
https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md#post-tokenize-tokenize-a-given-text
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.operation import DETOKENIZE, TOKENIZE, TOKENIZER_INFO, OperationForm
from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.chat.request.decoder import decode_request
from xenoglot.errors import WireError
from xenoglot.model.request import Prompt, Request
from xenoglot.model.tokens import TextRequest, TokenizerInfoRequest, TokensRequest

if TYPE_CHECKING:
    from xenoglot.codec.features.operation import AnyForm
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.tokens import TokenizerInfo, Tokens

_FIXED = {"add_generation_prompt": True, "add_special_tokens": False}
"""What a conversation is always given: its model's template opens the answer, and has all special tokens."""


def decode_tokenize(value: JSON) -> TokensRequest:
    """Return the question in `value`; the prompt is a text, or the messages of a conversation.

    Raises:
        WireError: a field is missing, of the wrong type, or of a value that there is no answer to.
    """
    reader = Reader(value)
    texts = reader.take("return_token_strs", bool) or False
    if "messages" in reader:
        return TokensRequest(request=_conversation(reader), texts=texts)
    if "content" in reader and "prompt" not in reader:
        return _content(reader)
    model, prompt = reader.need("model", str), reader.need("prompt", str)
    special = reader.take("add_special_tokens", bool) is not False
    return TokensRequest(request=Request(model=model, prompt=Prompt(texts=(prompt,))), special=special, texts=texts)


def encode_tokens(tokens: Tokens) -> JSONObject:
    """Return the answer: the tokens, how many they are, and how many the model holds."""
    numbers: list[JSON] = list(tokens.numbers)
    if tokens.bare:
        if tokens.pieces is None:
            return {"tokens": numbers}
        pieces = [piece if isinstance(piece, str) else list(piece) for piece in tokens.pieces]
        return {"tokens": [{"id": one, "piece": piece} for one, piece in zip(numbers, pieces, strict=True)]}
    texts = None if tokens.texts is None else list(tokens.texts)
    return {"count": len(numbers), "max_model_len": tokens.longest, "tokens": numbers, "token_strs": texts}


def decode_detokenize(value: JSON) -> TextRequest:
    """Return the question in `value`.

    Raises:
        WireError: a field is missing or of the wrong type.
    """
    reader = Reader(value)
    model, path = reader.need("model", str), reader.at("tokens")
    tokens = reader.need("tokens", list)
    for index, token in enumerate(tokens):
        if type(token) is not int:
            raise expected(f"{path}[{index}]", "int", token)
    return TextRequest(model=model, tokens=tuple(tokens))


def encode_text(text: str) -> JSONObject:
    """Return the answer: the text, under vLLM's name and llama-server's."""
    return {"prompt": text, "content": text}


def encode_info(info: TokenizerInfo) -> JSONObject:
    """Return the facts of a tokenizer by the names that they have in the transformers library."""
    return {
        "tokenizer_class": info.kind,
        "bos_token": info.bos,
        "eos_token": info.eos,
        "pad_token": info.pad,
        "chat_template": info.chat_template,
    }


def _content(reader: Reader) -> TokensRequest:
    """Return the question in llama-server's form, where by default a text begins with no special token."""
    model, content = reader.need("model", str), reader.need("content", str)
    return TokensRequest(
        request=Request(model=model, prompt=Prompt(texts=(content,))),
        special=reader.take("add_special", bool) is True,
        control=reader.take("parse_special", bool) is not False,
        pieces=reader.take("with_pieces", bool) is True,
        bare=True,
    )


def _conversation(reader: Reader) -> Request:
    """Return the messages as a request for an answer to them."""
    for key, fixed in _FIXED.items():
        if reader.take(key, bool) not in (None, fixed):
            raise WireError(reader.at(key), f"expected {str(fixed).lower()}, or nothing")
    if reader.take("continue_final_message", bool) and not _ends_in_answer(reader):
        raise WireError(reader.at("continue_final_message"), "the last message is not the assistant's")
    if "chat_template" in reader:
        raise WireError(reader.at("chat_template"), "the model's own template is used, and no other")
    return decode_request(reader.rest())


def _ends_in_answer(reader: Reader) -> bool:
    match reader.peek("messages"):
        case [*_, {"role": "assistant"}]:
            return True
        case _:
            return False


def decode_info_request(value: JSON) -> TokenizerInfoRequest:
    """Return the question in the query.

    Raises:
        WireError: it names no model, and several could be meant.
    """
    reader = Reader(value)
    model = reader.take("model", str)
    if model is None:
        raise WireError(reader.at("model"), "required in the query: more than one model is served")
    return TokenizerInfoRequest(model=model)


TOKENIZER: Final[tuple[AnyForm, ...]] = (
    OperationForm(
        operation=TOKENIZE,
        name="tokenize",
        path="/v1/tokenize",
        decode_request=decode_tokenize,
        encode_response=lambda tokens, _request, _losses: encode_tokens(tokens),
    ),
    OperationForm(
        operation=DETOKENIZE,
        name="detokenize",
        path="/v1/detokenize",
        decode_request=decode_detokenize,
        encode_response=lambda text, _request, _losses: encode_text(text),
    ),
    OperationForm(
        operation=TOKENIZER_INFO,
        name="tokenizer_info",
        path="/v1/tokenizer_info",
        method="GET",
        decode_request=decode_info_request,
        encode_response=lambda info, _request, _losses: encode_info(info),
    ),
)
