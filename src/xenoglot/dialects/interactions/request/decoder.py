"""Decodes requests.

Source: `CreateModelInteraction` in `google/genai/_gaos/types/interactions/createmodelinteraction.py` of the official
SDK. A request to an agent is refused: agents are programs on Google's servers, and no model stands for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.dialects.interactions.extras import NAME
from xenoglot.dialects.interactions.request.fields import REQUEST
from xenoglot.dialects.interactions.request.generation_config import take_generation
from xenoglot.dialects.interactions.request.input_decoder import system_turn, take_input
from xenoglot.dialects.interactions.request.response_format import take_formats
from xenoglot.dialects.interactions.tools import take_tools
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message

MODELS = "models/"
"""Begins the full name of a model; servers take the name with it and without it."""


def decode_request(body: JSON) -> Request:
    """Return the canonical request.

    Raises:
        WireError: a field is missing, of a wrong type or out of range, or the request is to an agent.
    """
    reader = Reader(body)
    if "model" not in reader and isinstance(reader.peek("agent"), str):
        raise WireError("$.agent", "agents run on Google's servers alone; set `model` to one of the models served here")
    form: JSONObject = {}
    model = reader.need("model", str)
    if model.startswith(MODELS):
        form["model"] = MODELS
    messages = (*_take_instruction(reader, form), *take_input(reader, form))
    if reader.peek("tools") == []:
        form["tools"] = True
    tools = take_tools(reader)
    generation = take_generation(reader, form)
    output, media = take_formats(reader, generation.media, form)
    stream = reader.take("stream", bool)
    if stream is False:
        form["unstreamed"] = True
    if reader.peek("background") is False:  # what is the case anyway
        form["background"] = reader.take("background", bool)
    others = REQUEST.read(reader, form)
    return Request(
        model=model.removeprefix(MODELS),
        messages=messages,
        tools=tools,
        tool_choice=generation.choice,
        sampling=generation.sampling,
        output=output,
        thinking=generation.thinking,
        media=media,
        stream=stream is True,
        extra=Extra(dialect=NAME, fields=reader.rest(), form=form),
        **others,
    )


def _take_instruction(reader: Reader, form: JSONObject) -> tuple[Message, ...]:
    """Take `system_instruction`, which is the first system message."""
    text = reader.take("system_instruction", str)
    if not text:
        if text is not None:
            form["instruction"] = "empty"
        return ()
    return (system_turn(text),)
