"""A scripted model that only writes text: calls and thoughts in the form of its family, by what its prompt tells it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.content import Text
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.text import registry
from xenoglot.text.tools.render import written

if TYPE_CHECKING:
    from drive.script import Turn, Wanted
    from xenoglot.model.request import Request

THOUGHT: Final = "The tools are <told>, I see."


class Writer(Struct, frozen=True):
    """A model of `family`. Whoever asks it must have put all into words: it is a failure to send it tools."""

    family: str

    def writes(self, *wanted: Wanted, text: str = "", tokens: int = 100) -> Turn:
        """Return a turn of a thought, some words, and calls."""

        def turn(request: Request) -> Response:
            assert request.tools == ()
            calls = [(prompt_tool_name(request, one.name), _arguments(one)) for one in wanted]
            said = self._thought() + self._says(text) + (written(registry.get(self.family), calls) if calls else "")
            usage = Usage(input_tokens=tokens, output_tokens=10)
            candidate = Candidate(content=(Text(text=said),), finish=Finish(reason="stop"))
            asked = len(request.messages)
            return Response(id=f"answer_{asked}", created=1, candidates=(candidate,), usage=usage)

        return turn

    @property
    def thinks(self) -> bool:
        """Whether the model thinks unasked; its server knows no way to ask."""
        return self.family == "gpt_oss" or not registry.get(self.family).thoughts[0].asked

    def _thought(self) -> str:
        if self.family == "gpt_oss":
            return f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant"
        if not self.thinks:
            return ""
        form = registry.get(self.family).thoughts[0]
        return f"{'' if form.implied else form.open[0]}\n{THOUGHT}\n{form.close[0]}\n\n"

    def _says(self, text: str) -> str:
        return f"<|channel|>final<|message|>{text}<|end|>" if self.family == "gpt_oss" and text else text


def prompt_tool_name(request: Request, name: str) -> str:
    """Return the name under which the prompt tells of the tool that its client calls `name`."""
    prompt = "".join(part.text for part in request.messages[0].content if isinstance(part, Text))
    found = re.search(rf'"name":"((?:\w+__)?{re.escape(name)})"', prompt)
    assert found is not None, f"no tool `{name}` in the prompt: {prompt}"
    return found[1]


def _arguments(wanted: Wanted) -> str:
    said = {"input": wanted.arguments} if isinstance(wanted.arguments, str) else wanted.arguments
    return encode_json(said).decode()
