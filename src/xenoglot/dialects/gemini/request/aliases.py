"""Alternative forms of a request that Google's servers accept: `snake_case` names, and one value for a list of one.

JSON for protocol buffers knows a field by two names (https://protobuf.dev/programming-guides/json/), and Google's own
examples use both, and write `"parts": {...}` for `"parts": [{...}]`. So a request is brought to one spelling before
anything reads it; what was changed is noted, and undone when it is written back. What belongs to the client (arguments,
results, schemas, labels) is not looked into.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Generator

    from xenoglot.model.json import JSON, JSONObject

Shape: TypeAlias = "dict[str, Shape | list[Shape]]"
"""The fields of a message that hold messages; in a list where the field is repeated."""

_PLAIN: Shape = {}
_MEDIA: Shape = {"inlineData": _PLAIN, "fileData": _PLAIN, "videoMetadata": _PLAIN, "mediaResolution": _PLAIN}
_PART: Shape = {
    **_MEDIA,
    "functionCall": _PLAIN,
    "functionResponse": {"parts": [_MEDIA]},
    "executableCode": _PLAIN,
    "codeExecutionResult": _PLAIN,
    "toolCall": _PLAIN,
    "toolResponse": _PLAIN,
}
_CONTENT: Shape = {"parts": [_PART]}
_TOOL: Shape = {
    "functionDeclarations": [_PLAIN],
    "googleSearch": {"timeRangeFilter": _PLAIN},
    "googleSearchRetrieval": {"dynamicRetrievalConfig": _PLAIN},
    "googleMaps": _PLAIN,
    "codeExecution": _PLAIN,
    "urlContext": _PLAIN,
    "fileSearch": _PLAIN,
    "computerUse": _PLAIN,
    "mcpServers": [{"streamableHttpTransport": _PLAIN}],
}
_VOICE: Shape = {"prebuiltVoiceConfig": _PLAIN}
_SPEECH: Shape = {
    "voiceConfig": _VOICE,
    "multiSpeakerVoiceConfig": {"speakerVoiceConfigs": [{"voiceConfig": _VOICE}]},
}
_REQUEST: Shape = {
    "contents": [_CONTENT],
    "systemInstruction": _CONTENT,
    "tools": [_TOOL],
    "toolConfig": {"functionCallingConfig": _PLAIN, "retrievalConfig": {"latLng": _PLAIN}},
    "safetySettings": [_PLAIN],
    "generationConfig": {"thinkingConfig": _PLAIN, "imageConfig": _PLAIN, "speechConfig": _SPEECH},
}
REQUEST: Shape = {**_REQUEST, "generateContentRequest": _REQUEST}

_NAME = re.compile(r"\.(\w+)")
_INDEX = re.compile(r"\[(\d+)\]")
_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")


def camel(name: str) -> str:
    """Return a field's name in `camelCase`; a name that is no `snake_case` as it is."""
    if "_" not in name or _SNAKE.fullmatch(name) is None:
        return name
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def plain(value: JSONObject, shape: Shape = REQUEST) -> tuple[JSONObject, JSONObject]:
    """Return a message in the one spelling, and the note that `respelled` needs to undo it; empty if it was in it."""
    result: JSONObject = {}
    keys: JSONObject = {}
    lone: list[str] = []
    inside: JSONObject = {}
    for key, given in value.items():
        name, item = camel(key), given
        if name != key and name in value:  # said twice: the second is nobody's
            name = key
        if name != key:
            keys[name] = key
        inner = shape.get(name)
        if isinstance(inner, list) and isinstance(item, dict):
            lone.append(name)
            item = [item]
        result[name], note = _plain_inside(item, inner)
        if note:
            inside[name] = note
    found = {"keys": keys, "lone": lone, "in": inside}
    return result, {key: said for key, said in found.items() if said}


def _plain_inside(value: JSON, shape: Shape | list[Shape] | None) -> tuple[JSON, JSONObject]:
    if isinstance(shape, dict) and isinstance(value, dict):
        return plain(value, shape)
    if not isinstance(shape, list) or not isinstance(value, list):
        return value, {}
    notes: JSONObject = {}
    items: list[JSON] = []
    for index, item in enumerate(value):
        made, note = _plain_inside(item, shape[0])
        items.append(made)
        if note:
            notes[str(index)] = note
    return items, notes


def respelled(value: JSON, note: JSONObject) -> JSON:
    """Return a message as it was spelled when `note` was taken of it; what is elsewhere by now stays as it is."""
    if not note or not isinstance(value, dict):
        return value
    keys, lone, inside = note.get("keys", {}), note.get("lone", ()), note.get("in", {})
    result: JSONObject = {}
    for name, given in value.items():
        item = given
        deeper = inside.get(name, {})
        if deeper and isinstance(item, list):
            item = [respelled(one, deeper.get(str(index), {})) for index, one in enumerate(item)]
        elif deeper:
            item = respelled(item, deeper)
        if name in lone and isinstance(item, list) and len(item) == 1:
            item = item[0]
        result[keys.get(name, name)] = item
    return result


@contextmanager
def sent_paths(note: JSONObject) -> Generator[None]:
    """Have errors name places as the client wrote them.

    Raises:
        WireError: as the errors that are raised in it.
    """
    try:
        yield
    except WireError as error:
        raise WireError(sent_path(error.path, note), error.problem) from None


def sent_path(path: str, note: JSONObject) -> str:
    """Return the path in the body as it was sent of what has `path` in the one spelling; `note` was taken of it."""
    sent, at = "$", 1
    while note and (name := _NAME.match(path, at)) is not None:
        sent += f".{note.get('keys', {}).get(name[1], name[1])}"
        at = name.end()
        deeper = note.get("in", {}).get(name[1], {})
        if (index := _INDEX.match(path, at)) is not None:
            sent += "" if name[1] in note.get("lone", ()) else index[0]
            at = index.end()
            deeper = deeper.get(index[1], {})
        note = deeper
    return sent + path[at:]
