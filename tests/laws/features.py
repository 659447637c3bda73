"""What a request or an answer makes use of, in words for people: each feature with the places where it stands."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from tests.laws.essence import MADE_OF, Thing
from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    CompactedHistory,
    Extra,
    File,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Stored,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import Message, Request, RequestTool, Sampling, Tool, ToolChoice
from xenoglot.model.response import Candidate, FinishReason, Response, Usage


class Use(NamedTuple):
    """One use of a feature."""

    feature: str
    thing: Thing


SOURCES = {
    Inline: "inline",
    Remote: "by URL",
    Stored: "by an id of the provider",
    Plain: "as text",
    Nested: "as parts",
}
KINDS: dict[type[Part], str] = {
    Text: "text",
    Image: "image",
    Audio: "audio",
    Video: "video",
    File: "file",
    Refusal: "refusal",
    HostedCall: "call of a tool that the provider runs",
    HostedResult: "result of a tool that the provider ran",
    CompactedHistory: "compacted history",
    Opaque: "part that only its dialect knows",
}
REASONING = ("text", "summary", "signature", "encrypted")
SEALED = {
    "text": "reasoning: text",
    "summary": "reasoning: summary",
    "signature": "reasoning: signature",
    "encrypted": "reasoning: encrypted or redacted",
}
SEVERAL = "several candidates"
OWN = "field that only its dialect knows"
CHOICES = {"auto": "choice: a tool or words", "required": "choice: some tool", "none": "choice: no tool"}
OF_A_TOOL = {
    "strict": "function: strict",
    "format": "custom tool: grammar",
    "namespace": "namespace",
    "cache": "cache mark",
}
FORMS = {"text": "output: text", "json": "output: JSON", "json_schema": "output: JSON of a schema"}
THINKING = ("mode", "effort", "budget_tokens", "display", "summary")
SINGLE = {
    "parallel_tool_calls": "several calls at once, or not",
    "verbosity": "verbosity",
    "user": "user",
    "metadata": "metadata",
    "service_tier": "service tier",
    "store": "store",
    "previous": "goes on from a stored answer",
    "cache": "cache mark for the whole",
    "cache_key": "cache key",
    "cache_retention": "cache retention",
    "moderation": "moderation",
    "media": "media of the answer",
    "context_management": "context management",
}
FINISHES: tuple[FinishReason, ...] = (
    "stop",
    "stop_sequence",
    "length",
    "context",
    "tool_calls",
    "refusal",
    "pause",
    "compaction",
    "unknown",
)
COUNTS = tuple(name for name in Usage.__struct_fields__ if name != "extra")

ASKED = {
    "Turns": (
        "system turn",
        "developer turn",
        "system turn between the others",
        "name of a speaker",
        "last turn of the assistant, to go on with",
        "prompt without turns",
    ),
    "Content": (
        "text",
        "refusal",
        *(f"{kind} {how}" for kind in ("image", "audio", "video", "file") for how in SOURCES.values()),
        "audio of an earlier answer",
        "image detail",
        "cut of a video",
        "file name",
        "file context",
        "file to be cited",
        "citations",
        "cache mark",
        "compacted history",
        "part that only its dialect knows",
    ),
    "Reasoning": (*SEALED.values(), *(f"thinking: {name}" for name in THINKING)),
    "Tools": (
        "function",
        "function: strict",
        "custom tool",
        "custom tool: grammar",
        "namespace",
        "tool that the provider runs",
        *CHOICES.values(),
        "choice: one tool",
        "choice: some of the tools",
        "several calls at once, or not",
        "call",
        "call of a custom tool",
        "call: arguments that are no JSON",
        "result: text",
        "result: image or file",
        "result: error or not",
        "result of a custom tool",
        "call of a tool that the provider runs",
        "result of a tool that the provider ran",
    ),
    "Sampling": Sampling.__struct_fields__,
    "Output": (*FORMS.values(), "verbosity"),
    "Around it": (*(SINGLE[name] for name in SINGLE if name not in {"parallel_tool_calls", "verbosity"}), OWN),
}
"""Groups of the features of requests, in the order of the page."""

ANSWERED = {
    "Content": (
        "text",
        "order of the parts",
        "citations",
        "logprobs",
        "refusal",
        *SEALED.values(),
        *(f"{kind} {how}" for kind in ("image", "audio", "file") for how in SOURCES.values()),
        "compacted history",
        "part that only its dialect knows",
    ),
    "Calls": (
        "call",
        "call of a custom tool",
        "call: arguments that are no JSON",
        "namespace",
        "call of a tool that the provider runs",
        "result of a tool that the provider ran",
    ),
    "End": (*(f"end: {reason}" for reason in FINISHES), "stop string that was met", "explanation of a refusal"),
    "Usage": tuple(f"usage: {name}" for name in COUNTS),
    "Around it": (SEVERAL, "service tier", OWN),
}
"""Groups of the features of answers."""


def features_of_request(request: Request) -> Iterator[Use]:
    """Yield what a request makes use of."""
    yield from _turns(request)
    for index, tool in enumerate(request.tools):
        yield from _tool(f"$.tools[{index}]", tool)
    if request.tool_choice is not None:
        yield _use(_choice(request.tool_choice), "$.tool_choice")
    if request.output is not None:
        yield _use(FORMS[request.output.kind], "$.output")
    yield from _set_fields(request.sampling, "$.sampling", {name: name for name in Sampling.__struct_fields__})
    yield from _set_fields(request.thinking, "$.thinking", {name: f"thinking: {name}" for name in THINKING})
    yield from _set_fields(request, "$", SINGLE)
    yield from _own(request, "$")


def features_of_response(response: Response) -> Iterator[Use]:
    """Yield what an answer makes use of."""
    for candidate in response.candidates[:1]:  # what is said of the others is said of all of each
        where = "$.candidates[0]"
        for number, part in enumerate(candidate.content):
            yield from _part(f"{where}.content[{number}]", part)
        if len({type(part) for part in candidate.content}) > 1:
            yield _use("order of the parts", f"{where}.order")
        yield from _end(where, candidate)
    if len(response.candidates) > 1:
        yield _use(SEVERAL, f"$.candidates[{len(response.candidates) - 1}]")
    for name in COUNTS:
        if response.usage is not None and getattr(response.usage, name) not in (None, False):
            yield _use(f"usage: {name}", f"$.usage.{name}")
    if response.service_tier is not None:
        yield _use("service tier", "$.service_tier")
    yield from _own(response, "$")


def _use(feature: str, path: str, fields: tuple[str, ...] = ()) -> Use:
    return Use(feature, Thing((path,), b"", fields))


def _set_fields(value: Struct | None, path: str, features: dict[str, str]) -> Iterator[Use]:
    for name, feature in features.items():
        if getattr(value, name, None) is not None:
            yield _use(feature, f"{path}.{name}")


def _turns(request: Request) -> Iterator[Use]:
    said = False
    for index, message in enumerate(request.messages):
        where = f"$.messages[{index}]"
        if message.role == "system":
            yield _use("system turn between the others" if said else "system turn", f"{where}.role")
        elif message.role == "developer":
            yield _use("developer turn", f"{where}.role")
        else:
            said = True
        if message.name is not None:
            yield _use("name of a speaker", f"{where}.name")
        yield from _content(where, message)
    if request.messages and request.messages[-1].role == "assistant":
        yield _use("last turn of the assistant, to go on with", f"$.messages[{len(request.messages) - 1}].prefill")
    if request.prompt is not None:
        yield _use("prompt without turns", "$.prompt")


def _content(where: str, message: Message) -> Iterator[Use]:
    for number, part in enumerate(message.content):
        yield from _part(f"{where}.content[{number}]", part)
    yield from _own(message, where)


def _part(path: str, part: Part) -> Iterator[Use]:
    match part:
        case Reasoning():
            said = [name for name in REASONING if getattr(part, name)]
            yield from (_use(SEALED[name], f"{path}.{name}", _core(part, name)) for name in said)
        case ToolCall():
            yield from _call(path, part)
        case ToolResult():
            yield from _result(path, part)
        case Image() | Audio() | Video() | File():
            yield from _medium(path, part)
        case _:
            if not isinstance(part, Text | Refusal) or part.text:
                yield _use(KINDS[type(part)], path, MADE_OF[type(part)])
    yield from _attributes(path, part)


def _core(part: Part, name: str) -> tuple[str, ...]:
    """Return the field, where what becomes of the part becomes of it."""
    return tuple({name}.intersection(MADE_OF[type(part)]))


def _call(path: str, call: ToolCall) -> Iterator[Use]:
    yield _use("call of a custom tool" if call.kind == "custom" else "call", path, MADE_OF[ToolCall])
    if call.kind == "function" and not _is_object(call.arguments):
        yield _use("call: arguments that are no JSON", f"{path}.arguments", _core(call, "arguments"))
    if call.namespace is not None:
        yield _use("namespace", f"{path}.namespace", _core(call, "namespace"))


def _result(path: str, result: ToolResult) -> Iterator[Use]:
    yield _use("result of a custom tool" if result.kind == "custom" else "result: text", path, ("call_id", "kind"))
    for number, part in enumerate(result.content):
        if isinstance(part, Image | File):
            yield _use("result: image or file", f"{path}.content[{number}]", MADE_OF[type(part)])
    if result.is_error is not None:
        yield _use("result: error or not", f"{path}.is_error")


def _medium(path: str, part: Image | Audio | Video | File) -> Iterator[Use]:
    how = None if part.source is None else SOURCES[type(part.source)]
    feature = "audio of an earlier answer" if how is None else f"{KINDS[type(part)]} {how}"
    yield _use(feature, path, MADE_OF[type(part)])
    extras = {"detail": "image detail", "name": "file name", "context": "file context", "citable": "file to be cited"}
    extras |= dict.fromkeys(("start", "end", "fps"), "cut of a video")
    for name, feature in extras.items():
        if getattr(part, name, None) is not None:
            yield _use(feature, f"{path}.{name}")


def _attributes(path: str, part: Part) -> Iterator[Use]:
    for name, feature in {"citations": "citations", "logprobs": "logprobs", "cache": "cache mark"}.items():
        if getattr(part, name, None):
            yield _use(feature, f"{path}.{name}")
    yield from _own(part, path)


def _tool(path: str, tool: RequestTool) -> Iterator[Use]:
    if isinstance(tool, HostedTool | Opaque):
        yield _use("tool that the provider runs", path, MADE_OF[type(tool)])
        return
    yield _use("function" if tool.kind == "function" else "custom tool", path, MADE_OF[Tool])
    for name, feature in OF_A_TOOL.items():
        if getattr(tool, name) is not None:
            yield _use(feature, f"{path}.{name}")
    yield from _own(tool, path)


def _choice(choice: ToolChoice) -> str:
    if not choice.names:
        return CHOICES[choice.mode]
    return "choice: one tool" if choice.mode == "required" and len(choice.names) == 1 else "choice: some of the tools"


def _end(where: str, candidate: Candidate) -> Iterator[Use]:
    finish = candidate.finish
    if finish is not None:
        yield _use(f"end: {finish.reason}", f"{where}.finish", ("reason",))
        if finish.stop_sequence is not None:
            yield _use("stop string that was met", f"{where}.finish.stop_sequence")
        if finish.explanation is not None:
            yield _use("explanation of a refusal", f"{where}.finish.explanation")
    yield from _own(candidate, where)


def _own(value: Struct, path: str) -> Iterator[Use]:
    extra = getattr(value, "extra", None)
    for name in [name for name, said in (extra.fields if isinstance(extra, Extra) else {}).items() if said is not None]:
        yield _use(OWN, f"{path}.{name}")


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(decode_json(arguments or "{}"), dict)
    except WireError:
        return False
