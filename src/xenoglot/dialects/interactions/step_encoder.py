"""Encodes parts as steps of the model, in an answer and in the history of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.hosted_text import AS_IMAGES, generated_images, hosted_words
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.requests.names import fit, qualified
from xenoglot.dialects.interactions.content import CONTENTS, ContentEncoder
from xenoglot.dialects.interactions.extras import NAME, NAME_LIMIT, STEP, own_fields
from xenoglot.dialects.interactions.hosted import encode_hosted_call, encode_hosted_result
from xenoglot.dialects.interactions.step_decoder import OUTPUT, THOUGHT, is_fragment, wrapped
from xenoglot.dialects.interactions.tool_calls import encode_call
from xenoglot.model.content import (
    HostedCall,
    HostedResult,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject


_WORDS = (Text, Refusal)

PARAGRAPH = "\n\n"
"""What stands between the texts of a summary that are joined: a stream cannot part them."""


def joins(part: Part, before: Part | None) -> bool:
    """Whether a content belongs to the same step as the part `before` it.

    Texts that follow each other stand in a step each, unless they came in one: in a stream nothing else parts them.
    """
    if not (isinstance(before, CONTENTS) or is_fragment(before)):
        return False
    form = form_of(getattr(part, "extra", None), NAME)
    if "step" in form or (isinstance(part, Opaque) and not _is_lone(part)):
        return False
    return "same" in form or not (isinstance(part, _WORDS) and isinstance(before, _WORDS))


def _is_lone(part: Opaque) -> bool:
    """Whether a content that only this dialect knows was not the first of its step."""
    return isinstance(part.data, dict) and part.data.keys() == {"type", "content"}


def step_fields(part: Part, where: str, losses: Losses) -> JSONObject:
    """Return the fields of the step that a content begins."""
    extra = getattr(part, "extra", None)
    if extra is None or extra.dialect != NAME:
        return {}
    own = own_fields(extra, where, losses)
    return {key.removeprefix(STEP): value for key, value in own.items() if key.startswith(STEP)}


class StepEncoder:
    """Encodes the parts of one turn. `target` is the server of a request; an answer has none."""

    __slots__ = ("_contents", "_home", "_losses", "_target")

    def __init__(self, losses: Losses, *, home: bool, target: Target | None = None) -> None:
        self._losses = losses
        self._home = home
        self._target = target
        self._contents = ContentEncoder(losses, home=home, answer=target is None)

    def steps(self, parts: Sequence[Part], where: str) -> list[JSONObject]:
        """Return the steps of all parts."""
        steps: list[JSONObject] = []
        before: Part | None = None
        for index, part in enumerate(parts):
            at = f"{where}[{index}]"
            if self._is_content(part):
                before = self._content(part, at, steps, before)
            elif (step := self.step(part, at)) is not None:
                steps.append(step)
                before = part
        return steps

    def _is_content(self, part: Part) -> bool:
        if isinstance(part, Opaque):
            return part.dialect != NAME or is_fragment(part)
        return isinstance(part, CONTENTS) or (
            isinstance(part, HostedCall | HostedResult) and self._target is not None and not self._home
        )

    def _content(self, part: Part, at: str, steps: list[JSONObject], before: Part | None) -> Part | None:
        """Add a content to the last step, or to a new one; return the part that the next one follows."""
        form = form_of(getattr(part, "extra", None), NAME)
        if form.get("step") in ("absent", "empty") and isinstance(part, Text) and not part.text:
            spelled: JSONObject = {} if form["step"] == "absent" else {"content": []}
            steps.append({"type": OUTPUT, **spelled, **step_fields(part, at, self._losses)})
            return part
        if self._target is not None and not self._home and isinstance(part, Text) and not part.text:
            self._contents.text(part, at)  # what it would lose, it loses here too
            return before
        items = self.contents(part, at)
        if not items:
            return before
        if joins(part, before) and steps and steps[-1]["type"] == OUTPUT:
            steps[-1].setdefault("content", []).extend(items)
        else:
            steps.append({"type": OUTPUT, "content": items, **step_fields(part, at, self._losses)})
            if isinstance(part, Opaque) and part.dialect == NAME and isinstance(part.data, dict):
                steps[-1] |= {key: value for key, value in part.data.items() if key != "content"}
        return part

    def contents(self, part: Part, at: str) -> list[JSONObject]:
        """Return the contents of one part."""
        if isinstance(part, HostedCall | HostedResult):
            words = hosted_words(part, at, self._losses)
            return [] if words is None else self._contents.encode(words, at)
        if is_fragment(part) and isinstance(part, Opaque) and part.dialect == NAME:
            content: list[JSONObject] = part.data["content"]
            return content
        return self._contents.encode(part, at)

    def step(self, part: Part, at: str) -> JSONObject | None:
        """Return the step of a part that is no content; `None` (and a loss) if there is none for it."""
        match part:
            case Reasoning():
                return self._thought(part, at)
            case ToolCall():
                return encode_call(part, self.tool_name(part, at), at, self._losses, home=self._home)
            case HostedCall() | HostedResult():
                return self._hosted(part, at)
            case Opaque(data=dict() as data):
                return data
            case _:
                self._losses.dropped(at, name_of(part), "no step of the dialect holds one")
        return None

    def _hosted(self, part: HostedCall | HostedResult, at: str) -> JSONObject | None:
        if isinstance(part, HostedCall):
            return encode_hosted_call(part, at, self._losses)
        images = generated_images(part)
        if not images:
            return encode_hosted_result(part, at, self._contents, self._losses)
        self._losses.approximated(at, name_of(part), AS_IMAGES)
        own_fields(part.extra, at, self._losses)
        return {"type": OUTPUT, "content": [one for image in images for one in self._contents.encode(image, at)]}

    def tool_name(self, part: ToolCall, at: str) -> str:
        """Return the name of a tool as the server of this request takes it; in an answer, as the client knows it."""
        if part.namespace is not None and self._target is None:
            self._losses.dropped(at, "namespace", "the dialect has none")
        if self._target is None or self._home:
            return part.name
        return fitted(part.name, part.namespace, at, self._target, self._losses)

    def _thought(self, part: Reasoning, at: str) -> JSONObject | None:
        own = own_fields(part.extra, at, self._losses)
        ours = part.origin is not None and part.origin.dialect == NAME
        if self._target is not None and not self._home and not (ours and self._may_return(part, self._target)):
            self._losses.dropped(at, "reasoning", "the server takes back only what it signed itself")
            return None
        if part.id is not None:
            self._losses.dropped(at, "id", "reasoning in the dialect has none")
        texts = part.summary
        if part.text is not None:
            self._losses.approximated(at, "text", "written as the summary of the reasoning")
            texts = (part.text, *(part.summary or ())) if part.text else part.summary
        if texts is not None and len(texts) > 1 and not self._home:
            if part.text is None:
                self._losses.approximated(at, "summary", "its texts are joined")
            texts = (PARAGRAPH.join(texts),)
        step: JSONObject = {"type": THOUGHT}
        if texts is not None:
            step["summary"] = [{"type": "text", "text": text} for text in texts]
        signature = self._signature(part, at, ours=ours)
        if signature is not None:
            step["signature"] = signature
        return step | own

    def _signature(self, part: Reasoning, at: str, *, ours: bool) -> str | None:
        form = form_of(part.extra, NAME)
        if "signature" in form:
            given: str = form["signature"]
            return given
        if part.signature is None and part.encrypted is None:
            return None
        if ours and part.encrypted is None:
            return part.signature
        if self._target is not None:
            return part.signature or part.encrypted
        self._losses.emulated(at, "signature", "only its maker can open it; wrapped to come back")
        return wrapped(part)

    def _may_return(self, part: Reasoning, target: Target) -> bool:
        """Whether the server of this request signed the reasoning."""
        origin = part.origin
        if origin is None or not (part.signature or part.encrypted):
            return False
        return None in (origin.provider, target.provider) or origin.provider == target.provider


def fitted(name: str, namespace: str | None, where: str, target: Target, losses: Losses) -> str:
    """Return the name of a tool as a server takes it."""
    short = fit(qualified(name, namespace), target.tool_name_limit or NAME_LIMIT)
    if short != name:
        losses.emulated(where, "name", "shortened to what the server allows; the answer has it back")
    return short
