"""Tokenize and detokenize endpoints of the embedded model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.invalid_request import refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.engine.server.runtime import Runtime
    from xenoglot.model.request import Prompt


async def tokens_of_prompt(text: str, runtime: Runtime, *, special: bool, control: bool = True) -> list[int]:
    """Return the tokens of a text of any length, and with `special` those that texts of the model begin with.

    Without `control` nothing in the text is read as a control token.
    """
    if not control:
        begin = await runtime.tokens_of_template("", first=True) if special else []
        return [*begin, *await runtime.tokens_of_content(text)]
    return await (runtime.tokens_of_text(text) if special else runtime.tokens_of_bare_text(text))


async def texts_of(tokens: Sequence[int], runtime: Runtime) -> tuple[str, ...]:
    """Return the text of each token by itself; what is no whole character reads U+FFFD."""
    known = {token: await runtime.text_of([token]) for token in set(tokens)}
    return tuple(known[token] for token in tokens)


async def pieces_of(
    tokens: Sequence[int], prompt: Prompt | None, runtime: Runtime, *, control: bool
) -> tuple[str | tuple[int, ...], ...]:
    """Return the piece of the lone text of `prompt` that each of its `tokens` is; bytes for no whole character."""
    text = prompt.texts[0] if prompt is not None and isinstance(prompt.texts[0], str) else ""
    known = await runtime.pieces_of(text, control=control)
    return tuple([known[token] if token in known else await runtime.text_of([token]) for token in tokens])


async def checked_text(tokens: Sequence[int], runtime: Runtime) -> str:
    """Return the text of tokens.

    Raises:
        FailureError: one is none of this model's.
    """
    vocabulary = (await runtime.facts()).vocabulary
    for index, token in enumerate(tokens):
        if not 0 <= token < vocabulary:
            raise refused(f"$.tokens[{index}]", f"expected the number of a token, 0 to {vocabulary - 1}")
    return await runtime.text_of([*tokens])
