"""Requests and answers to measure with, of any size and in every dialect, written by our own codecs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Request, Sampling, Tool
from xenoglot.testing.canned import Answers, answers

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Role

MODEL = "bench-model"
"""What is asked for, and by which upstream model it is answered."""

SENTENCE = "The quick brown fox jumps over the lazy dog, and nobody has ever said why it should. "
PIECE = " token"
"""The text of one token."""

WORDS = (" the", " quick", "ly", ' "brown"', " fox", "\n\n", " jumps", " über", ",", " a", " considerable", "5", " dog")
"""Texts of tokens as they come."""

AGENT_TOOLS = 15
AGENT_CALLS = 24
_RESULT_SENTENCES = 38
_TOOL_SENTENCES = 4
_SMALL_SENTENCES = 9


@cache
def small(*, stream: bool = False) -> Request:
    """Return a question of about a kilobyte: a system turn, and one of the user."""
    return conversation(2, sentences=_SMALL_SENTENCES // 2, stream=stream)


@cache
def agent(*, calls: int = AGENT_CALLS, tools: int = AGENT_TOOLS, stream: bool = False) -> Request:
    """Return a coding agent's question in the middle of its work: of 115 kB, unless its numbers say otherwise."""
    turns = [_said("system", 20), _said("user", 4)]
    for number in range(calls):
        turns += _call(number, max(tools, 1))
    return _asked(turns, tools=tuple(_tool(number) for number in range(tools)), stream=stream)


@cache
def conversation(turns: int, *, sentences: int = 2, stream: bool = False) -> Request:
    """Return a question at the end of a talk of so many turns, a system turn before them included."""
    said = [_said("user" if number % 2 else "assistant", sentences) for number in range(1, turns)]
    return _asked([_said("system", sentences), *said], stream=stream)


def body(dialect: str, request: Request) -> JSONObject:
    """Return `request` as a client of `dialect` writes it."""
    return get(dialect).encode_request(request, Losses(), Target())


def written(dialect: str, request: Request) -> bytes:
    """Return the bytes of that."""
    return encode_json(body(dialect, request))


@cache
def answer(dialect: str, tokens: int = 100, piece: str = PIECE) -> Answers:
    """Return an answer of so many tokens, each the same text, in an event of its own when streamed."""
    return answers(dialect, text=(piece,) * tokens, model=MODEL)


@cache
def spoken(dialect: str, tokens: int) -> Answers:
    """Return an answer of so many tokens as models write them: of several lengths, hardly one like the last."""
    return answers(dialect, text=[WORDS[number * 7 % len(WORDS)] for number in range(tokens)], model=MODEL)


class Frames(Struct, frozen=True):
    """A stream in parts: what comes before its second token, the frame that any of the tokens has, and what ends it."""

    first: tuple[bytes, ...]
    token: bytes
    last: tuple[bytes, ...]


@cache
def frames(dialect: str, piece: str = PIECE) -> Frames:
    """Return the parts of a stream in `dialect`, whose tokens are all the same."""
    tokens = 4
    whole = answer(dialect, tokens, piece).frames
    begin = next(place for place, frame in enumerate(whole) if piece.encode() in frame)
    return Frames(whole[: begin + 1], whole[begin + 1], whole[begin + tokens :])


def _asked(turns: list[Message], *, tools: tuple[Tool, ...] = (), stream: bool) -> Request:
    sampling = Sampling(max_tokens=1024, temperature=0.7)
    return Request(model=MODEL, messages=tuple(turns), tools=tools, sampling=sampling, stream=stream)


def _said(role: Role, sentences: int) -> Message:
    return Message(role=role, content=(Text(text=SENTENCE * sentences),))


def _call(number: int, tools: int) -> list[Message]:
    """Return one step of an agent: what it says and calls, and what comes of that."""
    name, arguments = f"tool_{number % tools}", encode_json({"path": f"src/file_{number}.py", "lines": [1, 200]})
    call = ToolCall(id=f"call_{number:06}", name=name, arguments=arguments.decode())
    found = Text(text=f'"{number}"\n\t{SENTENCE}' * _RESULT_SENTENCES)
    return [
        Message(role="assistant", content=(Text(text=SENTENCE), call)),
        Message(role="tool", content=(ToolResult(call_id=call.id, content=(found,)),)),
    ]


def _tool(number: int) -> Tool:
    properties: JSONObject = {
        f"argument_{place}": {"type": "string", "description": SENTENCE, "enum": ["one", "two", "three"]}
        for place in range(4)
    }
    properties["lines"] = {"type": "array", "items": {"type": "integer", "minimum": 1}}
    schema: JSONObject = {"type": "object", "properties": properties, "required": ["argument_0"]}
    return Tool(name=f"tool_{number}", description=SENTENCE * _TOOL_SENTENCES, parameters=schema)
