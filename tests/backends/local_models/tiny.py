"""A model of the transformers library made on the spot: a byte-level tokenizer, a template, weights drawn by chance."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TEMPLATE = """\
{%- if tools %}<|system|>Tools: {{ tools | tojson }}<|end|>{% endif -%}
{%- for message in messages -%}
<|{{ message.role }}|>{{ message.content }}
{%- for call in message.tool_calls or [] %}<call>{{ call.function | tojson }}</call>{% endfor -%}
<|end|>
{%- endfor -%}
{%- if add_generation_prompt %}<|assistant|>{% endif -%}
{%- if enable_thinking is defined %}{{ '<think>' if enable_thinking else '<think></think>' }}{% endif -%}
"""
"""A template that knows tools, calls and thinking."""

SPECIAL = ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")
CONTEXT = 512


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, and the special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=SPECIAL[0], additional_special_tokens=list(SPECIAL[1:])
    )
    made.chat_template = TEMPLATE
    return made


@cache
def model(context: int = CONTEXT) -> PreTrainedModel:
    """Two small layers; the same weights each time. It never ends by itself: the end has no weight."""
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(tokenizer()),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=None,
        eos_token_id=tokenizer().eos_token_id,
        pad_token_id=None,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).eval()
