"""Renders messages with the model's chat template to tokens, and neutralizes control tokens in message texts.

The template is rendered with placeholders for the texts, and split at them. Its own pieces are tokenized with control
tokens, the texts without: `<|im_end|>` in a text is ten characters to the model, never the end of its turn. The list of
tokens is sent, so its length is the exact size of the prompt.

Tools and arguments of calls cannot be placeholders: the template serializes them itself, escapes included. If one of
their strings contains a control token, an empty placeholder is inserted between its characters, and the template is
split there too.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.engine.server.runtime import Runtime
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.text.syntax import ReasoningSyntax

_MARK: Final = re.compile(r"xeno(\d+)(?=x)")


class Prompt:
    """A prompt to be rendered: `said` are its messages, `tools` those that the template describes."""

    def __init__(self, said: Sequence[JSONObject], tools: Sequence[JSONObject], runtime: Runtime) -> None:
        self._runtime = runtime
        self._texts = [message["content"] for message in said]
        self._mark = _unheard(strings([*said, *tools]))
        self._cut = re.compile(rf"{self._mark}(\d+)glot")
        self._said = [{**message, "content": self._of(index)} for index, message in enumerate(said)]
        self._tools = list(tools)

    async def tokens(
        self, losses: Losses, *, wanted: bool | None = None, ended: ReasoningSyntax | None = None
    ) -> list[int]:
        """Return the prompt. A last turn of the assistant is left open for the model to continue.

        `wanted` is whether reasoning is turned on, `ended` the tags of reasoning that is closed before it begins.
        """
        await self._break()
        pieces = self._cut.split(await self._runtime.apply_template(self._said, self._tools, thinking=wanted))
        if ended is not None and self._said[-1]["role"] != "assistant":
            pieces[-1] += over(pieces[-1], ended)
        tokens = list(await self._runtime.tokens_of_template(pieces[0], first=True))
        used = set()
        for number, piece in zip(map(int, pieces[1::2]), pieces[2::2], strict=True):
            if number < len(self._texts):
                used.add(number)
                tokens += await self._runtime.tokens_of_content(self._texts[number])
            tokens += await self._runtime.tokens_of_template(piece, first=False)
        for index in [index for index, text in enumerate(self._texts) if text and index not in used]:
            losses.dropped("$.messages", f"turn {index}", "the model's template leaves it out")
        return tokens

    def _of(self, index: int) -> str:
        """Return what stands for the text `index`; nothing stands for nothing, since templates ask whether it does."""
        return f"{self._mark}{index}glot" if self._texts[index] else ""

    async def _break(self) -> None:
        """Put marks into the strings that the template writes and that hold control tokens."""
        calls: list[JSON] = [message.get("tool_calls", []) for message in self._said]
        written = [*strings([self._tools, *calls])]
        if not written or await self._inert("\n".join(written)):
            return
        live = {text for text in dict.fromkeys(written) if not await self._inert(text)}
        nothing = f"{self._mark}{len(self._texts)}glot"
        broken = {text: nothing.join(text) for text in live}
        self._tools = mapped(self._tools, broken)
        for message in self._said:
            if "tool_calls" in message:
                message["tool_calls"] = mapped(message["tool_calls"], broken)

    async def _inert(self, text: str) -> bool:
        """Return whether a text holds nothing that would be a control token in a template."""
        as_template = await self._runtime.tokens_of_template(text, first=False)
        return as_template == await self._runtime.tokens_of_content(text)


def over(prompt: str, tags: ReasoningSyntax) -> str:
    """Return the end of a prompt that closes the model's reasoning before it begins."""
    end = prompt.rstrip()
    if end.endswith(tags.close):
        return ""
    return f"\n{tags.close[0]}\n\n" if end.endswith(tags.open) else f"{tags.open[0]}\n\n{tags.close[0]}\n\n"


def strings(value: JSON) -> Iterator[str]:
    """Yield the strings in a value, the names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from strings(item)


def mapped(value: JSON, changed: dict[str, str]) -> JSON:
    """Return the value with other strings in place of some."""
    match value:
        case str():
            return changed.get(value, value)
        case list():
            return [mapped(item, changed) for item in value]
        case dict():
            return {changed.get(name, name): mapped(item, changed) for name, item in value.items()}
        case _:
            return value


def _unheard(texts: Iterable[str]) -> str:
    """Return the beginning of a mark that stands in none of the texts."""
    heard = {number for text in texts for number in _MARK.findall(text)}
    return next(f"xeno{number}x" for number in map(str, count()) if number not in heard)
