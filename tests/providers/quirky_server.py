"""A server that is as its `Target` says and no better: what it does not take it refuses, or passes over. No socket."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.url_params import informed
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Image, Logprob, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold
from xenoglot.model.request import Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.providers.probe.exchange import ProbeResponse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.target import Target
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request
    from xenoglot.providers.probe.exchange import Conversation, ProbeRequest
    from xenoglot.providers.probe.findings import Report

MODEL: Final = "talker"
CALL: Final = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
_CACHE: Final = "prompt_cache_breakpoint"
_KNOWN_BY: Final[dict[str, tuple[str, ...]]] = {
    "extended_sampling": ("top_k", "min_p", "repetition_penalty"),
    "cache_marks": (_CACHE,),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "stream_usage": ("stream_options",),
}
"""Fields of `chat` that only servers know of which the fact holds."""

_THINKING: Final = {"reasoning_effort", "thinking", "reasoning", "enable_thinking", "chat_template_kwargs"}
_WIRE: Final = {"cache_key": "prompt_cache_key"}
_EVERYWHERE: Final = re.compile(r"\{model\}")


class Quirky:
    """Answers questions; `faces` are the dialects it speaks, each with its facts.

    A `picky` server refuses fields that it does not know, naming them; another passes over them. One that `writes`
    puts its calls into the text; one that `thinks` shows its reasoning where `reasoning_field` says.
    """

    def __init__(
        self, faces: Mapping[str, Target], *, picky: bool = True, writes: bool = False, thinks: bool = False
    ) -> None:
        self._faces = faces
        self._picky = picky
        self._writes = writes
        self._thinks = thinks
        self.asked: list[ProbeRequest] = []

    def reply(self, ask: ProbeRequest) -> ProbeResponse:
        """Return what the server says to one question."""
        self.asked.append(ask)
        for name, target in self._faces.items():
            dialect = get(name)
            if ask.method == "GET" and ask.path == dialect.models_path:
                return _json(200, dialect.encode_models([ModelInfo(id=MODEL, max_input_tokens=4096)]))
            template = _template(ask.path, dialect)
            if ask.method == "POST" and template is not None:
                variables = {"model": MODEL} if "{model}" in template else {}
                return self._answer(dialect, target, informed(ask.body, template, variables, dialect))
        return _json(404, {"error": {"message": "no such path"}})

    def _answer(self, dialect: Dialect, target: Target, body: JSONObject) -> ProbeResponse:
        try:
            known = self._known(body, target, dialect)
            request = dialect.decode_request(known)
        except WireError as error:
            return _refusal(dialect, f"{error.path.removeprefix('$.')}: {error.problem}")
        for problem in _problems(request, known, target, dialect):
            return _refusal(dialect, problem)
        response = self._response(request, target)
        if request.stream:
            return self._stream(dialect, target, request, response)
        return _json(200, self._placed(dialect.encode_response(response, request, Losses()), target))

    def _stream(self, dialect: Dialect, target: Target, request: Request, response: Response) -> ProbeResponse:
        encoder = Pipeline(dialect.stream_encoder(request, Losses()))
        frames = [
            replace(frame, data=self._reencoded(frame.data, target)) for frame in through(unfold(response), encoder)
        ]
        data = b"".join(through(frames, dialect.framing.encoder()))
        return ProbeResponse(status=200, headers=(("content-type", dialect.framing.media_type),), body=data)

    def _reencoded(self, data: bytes, target: Target) -> bytes:
        return encode_json(self._placed(decode_json(data), target)) if data.startswith(b"{") else data

    def _known(self, body: JSONObject, target: Target, dialect: Dialect) -> JSONObject:
        """Return the body with what the server knows; a picky one complains of all else."""
        unknown = {"xenoglot_probe", *(_unknown(target) if dialect.name == "chat" else ())}
        found = [key for key in sorted(unknown) if _has(body, key)]
        if found and self._picky:
            raise WireError(found[0], "unknown field")
        known: JSONObject = _without(body, unknown)
        thinking = known.get("thinking") if target.thinking == "switch" else None
        budget = thinking.pop("budget_tokens", None) if isinstance(thinking, dict) else None
        if self._picky and budget is not None:
            raise WireError("thinking.budget_tokens", "unknown field")
        return known

    def _response(self, request: Request, target: Target) -> Response:
        count = 1 if target.fan_out else request.sampling.n or 1
        content, finish = self._said(request, target)
        thought = (Reasoning(text="Hm."),) if self._thinks else ()
        words = sum(len(part.text.split()) for part in content if isinstance(part, Text))
        return Response(
            id="answer",
            model=MODEL,
            created=1,
            candidates=tuple(Candidate(content=(*thought, *content), finish=finish) for _ in range(count)),
            usage=Usage(input_tokens=10, output_tokens=words + 1),
        )

    def _said(self, request: Request, target: Target) -> tuple[tuple[Part, ...], Finish]:
        question = _question(request)
        wanted = request.tool_choice is None or request.tool_choice.mode != "none"
        if request.tools and wanted and "weather" in question and not _answered(request):
            return self._called(question, target)
        if "Count" in question:
            return _counted(request, target)
        text = "Hello."
        if request.output is not None:
            text = '{"word": "amber"}' if request.output.kind == "json_schema" else '{"colour": "amber"}'
        elif request.messages[-1:] and request.messages[-1].role == "assistant":
            text = "is, of course." if target.prefill == "native" else "Paris."
        elif any(isinstance(part, Image) or _shows(part) for message in request.messages for part in message.content):
            text = "It is red."
        odds = (Logprob(token=text, logprob=-0.5),) if request.sampling.logprobs else ()
        return (Text(text=text, logprobs=odds),), Finish(reason="stop")

    def _called(self, question: str, target: Target) -> tuple[tuple[Part, ...], Finish]:
        if self._writes:
            return (Text(text=CALL),), Finish(reason="stop")
        cities = ("Paris", "Rome") if "Rome" in question else ("Paris",)
        form = "abcdefgh{}" if target.tool_id == "nine" else "call_{}"
        calls = tuple(
            ToolCall(id=form.format(number), name="get_weather", arguments=f'{{"city":"{city}"}}')
            for number, city in enumerate(cities)
        )
        return calls, Finish(reason="tool_calls")

    def _placed(self, value: JSON, target: Target) -> JSON:
        """Return an answer with its reasoning where the server has it."""
        if isinstance(value, list):
            return [self._placed(item, target) for item in value]
        if not isinstance(value, dict):
            return value
        return {self._place(key, target): self._placed(item, target) for key, item in value.items()}

    def _place(self, key: str, target: Target) -> str:
        return target.reasoning_field if self._thinks and key == "reasoning_content" else key


def probe_report(server: Quirky, conversation: Conversation[Report]) -> Report:
    """Hold the conversation with `server`."""
    try:
        ask = next(conversation)
        while True:
            ask = conversation.send(server.reply(ask))
    except StopIteration as end:
        report: Report = end.value
        return report


def _problems(request: Request, body: JSONObject, target: Target, dialect: Dialect) -> Iterator[str]:
    """Yield why a server of these facts refuses a request."""
    roles = [message.role for message in request.messages]
    parts = [part for message in request.messages for part in message.content]
    if "developer" in roles and not target.developer_role:
        yield "messages[0].role: `developer` is unknown"
    if not target.inline_system and "system" in roles[1:]:
        yield "messages: a system turn stands first"
    if target.cache_marks and _marked_wrongly(body):
        yield "messages[0].content[0].prompt_cache_breakpoint: expected an object"
    if not target.text_parts and any(map(_lists_texts, body.get("messages", ()))):
        yield "messages[0].content: expected a text"
    if not target.images and any(isinstance(part, Image) for part in parts):
        yield "messages[0].content: no images"
    if not target.tool_result_media and any(map(_shows, parts)):
        yield "messages[2].content: expected a text"
    yield from _problems_of_tools(request, target, dialect)
    yield from _problems_of_fields(request, body, target)


def _problems_of_tools(request: Request, target: Target, dialect: Dialect) -> Iterator[str]:
    tools = [tool for tool in request.tools if isinstance(tool, Tool)]
    if len(tools) < len(request.tools):
        yield "tools[0].type: unknown"
    if tools and not target.tools:
        yield "tools: there are none"
    if not target.strict_tools and any(tool.strict for tool in tools):
        yield "tools[0].function.strict: unknown field"
    if not target.custom_tools and any(tool.kind == "custom" for tool in tools):
        yield "tools[0].type: expected `function`"
    limit = target.tool_name_limit or dialect.tool_name_limit
    if any(len(tool.name) > limit for tool in tools):
        yield f"tools[0].function.name: at most {limit} characters"
    if request.tool_choice is not None and request.tool_choice.mode == "required" and not target.forced_tools:
        yield "tool_choice: expected `auto` or `none`"
    ids = [part.call_id for message in request.messages for part in message.content if isinstance(part, ToolResult)]
    if target.tool_id == "nine" and any(re.fullmatch("[A-Za-z0-9]{9}", one) is None for one in ids):
        yield "messages[1].tool_calls[0].id: expected nine letters and digits"


def _problems_of_fields(request: Request, body: JSONObject, target: Target) -> Iterator[str]:
    stops = request.sampling.stop or ()
    if target.stop_limit is not None and len(stops) > target.stop_limit:
        yield f"stop: at most {target.stop_limit}"
    if target.fan_out and (request.sampling.n or 1) > 1:
        yield "n: expected 1"
    if request.output is not None and request.output.kind == "json_schema" and target.json_schema != "native":
        yield "response_format.type: `json_schema` is unknown"
    if request.output is not None and target.json_schema == "none":
        yield "response_format: unknown field"
    named = {"name"} if any(message.name for message in request.messages) else set[str]()
    for name in target.lacks:
        if _WIRE.get(name, name) in {*body, *named}:
            yield f"{name}: unknown field"


def _unknown(target: Target) -> set[str]:
    """Return the fields of `chat` that a server of these facts does not know."""
    unknown = {key for fact, keys in _KNOWN_BY.items() if not getattr(target, fact) for key in keys}
    if target.max_tokens_field is not None:
        unknown |= {"max_tokens", "max_completion_tokens"} - {target.max_tokens_field}
    told = target.thinking_field or {"effort": "reasoning_effort", "none": ""}.get(target.thinking, "thinking")
    unknown |= {"seed", "random_seed"} - {target.seed_field}
    return unknown | (_THINKING - {told})


def _has(value: JSON, key: str) -> bool:
    if isinstance(value, list):
        return any(_has(item, key) for item in value)
    return isinstance(value, dict) and (
        key in value or (key == _CACHE and any(_has(one, key) for one in value.values()))
    )


def _without(value: JSON, keys: set[str]) -> JSON:
    if isinstance(value, list):
        return [_without(item, keys & {_CACHE}) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _without(item, keys & {_CACHE}) for key, item in value.items() if key not in keys}


def _marked_wrongly(value: JSON) -> bool:
    """Whether there is a cache mark that is none."""
    if isinstance(value, list):
        return any(map(_marked_wrongly, value))
    if not isinstance(value, dict):
        return False
    return isinstance(value.get(_CACHE), str) or any(map(_marked_wrongly, value.values()))


def _lists_texts(message: JSONObject) -> bool:
    """Whether a message has its texts in a list, and nothing but texts."""
    content = message.get("content")
    return isinstance(content, list) and all(part["type"] == "text" for part in content)


def _shows(part: Part) -> bool:
    """Whether it is what a tool returned, with a picture in it."""
    return isinstance(part, ToolResult) and any(isinstance(inner, Image) for inner in part.content)


def _question(request: Request) -> str:
    texts = [
        part.text
        for message in request.messages
        if message.role == "user"
        for part in message.content
        if isinstance(part, Text)
    ]
    return texts[-1] if texts else "".join(str(text) for text in request.prompt.texts) if request.prompt else ""


def _answered(request: Request) -> bool:
    return any(isinstance(part, ToolResult) for message in request.messages for part in message.content)


def _counted(request: Request, target: Target) -> tuple[tuple[Part, ...], Finish]:
    most = request.sampling.max_tokens or 60
    numbers = [str(number) for number in range(1, min(most, 60) + 1)]
    if "7" in (request.sampling.stop or ()) and target.stops == "native":
        text = " ".join(numbers[:6])
        return (Text(text=text),), Finish(reason="stop_sequence", stop_sequence="7")
    return (Text(text=" ".join(numbers)),), Finish(reason="length" if most < 60 else "stop")


def _template(path: str, dialect: Dialect) -> str | None:
    for template in (dialect.path, dialect.stream_path):
        if template is not None and path == _EVERYWHERE.sub(MODEL, template):
            return template
    return None


def _refusal(dialect: Dialect, problem: str) -> ProbeResponse:
    return _json(*dialect.encode_error(Failure(kind="invalid_request", message=problem)))


def _json(status: int, body: JSON) -> ProbeResponse:
    return ProbeResponse(status=status, headers=(("content-type", "application/json"),), body=encode_json(body))
