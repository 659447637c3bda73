"""What the wire of Responses allows: the life of an answer, of its items and of their contents, as tables, walked.

Sources: `openai/types/responses/response_stream_event.py`, the accumulator `openai/lib/streaming/responses`, and
https://www.openresponses.org/specification#streaming (pitfall-111, pitfall-112, pitfall-113).
"""

from collections.abc import Iterable

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json
from xenoglot.model.json import JSONObject

ORDER = {
    "start": {"comment": "start", "response.created": "created"},
    "created": {"response.queued": "created", "response.in_progress": "between"},
    "between": {
        "response.in_progress": "between",
        "response.output_item.added": "inside",
        "other": "between",
        "response.completed": "done",
        "response.incomplete": "done",
        "response.failed": "failed",
    },
    "inside": {
        "response.in_progress": "inside",
        "response.output_item.done": "between",
        "other": "inside",
        "response.failed": "failed",
    },
    "done": {},
    "failed": {},
}
"""State of the stream -> event -> next state. `other` is any event about an item, or of an unknown kind."""

WORDS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text"}
"""A content that grows -> where it keeps its words."""

PARTS = {
    "closed": {"added": "open"},
    "open": {"delta": "open", "annotation.added": "open", "words": "told"},
    "told": {"done": "closed"},
}
"""State of a content or a summary -> what came -> next state: `words` is that all its words were told."""

ENDED = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "failed": "response.failed",
}
"""Status of an answer that is over -> the event that tells of it."""

REQUIRED = {
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
}
"""`ResponseResource` of Open Responses (pitfall-83)."""

NULLABLE = {
    "completed_at",
    "incomplete_details",
    "previous_response_id",
    "instructions",
    "error",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "safety_identifier",
    "prompt_cache_key",
}


class UnlawfulResponseError(AssertionError):
    """An event of the wire stands where it may not, or lacks what it must have."""


def demand(holds: object, problem: str) -> None:
    if not holds:
        raise UnlawfulResponseError(problem)


def step(table: dict[str, dict[str, str]], state: str, kind: str) -> str:
    following = table[state].get(kind)
    if following is None:
        raise UnlawfulResponseError(f"`{kind}` while `{state}`: expected one of {sorted(table[state])}")
    return following


def check_whole(answer: JSONObject) -> None:
    """Demand that an answer of ours has all that the schema requires."""
    demand(answer.keys() >= REQUIRED, f"the answer lacks {REQUIRED - answer.keys()}")
    nulls = {name for name in REQUIRED - NULLABLE if answer[name] is None}
    demand(not nulls, f"null where the schema allows none: {nulls}")


def check_responses(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream; return the state it ended in, `done` or `failed`."""
    walk = _Stream()
    for event in events:
        walk.feed(event)
    demand(walk.state in {"done", "failed"}, f"the stream ended while `{walk.state}`")
    return walk.state


class _Stream:
    def __init__(self) -> None:
        self.state = "start"
        self._number = 0
        self._first: JSONObject = {}
        self._output: list[JSONObject] = []
        self._item = _Item({}, 0)

    def feed(self, event: ServerSentEvent) -> None:
        if event.comment is not None:
            self.state = step(ORDER, self.state, "comment")
            return
        data = decode_json(event.data)
        kind = data["type"]
        demand(event.event == kind, f"the event is named `{event.event}`, its data `{kind}`")
        demand(data["sequence_number"] == self._number, f"event {self._number} says it is {data['sequence_number']}")
        self._number += 1
        known = any(kind in following for following in ORDER.values())
        before, self.state = self.state, step(ORDER, self.state, kind if known else "other")
        if "response" in data:
            self._answer(kind, data["response"])
        elif known:
            self._edge(kind, data)
        elif before == "inside":
            self._item.feed(kind.removeprefix("response."), data)

    def _answer(self, kind: str, answer: JSONObject) -> None:
        self._first = self._first or answer
        for name in ("id", "object", "created_at", "model"):
            demand(name not in self._first or answer.get(name) == self._first[name], f"`{name}` changed")
        over = kind in ENDED.values()
        output, count = answer.get("output", self._output), len(self._output)
        growing = 1 if self.state == "inside" else 0  # the items so far, the open one last: readers start over from it
        demand(output[:count] == self._output, f"`{kind}` tells another output than was done")
        demand(
            len(output) in ({count} if over else {count, count + growing}), f"`{kind}` tells items that are not there"
        )
        if "status" in answer:
            wanted = ENDED.get(answer["status"])
            demand(wanted == kind if over else wanted is None, f"`{kind}` of an answer that is `{answer['status']}`")
        if kind == "response.failed":
            demand(answer["error"].keys() >= {"code", "message"}, "an `error` has a `code` and a `message`")

    def _edge(self, kind: str, data: JSONObject) -> None:
        index, item = len(self._output), data["item"]
        demand(data["output_index"] == index, f"`{kind}` of item {data['output_index']}, expected {index}")
        if kind == "response.output_item.added":
            self._item = _Item(item, index)
        else:
            self._item.close(item)
            self._output.append(item)


class _Item:
    """One item, from where it is added."""

    def __init__(self, item: JSONObject, index: int) -> None:
        self._added = item
        self._index = index
        self._kind = item.get("type", "message")
        self._id: str | None = item.get("id")
        self._parts: dict[str, list[JSONObject]] = {"content": [], "summary": []}
        self._states = {"content": "closed", "summary": "closed"}
        self._words = {"content": "", "summary": ""}
        self._annotations: list[JSONObject] = []
        self._arguments: str | None = None
        self._body = ""
        if item:
            empty = {"message": "content", "reasoning": "summary"}.get(self._kind)
            demand(empty is None or item[empty] == [], f"a `{self._kind}` is added with a `{empty}`")
            demand(item.get("status") in (None, "in_progress") or empty is None, "an item is added as over")

    def feed(self, kind: str, data: JSONObject) -> None:
        if "output_index" in data:
            demand(data["output_index"] == self._index, f"`{kind}` of another item")
        if "item_id" in data:
            self._id = self._id or data["item_id"]
            demand(data["item_id"] == self._id, f"`{kind}` of another item")
        what, _, happened = kind.rpartition(".")
        match what:
            case "content_part" | "output_text" | "refusal" | "reasoning_text" | "output_text.annotation":
                self._part("content", "content_index", what, happened, data)
            case "reasoning_summary_part" | "reasoning_summary_text":
                self._part("summary", "summary_index", what, happened, data)
            case "function_call_arguments" | "custom_tool_call_input":
                demand(self._arguments is None, "arguments after their end")
                if happened == "delta":
                    self._body += data["delta"]
                else:
                    self._arguments = data["arguments" if what == "function_call_arguments" else "input"]
            case _:
                pass  # an event of which the tables tell nothing

    def _part(self, side: str, place: str, what: str, happened: str, data: JSONObject) -> None:
        is_part = what in ("content_part", "reasoning_summary_part")
        name = happened if is_part or happened == "delta" else "words"
        name = "annotation.added" if what == "output_text.annotation" else name
        if name == "done" and data["part"].get("type") not in (*WORDS, "summary_text"):
            name, self._states[side] = "done", "told"  # a content of which nobody knows how it grows
        self._states[side] = step(PARTS, self._states[side], name)
        count = len(self._parts[side])
        demand(data[place] == count, f"`{what}.{happened}` of {side} {data[place]}, expected {count}")
        match name:
            case "added":
                self._words[side], self._annotations = "", []
            case "delta":
                self._words[side] += data["delta"]
                demand(what != "output_text" or "logprobs" in data, "a delta of text has `logprobs`")
            case "annotation.added":
                demand(data["annotation_index"] == len(self._annotations), "annotations out of order")
                self._annotations.append(data["annotation"])
            case "words":
                told = data["refusal" if what == "refusal" else "text"]
                demand(told == self._words[side], f"the end tells other words than the deltas: {told}")
            case "done":
                self._done(side, data["part"])
            case _:
                pass

    def _done(self, side: str, part: JSONObject) -> None:
        self._parts[side].append(part)
        key = WORDS.get(part.get("type", ""), "text" if side == "summary" else None)
        if key is not None:
            demand(part[key] == self._words[side], "a part ends with other words than its deltas")

    def close(self, item: JSONObject) -> None:
        demand(set(self._states.values()) == {"closed"}, "an item is done while a part of it is open")
        for name in ("type", "id", "call_id", "name", "role"):
            demand(item.get(name) == self._added.get(name), f"`{name}` of an item changed")
        demand(item.get("status") != "in_progress", "an item is done that is in progress")
        match self._kind:
            case "message":
                told = item.get("content") or []
                demand(isinstance(told, str) or told == self._parts["content"], "a message has other contents")
            case "reasoning":
                demand(item.get("summary", []) == self._parts["summary"], "a thought has other summaries")
                texts = [part["text"] for part in item.get("content") or []]
                grown = [part["text"] for part in self._parts["content"]]
                demand("\n\n".join(texts) == "\n\n".join(grown), "a thought has other contents")
            case "function_call" | "custom_tool_call":
                said = item.get("arguments" if self._kind == "function_call" else "input", "")
                demand(said == self._arguments or not isinstance(said, str), "a call has other arguments")
                demand(self._arguments == self._body, "the end tells other arguments than the deltas")
            case _:
                pass
