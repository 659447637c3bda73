"""A tokenizer's chat template: detects its features and renders requests as prompts."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from xenoglot.backends.local_models.conversation import FORMS, ConversationFormat, TemplateMessage, tools_of, turns_of
from xenoglot.backends.local_models.unsupported import report_tools, report_unsupported, wants_thinking
from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import as_turns
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.errors import WireError
from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xenoglot.model.request import Request

_PROBE: Final[list[JSONObject]] = [{"role": "user", "content": "x"}]
_PROBE_TOOL: Final[JSONObject] = {
    "type": "function",
    "function": {"name": "probe", "description": "A probe.", "parameters": {"type": "object", "properties": {}}},
}
_THINKING: Final = "enable_thinking"
"""The variable that turns reasoning on and off in the templates of Qwen 3, GLM 4.5 and others."""


class TemplatedTokenizer(Protocol):
    """What has a chat template, in the way of the transformers library."""

    @property
    def apply_chat_template(self) -> Callable[..., Any]:
        """Take messages and settings, and return the prompt: a text, or its tokens."""
        ...


class RenderedPrompt(Struct, frozen=True):
    """A prompt: `text`, and the parts that it was made of, for callers that need tokens.

    `prefix` are the words with which the answer is begun already; they stand at the end of `text`.
    """

    text: str
    messages: list[JSONObject]
    settings: dict[str, Any]
    prefix: str


def template_of(tokenizer: TemplatedTokenizer) -> TokenizerTemplate | None:
    """Return the chat template of `tokenizer`; `None` where it has none, as a base model's."""
    template = TokenizerTemplate(tokenizer)
    return template if template.works else None


class TokenizerTemplate:
    """The chat template of `tokenizer`, tried out for what it knows."""

    def __init__(self, tokenizer: TemplatedTokenizer) -> None:
        self._tokenizer = tokenizer
        self.works = self._renders({})
        self.knows_tools = self._differs({"tools": [_PROBE_TOOL]}, {})
        self.knows_thinking = self._differs({_THINKING: True}, {_THINKING: False})

    def prompt(self, request: Request, losses: Losses) -> RenderedPrompt:
        """Return the prompt of a request, in the richest form that comes out whole.

        Raises:
            WireError: the request cannot be written as turns, or not as turns that the template accepts.
        """
        report_unsupported(request, losses)
        settings = self._settings(request, losses)
        request = as_turns(request, losses)
        if request.context_management is not None:
            request, losses = open_history(request, losses)
        best: tuple[RenderedPrompt, Losses, list[str]] | None = None
        for form in FORMS:
            noted = Losses()
            rendering, missing = self._attempt(request, form, settings, noted)
            if rendering is not None and (best is None or len(missing) < len(best[2])):
                best = rendering, noted, missing
            if best is not None and not best[2]:
                break
        if best is None:
            raise WireError("$.messages", "the model's chat template refuses these turns in every form")
        _copy_losses(best[1], losses)
        for role in best[2]:
            losses.dropped(
                "$.messages", f"a turn of the {role}", "the model's template leaves it out, in part or whole"
            )
        return best[0]

    def _settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        if not self.knows_tools:
            report_tools(request, losses)
        elif tools := tools_of(request, losses):
            settings["tools"] = tools
            if request.tool_choice is not None and request.tool_choice.mode == "required":
                losses.approximated("$.tool_choice", "mode", "the prompt lists the tools; the model may still decide")
        thinks = wants_thinking(request.thinking)
        if thinks is not None and self.knows_thinking:
            settings[_THINKING] = thinks
        elif thinks:
            losses.dropped("$", "thinking", "the model's template has no such setting")
        return settings

    def _attempt(
        self, request: Request, form: ConversationFormat, settings: dict[str, Any], losses: Losses
    ) -> tuple[RenderedPrompt | None, list[str]]:
        """Return what the template makes of one form, and the roles of the turns that it leaves out."""
        if form.calls and not self.knows_tools:
            return None, []
        turns = turns_of(request, form, losses)
        opening = turns.pop().text if turns[-1].role == "assistant" and not turns[-1].calls else ""
        messages = [turn.message() for turn in turns]
        try:
            text = self._render(messages, settings)
        except Exception:  # noqa: BLE001  templates raise what they like for turns that they do not take
            return None, []
        return RenderedPrompt(text + opening, messages, settings, opening), list(_missing(turns, text))

    def _renders(self, settings: dict[str, Any]) -> bool:
        try:
            return bool(self._render(_PROBE, settings))
        except Exception:  # noqa: BLE001  each library has its own way to say that there is none
            return False

    def _differs(self, one: dict[str, Any], other: dict[str, Any]) -> bool:
        try:
            return self._render(_PROBE, one) != self._render(_PROBE, other)
        except Exception:  # noqa: BLE001  a template that cannot be asked knows nothing of it
            return False

    def _render(self, messages: list[JSONObject], settings: dict[str, Any]) -> str:
        made = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **settings)
        return str(made)

    def tokens(self, rendering: RenderedPrompt) -> list[int] | None:
        """Return the tokens of a prompt where the tokenizer makes them such that strangers' words control nothing.

        `None` where it cannot: the text is then to be read as it stands.
        """
        apply = self._tokenizer.apply_chat_template
        if "sanitize_control_tokens" not in inspect.signature(apply).parameters:
            return None
        made = apply(
            rendering.messages,
            tokenize=True,
            add_generation_prompt=True,
            return_dict=False,
            sanitize_control_tokens=True,
            **rendering.settings,
        )
        return [int(token) for token in made]


def _copy_losses(noted: Losses, losses: Losses) -> None:
    for loss in noted:
        getattr(losses, loss.how)(loss.where, loss.what, loss.why)


def _missing(turns: Iterable[TemplateMessage], text: str) -> Iterable[str]:
    """Yield the roles of turns whose words are not in what the template made; it may quote them as JSON."""
    for turn in turns:
        words = [turn.text.strip(), *(call.name for call in turn.calls)]
        if not all(one in text or to_text(one)[1:-1] in text for one in words if one):
            yield turn.role
