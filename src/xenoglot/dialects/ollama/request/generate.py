"""Encodes and decodes requests of `POST /api/generate`: one prompt, which the server renders with the template.

So a prompt is a user's turn, with the system turn before it. Only with `raw`, or before a `suffix`, it is a text to
be continued as it stands (`GenerateHandler` in `server/routes.go`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, take_blanks
from xenoglot.codec.requests.encode_context import EncodeContext, came_from
from xenoglot.dialects.ollama.extras import GENERATE, extra_of, own_fields
from xenoglot.dialects.ollama.media import decode_media
from xenoglot.dialects.ollama.request.message_encoder import PARAGRAPH, encode_parts, note_joined
from xenoglot.dialects.ollama.request.settings import decode_settings, encode_settings
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request


def decode_request(body: JSON) -> Request:
    """Return what a client asks; without a prompt, that the model be loaded (see `loading`).

    Raises:
        WireError: a field is missing or of a wrong type.
    """
    reader = Reader(body)
    form: JSONObject = {}
    settings = decode_settings(reader, form)
    form["blanks"] |= take_blanks(reader, "prompt")
    raw, suffix = reader.take("raw", bool), reader.take("suffix", str)
    form["raw"] = None if raw is None else {"raw": raw}
    system, text = reader.take("system", str), reader.take("prompt", str)
    messages = [] if system is None else [Message(role="system", content=(Text(text=system),))]
    prompt = None
    if text is not None and (raw or suffix is not None):
        prompt = Prompt(texts=(text,), suffix=suffix)
    elif text is not None:
        pictures = [decode_media(data) for data in reader.strings("images") or ()]
        messages.append(Message(role="user", content=(*pictures, Text(text=text))))
    elif suffix is not None:
        reader.rest()["suffix"] = suffix
    extra = extra_of(reader, GENERATE.name, form) or Extra(dialect=GENERATE.name)
    return replace(settings, messages=tuple(messages), prompt=prompt, extra=extra)


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the request for a server; one that came in this dialect goes out as it came.

    Raises:
        WireError: it is more than one prompt, or has tools: this endpoint knows neither turns nor tools.
    """
    home = came_from(request, GENERATE.name)
    crossing = EncodeContext(losses, target, home)
    form, own = form_of(request.extra, GENERATE.name), own_fields(request.extra, "$", losses, GENERATE.name)
    _refuse_tools(request, losses)
    head = next((place for place, turn in enumerate(request.messages) if not _is_system(turn)), len(request.messages))
    body: JSONObject = {"model": request.model, **_system(request.messages[:head], crossing)}
    if request.prompt is None:
        body |= _asked(request.messages, head, crossing)
    else:
        body |= _continued(request, request.prompt, crossing)
    body |= form.get("raw", {})
    body |= encode_settings(request, form, own, crossing)
    return {**form.get("blanks", {}), **own, **body}


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


_EMPTY = "must hold words: without any this model is only loaded, and answers nothing"


def _refuse_tools(request: Request, losses: Losses) -> None:
    if request.tools:
        raise WireError("$.tools", "this model takes one prompt, and no tools; leave them out")
    for name in ("tool_choice", "parallel_tool_calls"):
        if getattr(request, name) is not None:
            losses.dropped("$", name, "there are no tools")


def _system(messages: Sequence[Message], crossing: EncodeContext) -> JSONObject:
    texts: list[str] = []
    for index, message in enumerate(messages):
        where = f"$.messages[{index}]"
        if message.role == "developer":
            crossing.losses.approximated(where, "role", "`developer` is written as `system`")
        content = _content(message, where, crossing)
        for name in ("images", "tool_calls"):
            if name in content:
                crossing.losses.dropped(where, name, "a system turn has none here")
        texts += [content["content"]] if content["content"] else []
    if len(texts) > 1:
        crossing.losses.approximated("$.messages", "system", "its turns are joined")
    return {"system": PARAGRAPH.join(texts)} if texts else {}


def _asked(messages: Sequence[Message], head: int, crossing: EncodeContext) -> JSONObject:
    """Return the user's words; this endpoint takes nothing else."""
    if not messages[head:]:
        return {}
    (asked, *others) = messages[head:]
    if others or asked.role != "user" or any(isinstance(part, ToolCall | ToolResult) for part in asked.content):
        raise WireError("$.messages", "this model takes one prompt, and no conversation; send one user turn")
    content = _content(asked, f"$.messages[{head}]", crossing)
    if not content["content"]:
        raise WireError(f"$.messages[{head}]", _EMPTY)
    return {"prompt": content.pop("content"), **content}


def _content(message: Message, where: str, crossing: EncodeContext) -> JSONObject:
    losses = crossing.losses
    own_fields(message.extra, where, losses, GENERATE.name)
    for name in ("name", "id"):
        if getattr(message, name) is not None:
            losses.dropped(where, name, "a prompt has none")
    parts = [(f"{where}.content[{index}]", part) for index, part in enumerate(message.content)]
    note_joined(parts, where, losses)
    fields = encode_parts(parts, PARAGRAPH, where, crossing)
    if fields.pop("thinking", None) is not None:
        losses.dropped(where, "thinking", "a prompt has no reasoning")
    return fields


def _check_asked(request: Request, prompt: Prompt) -> None:
    """Refuse questions about the prompt itself, which this endpoint does not answer."""
    if prompt.echo and request.sampling.logprobs:
        raise WireError("$.echo", "this model does not report the probabilities of its prompt")
    if prompt.best_of is not None and prompt.best_of > (request.sampling.n or 1):
        raise WireError("$.best_of", "this model gives every answer it makes; ask for `n` of them")


def _continued(request: Request, prompt: Prompt, crossing: EncodeContext) -> JSONObject:
    if len(prompt.texts) != 1:
        raise WireError("$.prompt", f"this model continues one text at a time, found {len(prompt.texts)}")
    (text,) = prompt.texts
    if not isinstance(text, str):
        raise WireError("$.prompt", "token ids mean nothing to this model; send the text")
    if not text:
        raise WireError("$.prompt", _EMPTY)
    _check_asked(request, prompt)
    if prompt.echo:
        crossing.losses.emulated("$.prompt", "echo", "the encoder of the answer begins it with the text")
    if prompt.suffix:
        return {"prompt": text, "suffix": prompt.suffix}
    if crossing.home:
        return {"prompt": text}
    if request.messages:  # the server refuses `raw` beside `system`
        crossing.losses.approximated("$.prompt", "texts", "put into the model's template, for there is a system turn")
        return {"prompt": text}
    return {"prompt": text, "raw": True}
