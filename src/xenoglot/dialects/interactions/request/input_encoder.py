"""Encodes messages as `system_instruction` and `input`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.call_ids import Pairing, paired
from xenoglot.dialects.interactions.content import ContentEncoder
from xenoglot.dialects.interactions.extras import NAME, own_fields
from xenoglot.dialects.interactions.request.input_decoder import USER
from xenoglot.dialects.interactions.step_encoder import StepEncoder
from xenoglot.dialects.interactions.tool_calls import CALL, RESULT, encode_result
from xenoglot.model.content import HostedCall, HostedResult, Reasoning, Refusal, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message

PARAGRAPH: Final = "\n\n"

MISSING: Final = "there is no result of this call"
"""The result written for a call that the history leaves without one."""


class InputEncoder:
    """Encodes the messages of one request."""

    __slots__ = ("_contents", "_context", "_losses", "_model", "_steps")

    def __init__(self, context: EncodeContext) -> None:
        self._context = context
        self._losses = context.losses
        self._contents = ContentEncoder(context.losses, home=context.home)
        self._model = StepEncoder(context.losses, home=context.home, target=context.target)
        self._steps: list[JSONObject] = []

    def encode(self, messages: Sequence[Message], spelled: str | None) -> JSONObject:
        """Return the fields with the conversation; `spelled` is how `input` came."""
        first = next((at for at, one in enumerate(messages) if not _is_system(one)), len(messages))
        body: JSONObject = {}
        texts = [text for at in range(first) for text in self._system(messages[at], f"$.messages[{at}]")]
        if texts or (self._context.home and first):
            body["system_instruction"] = PARAGRAPH.join(texts)
        for at in range(first, len(messages)):
            self._turn(messages[at], f"$.messages[{at}]")
        steps = self._steps if self._context.home else list(self._paired())
        value = _spelled(steps, spelled, home=self._context.home)
        return body if value is None else {**body, "input": value}

    def _system(self, message: Message, where: str) -> list[str]:
        self._report(message, where)
        found: list[str] = []
        if len(message.content) > 1 or (message.content and where != "$.messages[0]"):
            self._losses.approximated(where, "content", "its texts are joined")
        for at, part in enumerate(message.content):
            place = f"{where}.content[{at}]"
            if isinstance(part, Text | Refusal):
                found.append(self._words(part, place))
            else:
                self._contents_of([part], place, system=True)
        return found

    def _words(self, part: Text | Refusal, where: str) -> str:
        written = self._contents.encode(part, where)[0]
        if isinstance(part, Text) and part.citations:
            self._losses.dropped(where, "citations", "an instruction has none")
        return str(written["text"])

    def _report(self, message: Message, where: str) -> None:
        own_fields(message.extra, where, self._losses)
        if message.role == "developer":
            self._losses.approximated(where, "role", "`developer` is written as `system`")
        for field in ("name", "id"):
            if getattr(message, field) is not None:
                self._losses.dropped(where, field, "a step of the dialect has none")

    def _turn(self, message: Message, where: str) -> None:
        self._report(message, where)
        if message.role == "assistant":
            self._said(message, where)
            return
        if _is_system(message):
            self._losses.approximated(where, "role", "a system turn among the others is written as the user's")
        rest: list[tuple[str, Part]] = []
        for at, part in enumerate(message.content):
            place = f"{where}.content[{at}]"
            if not isinstance(part, ToolResult):
                rest.append((place, part))
                continue
            if rest:
                self._losses.approximated(place, "order", "the results of tools come first")
            home = self._context.home
            self._steps.append(encode_result(part, place, self._contents, self._losses, home=home))
        if rest or not message.content:
            self._user(message, rest, where)

    def _said(self, message: Message, where: str) -> None:
        parts: list[Part] = []
        for at, part in enumerate(message.content):
            if isinstance(part, ToolResult):
                self._losses.dropped(f"{where}.content[{at}]", "tool_result", "it has no place in a turn of the model")
        parts = [part for part in message.content if not isinstance(part, ToolResult)]
        written = self._model.steps(parts, f"{where}.content")
        if message.content and not written:
            self._losses.dropped(where, "message", "nothing of it can be written")
        self._steps += written

    def _user(self, message: Message, parts: Sequence[tuple[str, Part]], where: str) -> None:
        content = [item for at, part in parts for item in self._contents_of([part], at)]
        own = own_fields(message.extra, where, self._losses)
        if not content and not self._context.home:
            if parts:
                self._losses.dropped(where, "message", "nothing of it can be written")
            return
        spelled: JSONObject = {} if form_of(message.extra, NAME).get("content") == "absent" else {"content": content}
        self._steps.append({"type": USER, **spelled, **own})

    def _contents_of(self, parts: Sequence[Part], where: str, *, system: bool = False) -> list[JSONObject]:
        found: list[JSONObject] = []
        for part in parts:
            if system or isinstance(part, Reasoning | ToolCall):
                own_fields(getattr(part, "extra", None), where, self._losses)
                what = type(part).__name__.lower() if not isinstance(part, ToolCall) else "tool_call"
                self._losses.dropped(where, what, "it has no place in a turn of this role")
            elif isinstance(part, HostedCall | HostedResult):
                found += self._model.contents(part, where)
            elif self._context.home or not (isinstance(part, Text) and not part.text):
                found += self._contents.encode(part, where)
            else:
                self._contents.encode(part, where)  # what it would lose, it loses here too
        return found

    def _paired(self) -> list[JSONObject]:
        pairing = Pairing(calls=_calls, answers=_answers, missing=self._missing, told=self._told, late=self._late)
        grouped = [{**step, "role": "user"} if step["type"] == USER else step for step in self._steps]
        found = paired(_by_turns(grouped), pairing)
        return [step for group in found for step in _opened(group)]

    def _late(self) -> None:
        self._losses.approximated("$.messages", "order", "the results of tools come first")

    def _missing(self, call_id: str) -> JSONObject:
        self._losses.emulated("$.messages", "tool result", "an error stands for a result that is missing")
        return {"type": RESULT, "call_id": call_id, "result": MISSING, "is_error": True}

    def _told(self, step: JSONObject) -> JSONObject:
        self._losses.approximated("$.messages", "tool result", "it follows no call; written as text")
        head, result = f"Result of the tool call {step['call_id']}:", step.get("result", "")
        if isinstance(result, str):
            return {"type": USER, "content": [{"type": "text", "text": f"{head}\n{result}"}]}
        items = result if isinstance(result, list) else [result]
        return {"type": USER, "content": [{"type": "text", "text": head}, *items]}


_GROUP: Final = "steps"


def _by_turns(steps: Sequence[JSONObject]) -> list[JSONObject]:
    """Return the steps with those of the model that follow each other as one: its calls are answered together."""
    grouped: list[JSONObject] = []
    for step in steps:
        if step["type"] in (USER, RESULT):
            grouped.append(step)
        elif grouped and _GROUP in grouped[-1]:
            grouped[-1][_GROUP].append(step)
        else:
            grouped.append({"type": "", _GROUP: [step]})
    return grouped


def _opened(group: JSONObject) -> list[JSONObject]:
    if _GROUP in group:
        steps: list[JSONObject] = group[_GROUP]
        return steps
    return [{key: value for key, value in group.items() if key != "role"}]


def _calls(group: JSONObject) -> list[str]:
    return [step["id"] for step in group.get(_GROUP, ()) if step["type"] == CALL and "id" in step]


def _answers(step: JSONObject) -> str | None:
    return step["call_id"] if step["type"] == RESULT else None


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


def _spelled(steps: list[JSONObject], spelled: str | None, *, home: bool) -> JSON:
    """Return `input` as it came; from another dialect a lone text as a text, anything else as steps."""
    if not steps:
        return [] if spelled == "empty" or not home else None
    alone = (
        steps[0] if len(steps) == 1 and steps[0].keys() == {"type", "content"} and steps[0]["type"] == USER else None
    )
    content = None if alone is None else alone["content"]
    if content is None:
        return steps
    plain = len(content) == 1 and content[0].keys() == {"type", "text"} and content[0]["type"] == "text"
    if plain and (spelled == "text" or not home):
        return content[0]["text"]
    if spelled == "content" and len(content) == 1:
        return content[0]
    return content if spelled == "contents" else steps
