"""An engine that is asked as AstrAI's is: `tokenizer.apply_chat_template`, and `generate_async` with its settings.

`generate_async` is a plain function that returns an asynchronous generator, whose steps block in a thread, and it says
neither why an answer ended nor how many tokens it had.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from jinja2 import Template

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from xenoglot.model.json import JSONObject

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\n{% endfor %}"
    "{% if tools %}<|tools|>{{ tools | length }}\n{% endif %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class ChatTokenizer:
    """A token for each character, and one at the head of each text."""

    def __init__(self, template: str = TEMPLATE) -> None:
        self._template = Template(template)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return the tokens of a text."""
        return [*([1] if add_special_tokens else []), *map(ord, text)]

    def apply_chat_template(
        self,
        messages: Sequence[JSONObject],
        system_prompt: str | None = None,
        tokenize: bool = True,  # noqa: FBT001, FBT002  as the original has it
        add_generation_prompt: bool = True,  # noqa: FBT001, FBT002  the same
        **variables: Any,  # noqa: ANN401  the template's
    ) -> str | list[int]:
        """Return the prompt of a conversation."""
        if system_prompt:
            messages = [{"role": "system", "content": system_prompt}, *messages]
        text = self._template.render(messages=messages, add_generation_prompt=add_generation_prompt, **variables)
        return self.encode(text) if tokenize else text


class Engine:
    """Says what it was told last backwards, letter by letter; keeps what it was asked, and whether it was ended."""

    def __init__(self, tokenizer: ChatTokenizer | None = None, *, endless: bool = False) -> None:
        self.tokenizer = tokenizer or ChatTokenizer()
        self.asked: list[JSONObject] = []
        self.closed = asyncio.Event()
        self._endless = endless

    def generate_async(  # noqa: PLR0913, PLR0917  as the original has it
        self,
        prompt: str,
        max_tokens: int | None = None,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 50,
        frequency_penalty: float = 0.0,
        rep_window: int = 64,
    ) -> AsyncIterator[str]:
        """Yield the words of an answer."""
        settings = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p, "top_k": top_k}
        self.asked.append({"prompt": prompt, **settings, "penalty": frequency_penalty, "window": rep_window})
        words = iter(list(prompt.rpartition("\n")[0].rpartition("|>")[2])[::-1][:max_tokens])

        async def speak() -> AsyncIterator[str]:
            try:
                while (word := await asyncio.to_thread(next, words, "." if self._endless else None)) is not None:
                    yield word
            finally:
                self.closed.set()

        return speak()
