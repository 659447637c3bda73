"""Encodes and decodes `generation_config`: sampling, reasoning effort, tool choice, voice and size of images.

Source: `GenerationConfig` in `google/genai/_gaos/types/interactions/generationconfig.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from xenoglot.codec.loss import PARTIAL, form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.names import namespaces_of
from xenoglot.dialects.google.shared import with_said
from xenoglot.dialects.interactions.extras import NAME, own_fields
from xenoglot.dialects.interactions.request.fields import SAMPLING
from xenoglot.dialects.interactions.step_encoder import fitted
from xenoglot.model.content import Extra
from xenoglot.model.request import Sampling, Thinking, ToolChoice, effort_of, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Effort, MediaOutput, Request

KEY: Final = "generation_config"
THINKING: Final = "$.thinking"
CHOICE: Final = "$.tool_choice"

LEVELS: Final[tuple[Effort, ...]] = ("minimal", "low", "medium", "high", "xhigh")
"""`ThinkingLevel` in the SDK."""

_SUMMARIES: Final = {"auto": "summarized", "none": "omitted"}

_MODES: Final[Mapping[str, Literal["auto", "required", "none"]]] = {
    "auto": "auto",
    "validated": "auto",
    "any": "required",
    "none": "none",
}
_WORDS: Final = {"auto": "auto", "required": "any", "none": "none"}
_NARROWED: Final = "validated"
"""The mode that leaves it to the model, and holds its calls to their schemas."""

_IMAGE: Final = ("aspect_ratio", "image_size")


class Generation(NamedTuple):
    """The decoded fields of a `generation_config`; `media` are those of a `MediaOutput`."""

    sampling: Sampling
    thinking: Thinking | None
    choice: ToolChoice | None
    media: JSONObject


def take_generation(reader: Reader, form: JSONObject) -> Generation:
    """Take the configuration of a request; unknown fields stay where it was."""
    config = reader.object(KEY)
    if config is None:
        return Generation(Sampling(), None, None, {})
    generation = Generation(
        Sampling(**SAMPLING.read(config, form)), _take_thinking(config), _take_choice(config), _take_media(config, form)
    )
    rest = config.rest()
    lasting = {key: value for key, value in rest.items() if value is not None}
    if lasting:
        reader.rest()[KEY] = lasting
        form.setdefault(PARTIAL, []).append(KEY)
    form[KEY] = {key: None for key, value in rest.items() if value is None} or True
    return generation


def _take_thinking(config: Reader) -> Thinking | None:
    level = config.take_word("thinking_level", LEVELS)
    shown = config.take_word("thinking_summaries", _SUMMARIES)
    if level is None and shown is None:
        return None
    return Thinking(
        effort=level,
        display=None if shown is None else _SUMMARIES[shown],
        extra=Extra(dialect=NAME, form={"own": True}),
    )


def _take_choice(config: Reader) -> ToolChoice | None:
    """Take `tool_choice`; one of a form that is not known stays where it was."""
    value = config.peek("tool_choice")
    allowed = value.get("allowed_tools") if isinstance(value, dict) and value.keys() == {"allowed_tools"} else None
    mode = allowed.get("mode", "auto") if isinstance(allowed, dict) and allowed.keys() <= {"mode", "tools"} else value
    names = allowed.get("tools") if isinstance(allowed, dict) else ()
    listed = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not isinstance(mode, str) or mode not in _MODES or not listed:
        return None
    config.take_any("tool_choice")
    fields: JSONObject = {"mode": mode} if mode == _NARROWED else {}  # no other dialect says that of all tools at once
    extra = Extra(dialect=NAME, fields=fields, form={} if isinstance(value, str) else {"choice": value})
    return ToolChoice(mode=_MODES[mode], names=tuple(names or ()), extra=extra if extra.fields or extra.form else None)


def _means(spelled: JSON, choice: ToolChoice) -> bool:
    """Return whether a choice is still what it was when it was spelled so."""
    found = _take_choice(Reader({"tool_choice": spelled}))
    return found is not None and (found.mode, found.names) == (choice.mode, choice.names)


def _take_media(config: Reader, form: JSONObject) -> JSONObject:
    fields: JSONObject = {}
    images = config.peek("image_config")
    if isinstance(images, dict) and images and images.keys() <= {*_IMAGE} and _are_texts(images):
        fields |= config.take("image_config", dict) or {}
        form["image_config"] = True
    voice = config.peek("speech_config")
    listed = isinstance(voice, list)
    spoken = voice[0] if isinstance(voice, list) and len(voice) == 1 else voice
    if isinstance(spoken, dict) and spoken.keys() == {"voice"} and _are_texts(spoken):
        config.take_any("speech_config")
        fields["voice"] = spoken["voice"]
        form["speech_config"] = "list" if listed else "object"
    return fields


def _are_texts(value: JSONObject) -> bool:
    return all(isinstance(one, str) for one in value.values())


def encode_generation(request: Request, crossing: EncodeContext, own: JSONObject, *, tools: bool) -> JSONObject:
    """Return `generation_config`, in the field of its name, or nothing where there is nothing to write.

    Raises:
        WireError: there are more stop strings than the server takes.
    """
    form = form_of(request.extra, NAME)
    config: JSONObject = {}
    SAMPLING.write(request.sampling, config, form, crossing)
    if request.thinking is not None:
        config |= _thinking(request.thinking, crossing)
    if request.parallel_tool_calls is not None:
        crossing.losses.dropped("$", "parallel_tool_calls", "the dialect has no such field")
    if request.tool_choice is not None:
        config |= _choice(request, request.tool_choice, crossing, tools=tools)
    if request.media is not None:
        config |= _media(request.media, form, crossing)
    nulls = form.get(KEY)
    config |= nulls if isinstance(nulls, dict) else {}
    config |= own.pop(KEY, {})
    return {KEY: config} if config or KEY in form else {}


def _thinking(thinking: Thinking, crossing: EncodeContext) -> JSONObject:
    losses = crossing.losses
    own = own_fields(thinking.extra, THINKING, losses)
    if crossing.target.thinking == "none":
        if thinking.mode != "disabled" and thinking.effort != "none":
            losses.dropped(THINKING, "thinking", "the server has no setting for reasoning")
        return own
    effort = _effort(thinking, crossing)
    shown: str | None = None
    if thinking.summary is not None:
        losses.approximated(THINKING, "summary", "written as `thinking_summaries`")
        shown = "auto"
    if thinking.display is not None:
        shown = "none" if thinking.display == "omitted" else "auto"
        if thinking.display not in ("omitted", "summarized"):
            losses.approximated(THINKING, "display", "written as `thinking_summaries`")
    elif shown is None and thinking.mode in ("enabled", "adaptive"):
        shown = "auto"  # who turns reasoning on in another dialect is used to seeing it
    return with_said(own, thinking_level=effort, thinking_summaries=shown)


def _effort(thinking: Thinking, crossing: EncodeContext) -> Effort | None:
    """Return the level; budgets and modes are written as one."""
    losses = crossing.losses
    wanted = _wanted(thinking, losses)
    if wanted is None:
        return None
    word = nearest(wanted, crossing.target.efforts or LEVELS)
    if word not in LEVELS:
        word = nearest(wanted, LEVELS)
    if word != wanted and thinking.budget_tokens is None:
        what = "mode" if thinking.effort is None else "effort"
        losses.approximated(THINKING, what, f"`{wanted}` is written as `{word}`")
    return word


def _wanted(thinking: Thinking, losses: Losses) -> Effort | None:
    """Return the requested effort, however the request sets it."""
    if thinking.effort is not None:
        for field in ("mode", "budget_tokens"):
            if getattr(thinking, field) is not None:
                losses.dropped(THINKING, field, "the effort stands for it")
        return thinking.effort
    if thinking.mode == "disabled":
        return "none"
    if thinking.budget_tokens is not None:
        wanted = effort_of(thinking.budget_tokens)
        losses.approximated(THINKING, "budget_tokens", f"written as the level `{nearest(wanted, LEVELS)}`")
        return wanted
    if thinking.mode is not None:
        losses.approximated(THINKING, "mode", "how much to think is left to the model")
    return None


def _choice(request: Request, choice: ToolChoice, crossing: EncodeContext, *, tools: bool) -> JSONObject:
    losses = crossing.losses
    own = own_fields(choice.extra, CHOICE, losses)
    if not tools and not crossing.home:
        losses.dropped("$", "tool_choice", "there are no tools to call")
        return {}
    if choice.kind == "custom":
        losses.emulated(CHOICE, "kind", "a custom tool is written as a function of one object")
    spelled = form_of(choice.extra, NAME).get("choice")
    if spelled is not None and _means(spelled, choice):
        return {"tool_choice": spelled}
    mode = own.get("mode", _WORDS[choice.mode])
    if not choice.names:
        return {"tool_choice": mode}
    if mode == "auto":
        mode = _NARROWED
        losses.approximated(CHOICE, "mode", "calls among some of the tools are held to their schemas too")
    spaces = namespaces_of(request.tools)
    names: list[JSON] = [
        name if crossing.home else fitted(name, spaces.get(name), CHOICE, crossing.target, losses)
        for name in choice.names
    ]
    return {"tool_choice": {"allowed_tools": {"mode": mode, "tools": names}}}


def _media(media: MediaOutput, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    config: JSONObject = {}
    if "image_config" in form:
        config["image_config"] = with_said({}, **{key: getattr(media, key) for key in _IMAGE})
    if media.voice is None:
        return config
    if not crossing.home and not media.voice[:1].isupper():  # all of Google's are names, like `Kore`
        crossing.losses.dropped("$.media", "voice", "the voices of the dialect are others; the server's default speaks")
        return config
    voice = {"voice": media.voice}
    config["speech_config"] = voice if form.get("speech_config") == "object" else [voice]
    return config
