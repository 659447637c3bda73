"""What the wires themselves allow: the order and shape of chat chunks and of Messages events, as tables, walked.

Sources: `ChatCompletionChunk` of openai-python (https://platform.openai.com/docs/api-reference/chat-streaming) and
https://docs.claude.com/en/docs/build-with-claude/streaming, as read by the accumulators of the official SDKs.
"""

from collections.abc import Callable, Iterable

from tests.laws.completions_grammar import check_completions
from tests.laws.converse_grammar import check_converse
from tests.laws.gemini_grammar import check_gemini
from tests.laws.interactions_grammar import check_interactions
from tests.laws.llama_stack_grammar import check_llama_stack, check_llama_stack_completion
from tests.laws.ollama_grammar import check_chat as check_ollama
from tests.laws.ollama_grammar import check_generate as check_ollama_generate
from tests.laws.responses_grammar import check_responses
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json
from xenoglot.model.json import JSON, JSONObject


class UnlawfulError(AssertionError):
    """An event of the wire stands where it may not, or lacks what it must have."""


def _walk(table: dict[str, dict[str, str]], state: str, kind: str) -> str:
    following = table[state].get(kind)
    if following is None:
        raise UnlawfulError(f"`{kind}` while `{state}`: expected one of {sorted(table[state])}")
    return following


def _demand(holds: object, problem: str) -> None:
    if not holds:
        raise UnlawfulError(problem)


# Messages

MESSAGES_ORDER = {
    "start": {"message_start": "between", "error": "failed", "ping": "start"},
    "between": {
        "content_block_start": "inside",
        "message_delta": "ending",
        "ping": "between",
        "error": "failed",
    },
    "inside": {"content_block_delta": "inside", "content_block_stop": "between", "ping": "inside", "error": "failed"},
    "ending": {"message_stop": "done", "ping": "ending", "error": "failed"},
    "done": {},
    "failed": {},
}
"""State -> event -> next state."""

MESSAGES_FIELDS = {
    "message_start": {"message"},
    "content_block_start": {"index", "content_block"},
    "content_block_delta": {"index", "delta"},
    "content_block_stop": {"index"},
    "message_delta": {"delta", "usage"},
    "message_stop": set(),
    "ping": set(),
    "error": {"error"},
}
"""Event -> fields it must have beside `type`; other fields are allowed."""

MESSAGE_FIELDS = {"id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "usage"}

MESSAGES_DELTAS = {
    "text_delta": {"text"},
    "citations_delta": {"text"},
    "thinking_delta": {"thinking"},
    "signature_delta": {"thinking"},
    "input_json_delta": {"tool_use", "server_tool_use", "mcp_tool_use"},
    "compaction_delta": {"compaction"},
}
"""Delta -> blocks it may stand in."""

MESSAGES_BLOCKS: dict[str, dict[str, JSON]] = {
    "text": {"text": ""},
    "thinking": {"thinking": ""},
    "tool_use": {"input": {}},
}
"""Block -> fields that are empty at its start, for the deltas fill them."""


def check_messages(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of Messages events; return the state it ended in, `done` or `failed`."""
    state, index, block = "start", -1, ""
    for event in events:
        _demand(event.comment is None, "a comment is no proof of life here: `ping` is")
        data = decode_json(event.data)
        kind = data["type"]
        _demand(event.event == kind, f"the event is named `{event.event}`, its data `{kind}`")
        state = _walk(MESSAGES_ORDER, state, kind)
        _demand(data.keys() >= MESSAGES_FIELDS[kind], f"`{kind}` lacks {MESSAGES_FIELDS[kind] - data.keys()}")
        match kind:
            case "message_start":
                _check_message(data["message"])
            case "content_block_start":
                index, block = index + 1, data["content_block"]["type"]
                for name, empty in MESSAGES_BLOCKS.get(block, {}).items():
                    _demand(data["content_block"][name] == empty, f"`{name}` of a `{block}` is not empty at its start")
            case "content_block_delta":
                delta = data["delta"]["type"]
                _demand(block in MESSAGES_DELTAS.get(delta, {block}), f"`{delta}` in a `{block}`")
            case "message_delta":
                _demand(type(data["usage"].get("output_tokens")) is int, "`message_delta` has no `output_tokens`")
                _demand("stop_reason" in data["delta"], "`message_delta` has no `stop_reason`")
            case "error":
                _demand(data["error"].keys() >= {"type", "message"}, "an `error` has a `type` and a `message`")
            case _:
                pass  # `ping` and the ends say nothing more
        if "index" in data:
            _demand(data["index"] == index, f"`{kind}` of block {data['index']} while {index} is open")
    _demand(state in {"done", "failed"}, f"the stream ended while `{state}`")
    return state


def _check_message(message: JSONObject) -> None:
    _demand(message.keys() >= MESSAGE_FIELDS, f"`message` lacks {MESSAGE_FIELDS - message.keys()}")
    fixed = {name: message[name] for name in ("type", "role", "content", "stop_reason", "stop_sequence")}
    expected: JSONObject = {
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    _demand(fixed == expected, f"`message` starts as {fixed}")
    counts = [message["usage"].get(name) for name in ("input_tokens", "output_tokens")]
    _demand(all(type(count) is int and count >= 0 for count in counts), f"`usage` starts as {message['usage']}")


# Chat

CHAT_ORDER = {
    "start": {"chunk": "open", "error": "failed", "comment": "start"},
    "open": {"chunk": "open", "usage": "counted", "done": "done", "error": "failed", "comment": "open"},
    "counted": {"done": "done", "error": "failed", "comment": "counted"},
    "done": {},
    "failed": {},
}
"""State of the stream -> what came -> next state. The usage comes last, in a chunk without choices."""

CHOICE_ORDER = {
    "new": {"role": "open"},
    "open": {"delta": "open", "finish": "closed"},
    "closed": {},
}
"""State of one choice -> what came -> next state. The role is said once, first; nothing follows the finish."""

CHUNK_FIELDS = {"id", "object", "created", "model", "choices"}

SAME_IN_ALL = ("id", "object", "created", "model")

FINISH_REASONS = {"stop", "length", "tool_calls", "content_filter", "function_call"}


def check_chat(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of chat chunks; return the state it ended in, `done` or `failed`."""
    state = "start"
    first: JSONObject = {}
    choices: dict[int, _Choice] = {}
    for event in events:
        _demand(event.event is None, f"chunks have no name: `{event.event}`")
        data = {} if event.comment is not None or event.data == b"[DONE]" else decode_json(event.data)
        state = _walk(CHAT_ORDER, state, _kind(event, data))
        if event.comment is not None or event.data == b"[DONE]":
            continue
        if "error" in data:
            _demand(data["error"].keys() >= {"message", "type", "param", "code"}, "an `error` has four fields")
            continue
        _demand(data.keys() >= CHUNK_FIELDS, f"a chunk lacks {CHUNK_FIELDS - data.keys()}")
        first = first or data
        _demand(all(data[name] == first[name] for name in SAME_IN_ALL), "chunks of two answers")
        _demand(data["object"] == "chat.completion.chunk", f"a chunk is no `{data['object']}`")
        for choice in data["choices"]:
            choices.setdefault(choice["index"], _Choice()).feed(choice)
    _demand(state in {"done", "failed"}, f"the stream ended while `{state}`")
    if state == "done":
        unfinished = sorted(index for index, choice in choices.items() if choice.state != "closed")
        _demand(choices and not unfinished, f"`[DONE]` without a finish of choices {unfinished}")
    return state


def _kind(event: ServerSentEvent, data: JSONObject) -> str:
    if event.comment is not None:
        return "comment"
    if event.data == b"[DONE]":
        return "done"
    if "error" in data:
        return "error"
    return "chunk" if data["choices"] or data.get("usage") is None else "usage"


class _Choice:
    def __init__(self) -> None:
        self.state = "new"
        self._calls = 0
        self._role = False

    def feed(self, choice: JSONObject) -> None:
        delta = choice["delta"]
        if "role" in delta:
            _demand(delta["role"] == "assistant", f"the role is `{delta['role']}`")
            self.state = _walk(CHOICE_ORDER, self.state, "role")
        if delta.keys() - {"role"}:
            self.state = _walk(CHOICE_ORDER, self.state, "delta")
        for call in delta.get("tool_calls", ()):
            self._feed_call(call)
        finish = choice.get("finish_reason")
        if finish is not None:
            _demand(finish in FINISH_REASONS, f"`finish_reason` is `{finish}`")
            self.state = _walk(CHOICE_ORDER, self.state, "finish")

    def _feed_call(self, call: JSONObject) -> None:
        body: JSONObject = call.get("function", call.get("custom")) or {}
        if call["index"] == self._calls:
            _demand(call.keys() >= {"id", "type"} and "name" in body, "a call begins with its id, type and name")
            _demand(call["type"] in call, f"a call of type `{call['type']}` has no `{call['type']}`")
            self._calls += 1
        else:
            _demand(call["index"] == self._calls - 1, f"call {call['index']} grows while {self._calls - 1} is open")
            _demand(not call.keys() & {"id", "type"} and "name" not in body, "a call is named twice")


WIRE_GRAMMARS: dict[str, Callable[[Iterable[ServerSentEvent]], str]] = {
    "chat": check_chat,
    "completions": check_completions,
    "converse": check_converse,
    "gemini": check_gemini,
    "interactions": check_interactions,
    "llama_stack": check_llama_stack,
    "llama_stack_completion": check_llama_stack_completion,
    "messages": check_messages,
    "ollama": check_ollama,
    "ollama_generate": check_ollama_generate,
    "responses": check_responses,
}
"""Dialect -> the check of its streams."""
