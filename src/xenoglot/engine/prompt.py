"""From turns to tokens: the model's own template, with the words of strangers put in as tokens that control nothing.

The template is rendered around marks that stand for the texts, and cut at them. Its own pieces are tokenized with their
control tokens, the texts without: a text that says `<|im_end|>` is those ten characters to the model, never the end of
its turn. The list of tokens is what is sent, so its length is the exact size of the prompt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.engine.runtime import Runtime
    from xenoglot.engine.turns import Turn

_MARK: Final = re.compile(r"xeno(\d+)glot")


async def tokenize(turns: Sequence[Turn], runtime: Runtime, losses: Losses) -> list[int]:
    """Return the prompt for `turns` as tokens. A last turn of the assistant is left open for the model to go on."""
    marked = [{"role": turn.role, "content": f"xeno{index}glot"} for index, turn in enumerate(turns)]
    pieces = _MARK.split(await runtime.apply_template(marked))
    tokens = await runtime.tokens_of_template(pieces[0], first=True)
    tokens = list(tokens)
    used = set()
    for number, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        used.add(int(number))
        tokens += await runtime.tokens_of_content(turns[int(number)].text)
        tokens += await runtime.tokens_of_template(piece, first=False)
    for index in set(range(len(turns))) - used:
        losses.dropped("$.messages", f"turn {index}", "the model's template leaves it out")
    return tokens
