"""Adapts a request to what a target accepts: ids of calls, images, system turns, prompts without turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.opaque import kind_of, name_of
from xenoglot.codec.requests.call_ids import nine_character_ids
from xenoglot.codec.requests.hosted_tools import hosted_kinds, is_own
from xenoglot.codec.requests.provider_tools import as_functions
from xenoglot.errors import WireError
from xenoglot.model.content import File, Image, Nested, Opaque, Remote, Text, ToolResult
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import Message, Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TypeGuard

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.content import HostedKind, Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import OutputFormat, Prompt, Request, RequestTool


UNSEEN = "[a picture that this model cannot see]"
UNFETCHED = "[a picture that could not be fetched]"


def without_pictures(messages: Sequence[Message], target: Target, losses: Losses) -> tuple[Message, ...]:
    """Return the messages, each image that the server cannot take replaced by a text that states this."""
    return tuple(
        replace(message, content=_parts(message.content, f"$.messages[{index}].content", target, losses))
        for index, message in enumerate(messages)
    )


def _parts(parts: Sequence[Part], where: str, target: Target, losses: Losses) -> tuple[Part, ...]:
    return tuple(_part(part, f"{where}[{index}]", target, losses) for index, part in enumerate(parts))


def _part(part: Part, where: str, target: Target, losses: Losses) -> Part:
    match part:
        case Image() if not target.images:
            losses.dropped(where, "image", "the model accepts no images; a text replaces it")
            return Text(text=UNSEEN, cache=part.cache)
        case Image(source=Remote()) if not target.image_urls:
            losses.dropped(where, "image", "the server fetches no URL: send the data; a text replaces it")
            return Text(text=UNFETCHED, cache=part.cache)
        case ToolResult():
            return replace(part, content=_parts(part.content, f"{where}.content", target, losses))
        case File(source=Nested(parts=inner) as source):
            return replace(part, source=replace(source, parts=_parts(inner, f"{where}.source.parts", target, losses)))
        case _:
            return part


_UNKNOWN = "the server does not take it"

JSON_ONLY = "Answer with JSON alone."
"""The instruction in place of a setting for JSON."""


EXECUTORS: dict[HostedKind, str] = {
    "web_search": "`[tools.web_search]`",
    "web_fetch": "`[tools.web_fetch]`",
    "code_execution": "`[tools.code_execution]`",
    "mcp": "`[tools.mcp.servers]`",
}
"""The settings of a gateway by which it runs a tool itself."""


def encode_fitted(dialect: Dialect, request: Request, target: Target, losses: Losses) -> JSONObject:
    """Return the body that asks a server of `dialect` and `target` for `request`, adapted to what it accepts.

    Raises:
        WireError: the dialect cannot express the request, or the losses leave nothing of the prompt.
    """
    request = fitted(request, dialect.name, target, losses, dialect.hosted_tools)
    body = dialect.encode_request(request, losses, target)
    if len(losses):
        check_prompt(request, losses)
    return body | target.body_fields if target.body_fields else body


def check_prompt(request: Request, losses: Losses) -> None:
    """Refuse a request if its encoding, which recorded `losses`, dropped the whole prompt or the whole last user turn.

    The answer would be one to another prompt. Turns that were empty before are not refused.

    Raises:
        WireError: the path is that of the first dropped part.
    """
    turns = [
        (index, message)
        for index, message in enumerate(request.messages)
        if message.content and message.role not in ("system", "developer")
    ]
    if not turns or not _is_lost(*turns[-1], losses):
        return
    if turns[-1][1].role != "assistant" or all(_is_lost(index, message, losses) for index, message in turns):
        where, what, why = _first_lost(*turns[-1], losses)
        problem = f"the target model would get nothing of this turn: the {what} is left out, because {why}"
        raise WireError(where, problem)


def _is_lost(index: int, message: Message, losses: Losses) -> bool:
    """Return whether something of a message was dropped, and nothing of it is left."""
    lost = False
    for number, part in enumerate(message.content):
        if losses.has_dropped(_path(index, number), name_of(part)):
            lost = True
        elif not (isinstance(part, Text) and not part.text.strip()):
            return False
    return lost


def _first_lost(index: int, message: Message, losses: Losses) -> tuple[str, str, str]:
    paths = [losses.origin(_path(index, number)) for number in range(len(message.content))]
    names = dict(zip(paths, map(name_of, message.content), strict=True))
    return next(
        (one.where, one.what, one.why) for one in losses if one.how == "dropped" and names.get(one.where) == one.what
    )


def _path(index: int, number: int) -> str:
    return f"$.messages[{index}].content[{number}]"


def fitted(
    request: Request, dialect: str, target: Target, losses: Losses, hosted: Collection[HostedKind] = ()
) -> Request:
    """Return `request` as the server after, of `dialect` and `target`, can take it; what changes stands in `losses`.

    `hosted` as for `check_tools`.

    Raises:
        WireError: all the tools are such that another server would run.
    """
    if request.tools:
        check_tools(request, dialect, hosted_kinds(hosted, target))
        request = _choosable(request, dialect, hosted_kinds(hosted, target), losses)
    request = as_functions(request, losses, dialect)
    if not target.tools:
        request = _without_tools(request, losses)
    request = _choice(request, target, losses)
    if not target.parallel_tool_calls and request.parallel_tool_calls is not None:
        losses.dropped("$", "parallel_tool_calls", _UNKNOWN)
        request = replace(request, parallel_tool_calls=None)
    if target.lacks:
        request = _without_fields(request, target, losses)
    if not (target.images and target.image_urls):
        request = replace(request, messages=without_pictures(request.messages, target, losses))
    if target.json_schema != "native" and request.output is not None:
        request = _output(request, request.output, target, losses)
    if target.tool_id == "nine":
        request = replace(request, messages=nine_character_ids(request.messages, losses))
    return request


def check_tools(request: Request, dialect: str, hosted: Collection[HostedKind] = ()) -> None:
    """Refuse a request whose every tool only a server of another dialect than `dialect` runs (pitfall-30).

    Next to tools of the client such a tool is a loss, for the answer may do without it. Alone, or forced by
    `tool_choice`, it is the point of the request: an answer without a search would pass for one with it. `hosted` are
    the kinds of tools of providers that the dialect has.

    Raises:
        WireError: it is such a request.
    """
    others = [tool for tool in request.tools if type(tool) is not Tool and _is_of_others(tool, dialect, hosted)]
    choice = request.tool_choice
    named = choice.names if choice is not None and choice.mode == "required" else ()
    forced = bool(named) and _left_out(request, others).issuperset(named)
    if others and (forced or len(others) == len(request.tools)):
        kinds = ", ".join(f"`{kind_of(tool)}`" for tool in others)
        home = next((tool.dialect for tool in others if isinstance(tool, Opaque)), None)
        asked = "a model whose provider runs it" if home is None else f"a server of {home}"
        settings = [EXECUTORS[tool.kind] for tool in others if isinstance(tool, HostedTool) and tool.kind in EXECUTORS]
        run = f", have a gateway run it ({', '.join(dict.fromkeys(settings))})" if settings else ""
        raise WireError("$.tools", f"the target model cannot run {kinds}; ask {asked}{run}, or leave it out")


def _left_out(request: Request, others: Sequence[Opaque | HostedTool]) -> set[str]:
    """Return the names, which are kinds, of hosted tools that are left out, without those that functions have too."""
    functions = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    return {str(tool.kind) for tool in others if isinstance(tool, HostedTool)} - functions


def _choosable(request: Request, dialect: str, hosted: Collection[HostedKind], losses: Losses) -> Request:
    """Return the request with a choice among the tools that are sent."""
    choice = request.tool_choice
    if choice is None or not choice.names:
        return request
    others = [tool for tool in request.tools if type(tool) is not Tool and _is_of_others(tool, dialect, hosted)]
    gone = _left_out(request, others).intersection(choice.names)
    if not gone:
        return request
    for name in sorted(gone):
        losses.dropped("$.tool_choice", name, "the tool is left out")
    names = tuple(name for name in choice.names if name not in gone)
    return replace(request, tool_choice=replace(choice, names=names) if names else None)


def _is_of_others(tool: RequestTool, dialect: str, hosted: Collection[HostedKind]) -> TypeGuard[Opaque | HostedTool]:
    if isinstance(tool, HostedTool):
        return tool.kind not in hosted and not is_own(tool, dialect)
    return isinstance(tool, Opaque) and tool.dialect != dialect


def _choice(request: Request, target: Target, losses: Losses) -> Request:
    choice = request.tool_choice
    if choice is None or choice.mode != "required" or target.forced_tools:
        return request
    losses.approximated("$.tool_choice", "mode", "the server takes only `auto` and `none`")
    return replace(request, tool_choice=ToolChoice(mode="auto"))


def _without_tools(request: Request, losses: Losses) -> Request:
    for index, tool in enumerate(request.tools):
        kind = tool.kind if isinstance(tool, Tool) else kind_of(tool)
        losses.dropped(f"$.tools[{index}]", kind, "the target model supports no tools")
    return replace(request, tools=(), tool_choice=None, parallel_tool_calls=None)


def _without_fields(request: Request, target: Target, losses: Losses) -> Request:
    """Return the request without the fields that the server lacks."""
    if "name" in target.lacks:
        request = _without_names(request, losses)
    of_sampling = [name for name in target.lacks if getattr(request.sampling, name, None) is not None]
    of_request = [name for name in target.lacks if name != "name" and getattr(request, name, None) is not None]
    for where, names in (("$.sampling", of_sampling), ("$", of_request)):
        for name in names:
            losses.dropped(where, name, _UNKNOWN)
    if of_sampling:
        request = replace(request, sampling=replace(request.sampling, **dict.fromkeys(of_sampling)))
    return replace(request, **dict.fromkeys(of_request)) if of_request else request


def _without_names(request: Request, losses: Losses) -> Request:
    for index, message in enumerate(request.messages):
        if message.name is not None:
            losses.dropped(f"$.messages[{index}]", "name", _UNKNOWN)
    return replace(request, messages=tuple(replace(message, name=None) for message in request.messages))


def _output(request: Request, output: OutputFormat, target: Target, losses: Losses) -> Request:
    """Return the request, with its schema in the prompt if the server has no setting for one."""
    if output.kind == "text" or (output.kind == "json" and target.json_schema == "object"):
        return request
    told = JSON_ONLY
    if output.kind == "json_schema":
        told = f"Answer with JSON alone, in the form of this JSON Schema:\n{to_text(output.schema)}"
    said = _said(request, told)
    if said is None:
        losses.dropped("$", "output", "the server enforces no schema, and there is no user turn to describe it in")
        return replace(request, output=None)
    what = "schema" if output.kind == "json_schema" else "kind"
    losses.approximated("$.output", what, "described in the last user turn, and not enforced")
    kept = replace(output, kind="json", schema=None, name=None, description=None, strict=None, extra=None)
    return replace(said, output=kept if target.json_schema == "object" else None)


def _said(request: Request, text: str) -> Request | None:
    """Return the request with `text` at the end of its last turn of the user; `None` if there is none."""
    messages = list(request.messages)
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message.role == "user":
            messages[index] = replace(message, content=(*message.content, Text(text=text)))
            return replace(request, messages=tuple(messages))
    return None


def fold_system(messages: Sequence[Message], losses: Losses) -> tuple[tuple[Message, ...], Losses]:
    """Return the messages with each system turn after the first others folded into the next user turn (pitfall-3).

    The returned losses record the paths of `messages` as they were.
    """
    folded: list[Message] = []
    waiting: list[tuple[str, Part]] = []
    places: dict[str, str | None] = {}
    leading = True
    for index, message in enumerate(messages):
        where, system = f"$.messages[{index}]", message.role in ("system", "developer")
        parts = [(f"{where}.content[{number}]", part) for number, part in enumerate(message.content)]
        if system and not leading:
            losses.approximated(where, "role", "folded into the next user turn")
            waiting += parts
            continue
        if len(folded) < index:
            places[f"$.messages[{len(folded)}]"] = where
        if waiting and message.role == "user":
            results = [one for one in parts if isinstance(one[1], ToolResult)]
            others = [one for one in parts if not isinstance(one[1], ToolResult)]
            folded.append(_turn(replace(message, content=()), [*results, *waiting, *others], len(folded), places))
            waiting = []
        else:
            folded.append(message)
        leading = leading and system
    if waiting:
        folded.append(_turn(Message(role="user"), waiting, len(folded), places))
    return tuple(folded), losses.moved(places) if places else losses


def _turn(message: Message, parts: Sequence[tuple[str, Part]], index: int, places: dict[str, str | None]) -> Message:
    """Return a message with these parts; `places` gets where they were, by their paths in message `index`."""
    places |= {f"$.messages[{index}].content[{number}]": stood for number, (stood, _) in enumerate(parts)}
    return replace(message, content=tuple(part for _, part in parts))


def as_turns(request: Request, losses: Losses) -> Request:
    """Return `request` with its prompt, if it has one, as a turn of the user.

    `echo` is left to the encoder of the answer, because the client's dialect has the prompt.

    Raises:
        WireError: the prompt cannot be written as turns: token ids, several texts at once, a text around a gap, or a
            question about the prompt itself.
    """
    prompt = request.prompt
    if prompt is None:
        return request
    if prompt.suffix:
        raise WireError(
            "$.suffix", "the target model takes chat messages and cannot complete text before a suffix; leave it out"
        )
    if len(prompt.texts) != 1:
        raise WireError("$.prompt", f"the target model takes one prompt at a time, found {len(prompt.texts)}")
    _check_asked(request, prompt)
    (text,) = prompt.texts
    if not isinstance(text, str):
        raise WireError("$.prompt", "the target model does not accept token ids; send the text")
    if not text.strip():
        raise WireError("$.prompt", "the target model takes chat messages, and the prompt is empty; send a text")
    losses.emulated("$.prompt", "prompt", "written as a turn of the user")
    turn = Message(role="user", content=(Text(text=text),))
    return replace(request, prompt=None, messages=(*request.messages, turn))


def _check_asked(request: Request, prompt: Prompt) -> None:
    """Refuse options that only a model that continues the text itself supports."""
    sampling = request.sampling
    if prompt.echo and sampling.logprobs:
        raise WireError("$.echo", "the target model takes chat messages and returns no log probabilities of the prompt")
    if prompt.best_of is not None and prompt.best_of > (sampling.n or 1):
        raise WireError("$.best_of", "the target model returns every answer that it generates; set `n` instead")
    if sampling.max_tokens == 0:
        raise WireError("$.max_tokens", "must be at least 1: the target model takes chat messages")
