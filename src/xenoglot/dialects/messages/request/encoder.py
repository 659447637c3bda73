"""Encodes canonical requests for a server of this dialect.

A request that came in this dialect is returned unchanged, unless the `Target` asks for something else; one from another
dialect is changed to follow the rules of this one, and each difference is a `Loss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.frequent_shapes import silent
from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.adapt_request import JSON_ONLY, as_turns
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, stateless
from xenoglot.codec.schemas import closed
from xenoglot.dialects.messages.context_management import encode_compaction
from xenoglot.dialects.messages.extras import NAME, with_rest, with_said
from xenoglot.dialects.messages.hosted.tools import encode_servers
from xenoglot.dialects.messages.part_encoder import PartEncoder, lone_text
from xenoglot.dialects.messages.reasoning_effort import encode_thinking
from xenoglot.dialects.messages.request.fields import OUTPUT, REQUEST, SAMPLING
from xenoglot.dialects.messages.request.turn_order import WireMessage, fold_system, mend
from xenoglot.dialects.messages.tools import drop_choice, encode_choice, encode_tools
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message, OutputFormat, Request, Sampling

MARK_LIMIT = 4
"""The most cache marks of one request (https://docs.claude.com/en/docs/build-with-claude/prompt-caching)."""

_TURNS = {"user": "user", "assistant": "assistant", "tool": "user", "system": "system", "developer": "system"}
"""The turn in which a message of each role is written."""


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return `request` as the body of a call.

    Raises:
        WireError: the dialect has no equivalent of a requested feature, and leaving it out would change the request:
            several candidates (pitfall-46), or a conversation that the server is to remember.
    """
    if request.sampling.n is not None and request.sampling.n > 1:
        raise WireError("$.n", "this model gives one answer per request; ask for 1, or send several requests")
    if request.previous is not None:
        raise stateless(request)
    request = as_turns(request, losses)
    if request.context_management is not None:
        request, losses = open_history(request, losses, NAME)
    return _RequestEncoder(request, losses, target).body()


class _RequestEncoder:
    def __init__(self, request: Request, losses: Losses, target: Target) -> None:
        self._request = request
        self._losses = losses
        self._target = target
        self._home = came_from(request, NAME)
        self._context = EncodeContext(losses, target, self._home)
        self._form = form_of(request.extra, NAME)
        self._parts = PartEncoder(losses, home=self._home, target=target)
        self._body: JSONObject = {"model": request.model}

    def body(self) -> JSONObject:
        request, losses, home = self._request, self._losses, self._home
        self._conversation()
        self._sampling(request.sampling)
        if request.tools or request.tool_choice is not None or request.parallel_tool_calls is not None or self._form:
            self._tools(request)
        if request.output is not None:
            self._output(request.output)
        self._rest()
        if request.thinking is not None:
            encode_thinking(request.thinking, self._body, losses, self._target, home=home)
        if not home and (self._parts.marks or request.tools):
            _limit_marks(self._body, losses)
        return with_rest(self._body, request.extra, "$", losses)

    def _tools(self, request: Request) -> None:
        losses, home = self._losses, self._home
        tools = encode_tools(request, self._parts, losses, home=home, strict=self._target.strict_tools)
        self._body |= encode_servers(request.tools, self._form, losses)
        if tools or self._form.get("tools") == "empty":
            self._body["tools"] = tools
        if tools or home:
            with_said(self._body, tool_choice=encode_choice(request, self._parts, losses, home=home))
        else:
            drop_choice(request, losses)

    def _conversation(self) -> None:
        messages = self._request.messages
        hoisted = 0
        while hoisted < len(messages) and _is_head(messages[hoisted]):
            hoisted += 1
        if hoisted and ((system := self._system(messages[:hoisted])) or self._home):
            self._body["system"] = system
        turns: list[WireMessage] = []
        for index in range(hoisted, len(messages)):
            turn = self._turn(messages[index], f"$.messages[{index}]")
            if turn is not None:
                turns.append(turn)
        if not self._target.inline_system:
            turns = fold_system(turns, self._losses)
        if not self._home:
            turns = mend(turns, self._losses, prefill=self._target.prefill == "native")
        self._body["messages"] = [turn.encode() for turn in turns]

    def _system(self, messages: Sequence[Message]) -> str | list[JSONObject]:
        if len(messages) == 1 and not self._home and (lone := self._parts.plain.lone(messages[0])) is not None:
            return lone
        blocks: list[JSONObject] = []
        for index, message in enumerate(messages):
            where = f"$.messages[{index}]"
            self._report(message, where)
            self._losses.carry(message.extra, where, NAME)
            blocks += self._parts.blocks(message.content, f"{where}.content", "system")
        spelled = len(messages) == 1 and (not self._home or form_of(messages[0].extra, NAME).get("content") == "string")
        text = lone_text(blocks, spelled=spelled)
        return blocks if text is None else text[0]

    def _turn(self, message: Message, where: str) -> WireMessage | None:
        if (lone := self._parts.plain.lone(message)) is not None:
            listed = self._home and silent(message.extra, NAME)
            return WireMessage(
                message.role, [{"type": "text", "text": lone}], where, None, None if listed else "string"
            )
        self._report(message, where)
        role = _TURNS[message.role]
        blocks = self._parts.blocks(message.content, f"{where}.content", role)
        fields = with_rest({}, message.extra, where, self._losses)
        if not blocks and (message.content or not self._home) and not fields:
            if message.content:
                self._losses.dropped(where, "message", "no content is left")
            return None
        spelled = form_of(message.extra, NAME).get("content") if self._home else "string"
        return WireMessage(role, blocks, where, fields, spelled)

    def _report(self, message: Message, where: str) -> None:
        if message.role == "developer":
            self._losses.approximated(where, "role", "`developer` is written as `system`")
        if message.name is not None:
            self._losses.dropped(where, "name", "a message of the dialect has none")
        if message.id is not None:
            self._losses.dropped(where, "id", "a message of the dialect has none")

    def _sampling(self, sampling: Sampling) -> None:
        if sampling.max_tokens is None and not self._home:  # it may be missing where tokens are only counted
            wanted = self._target.default_max_tokens
            sampling = replace(sampling, max_tokens=wanted)
            self._losses.approximated("$.sampling", "max_tokens", f"the dialect requires it; {wanted} is written")
        SAMPLING.write(sampling, self._body, self._form, self._context)
        if not self._home:
            self._fit_sampling()

    def _fit_sampling(self) -> None:
        """Keep what servers take: of two ways to narrow the draw all newer models refuse both at once (pitfall-22)."""
        body = self._body
        if "temperature" in body and "top_p" in body:
            lesser = "temperature" if body["temperature"] == 1 != body["top_p"] else "top_p"
            if body.pop(lesser) != 1:
                self._losses.dropped("$.sampling", lesser, "not allowed with `temperature`")

    def _output(self, output: OutputFormat) -> None:
        losses, schema = self._losses, output.schema
        if output.kind == "text":
            return
        if not isinstance(schema, dict):
            self._ask_for_json()
            return
        if not self._home and (known := closed(schema)) != schema:
            schema = known
            losses.approximated("$.output", "schema", "its objects are closed, its bounds are in descriptions")
        own = with_rest({"type": "json_schema", "schema": schema}, output.extra, "$.output", losses)
        if self._form.get("output") == "output_format":
            self._body["output_format"] = own
        else:
            self._body["output_config"] = {"format": own}
        OUTPUT.note_unsupported(output, losses)
        if output.strict is not None:
            losses.approximated("$.output", "strict", "the dialect holds to every schema strictly")

    def _ask_for_json(self) -> None:
        """Add a line to the system prompt, after its cache marks: the dialect has schemas, and no mode for any JSON."""
        self._losses.approximated("$.output", "kind", "requested at the end of the system prompt, not enforced")
        said = self._body.get("system")
        if isinstance(said, list):
            self._body["system"] = [*said, {"type": "text", "text": JSON_ONLY}]
        else:
            self._body["system"] = f"{said}\n\n{JSON_ONLY}" if said else JSON_ONLY

    def _rest(self) -> None:
        request, body = self._request, self._body
        if request.stream:
            body["stream"] = True
        elif self._form.get("stream") is False:
            body["stream"] = False
        if request.user is not None:
            body["metadata"] = {"user_id": request.user}
        REQUEST.write(request, body, self._form, self._context)
        if request.context_management is not None:
            body.update(encode_compaction(request, self._losses))


def _is_head(message: Message) -> bool:
    """Whether a message is hoisted to `system` if all before it are; one that stood among the messages is not."""
    return message.role in ("system", "developer") and not form_of(message.extra, NAME).get("inline")


def _limit_marks(body: JSONObject, losses: Losses) -> None:
    """Take away the first of the cache marks where there are more than allowed: the later, the longer the prefix."""
    marked = _marked(body)
    spare = len(marked) + ("cache_control" in body) - MARK_LIMIT
    tools = sum("cache_control" in tool for tool in body.get("tools", ()))
    for place, block in enumerate(marked[: max(0, spare)]):
        del block["cache_control"]
        where = "$.tools" if place < tools else "$.messages"
        losses.dropped(where, "cache", f"the dialect allows {MARK_LIMIT} marks")


def _marked(body: JSONObject) -> list[JSONObject]:
    """Return all that a cache mark stands on, in the order of the prompt: tools first."""
    marked = [tool for tool in body.get("tools", ()) if "cache_control" in tool]
    contents: list[JSON] = [body.get("system"), *(message.get("content") for message in body["messages"])]
    for content in contents:
        for block in content if isinstance(content, list) else ():
            inner = block.get("content")
            if isinstance(inner, list):
                marked += [part for part in inner if "cache_control" in part]
            if "cache_control" in block:
                marked.append(block)
    return marked
