"""Syntax rows of families with special tokens around each argument, whose answers start in reasoning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.text.payloads.json_calls import JSONCalls
from xenoglot.text.payloads.markup import Markup
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

if TYPE_CHECKING:
    from xenoglot.text.syntax import Payload

_VLLM: Final = "https://github.com/vllm-project/vllm/blob/main/"


def _opened(tag: str) -> str:
    return f"<|open|>{tag}<|sep|>"


def _closed(tag: str) -> str:
    return f"<|close|>{tag}<|sep|>"


def _openings(tag: str) -> tuple[str, ...]:
    """Return the beginnings of `tag`, also with spaces, which tokenizers sometimes put around the name."""
    return _opened(tag), f"<|open|> {tag} <|sep|>"


def _closings(*tags: str) -> tuple[str, ...]:
    """Return the ends of `tags`, also with spaces, or without the token after the name, which may be missing."""
    return tuple(marker for tag in tags for marker in (_closed(tag), f"<|close|> {tag} <|sep|>", f"<|close|>{tag}"))


_K3_END: Final = (_closed("tools"), "<|close|> tools <|sep|>")
_K3_VALUES: Final = ("number", "boolean", "null", "object", "array")
_K3_CALL: Final = Markup(
    call=('<|open|>call tool="',),
    attributes='" index="{number}"',
    call_name_end=("<|sep|>",),
    parameter=('<|open|>argument key="',),
    name_end=tuple(f'" type="{kind}"<|sep|>' for kind in ("string", *_K3_VALUES)),
    texts=('" type="string"<|sep|>',),
    jsons=tuple(f'" type="{kind}"<|sep|>' for kind in _K3_VALUES),
    parameter_end=(_closed("argument"),),
    object_open=('<|open|>json type="object"<|sep|>', _opened("json")),
    object_close=(_closed("json"),),
    call_end=(_closed("call"), _closed("message")),
    trim="nothing",
    line="",
)

_KIMI_K3: Final = Syntax(
    name="kimi_k3",
    title="Kimi K3",
    source="https://github.com/ggml-org/llama.cpp/blob/master/models/templates/Kimi-K3.jinja",
    note=(
        "Channels of tags: reasoning, text, calls. Each argument has its type, or all are one JSON object; calls are "
        "numbered from 1 on. The channel of text or of calls ends reasoning that was not closed."
    ),
    models=("kimi-k3*",),
    calls=(
        CallSyntax(begin=_openings("tools"), end=_K3_END, payload=_K3_CALL),
        # a call behind one that is none
        CallSyntax(
            open=(f"{_closed('call')}{_K3_CALL.call[0]}",), end=_K3_END, payload=replace(_K3_CALL, call=()), auto=False
        ),
    ),
    thoughts=(
        ReasoningSyntax(
            open=_openings("think"),
            close=(*_closings("think"), *_openings("response")),
            implied=True,
            calls=True,
        ),
    ),
    dropped=(*_openings("response"), *_closings("response", "message"), "<|end_of_msg|>"),
    strays=(*_closings("argument", "json", "call", "tools"), "<|open|>response", "<|open|>", "<|close|>", "<|sep|>"),
    telling=ToolPromptSyntax(
        tools=(
            "# Tools\nYou may call these functions:\n{tools}\n\nTo call any of them, end your answer with this:\n"
            '<|open|>tools<|sep|><|open|>call tool="NAME" index="1"<|sep|>'
            '<|open|>argument key="KEY" type="string"<|sep|>VALUE<|close|>argument<|sep|>'
            "<|close|>call<|sep|><|close|>tools<|sep|>"
        ),
    ),
)


def _k2_typed(*kinds: str) -> tuple[str, ...]:
    """Return the ends of a key that are followed by the type of its value, one of `kinds`."""
    return tuple(f"</ifm|arg_key>{line}<ifm|arg_type>{kind}</ifm|arg_type>" for kind in kinds for line in ("", "\n"))


_K2_TEXTS: Final = _k2_typed("string")
_K2_JSONS: Final = _k2_typed("integer", "number", "boolean", "null", "array", "object")


def _k2_calls(payload: Payload) -> CallSyntax:
    return CallSyntax(
        begin=("<ifm|tool_calls>",),
        end=("</ifm|tool_calls>",),
        open=("<ifm|tool_call>",),
        close=("</ifm|tool_call>",),
        payload=payload,
    )


_K2_TAGGED: Final = Markup(
    call_name_end=(),
    parameter=("<ifm|arg_key>",),
    name_end=("</ifm|arg_key>", *_K2_TEXTS, *_K2_JSONS),
    texts=_K2_TEXTS,
    jsons=_K2_JSONS,
    value=("<ifm|arg_value>",),
    parameter_end=("</ifm|arg_value>",),
    trim="nothing",
)

_K2_HORIZON: Final = Syntax(
    name="k2_horizon",
    title="K2 Horizon",
    source=f"{_VLLM}vllm/tool_parsers/k2_horizon_tool_parser.py",
    note=(
        "Keys and values in tags, with or without a type between them, or JSON where the prompt asks for it; three "
        "tags for three depths of reasoning."
    ),
    models=("k2-horizon*",),
    calls=(
        _k2_calls(_K2_TAGGED),
        _k2_calls(JSONCalls()),
    ),
    # the section's own tag is forgotten now and then
    slips=tuple(
        CallSyntax(open=("<ifm|tool_call>",), close=("</ifm|tool_call>",), end=("</ifm|tool_calls>",), payload=payload)
        for payload in (_K2_TAGGED, JSONCalls())
    ),
    thoughts=(
        ReasoningSyntax(
            open=("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"),
            close=("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"),
            implied=True,
            calls=True,
        ),
    ),
    dropped=("<|ifm|im_end|>",),
    telling=ToolPromptSyntax(
        tools=(
            "# Tools\nYou may call these functions:\n<ifm|tools>\n{tools}\n</ifm|tools>\n\n"
            "To call any of them, write each call in this form:\n<ifm|tool_calls>\n<ifm|tool_call>NAME\n"
            "<ifm|arg_key>KEY</ifm|arg_key>\n<ifm|arg_value>VALUE</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>"
        ),
        tool="function",
    ),
)

_SOLAR_OPEN2: Final = Syntax(
    name="solar_open2",
    title="Solar Open 2",
    source=f"{_VLLM}vllm/tool_parsers/solar_open2_tool_parser.py",
    note="The name ends its line; keys and values between tokens; values are of the type that the schema gives.",
    models=("solar-open2*", "solar-open-2*", "solar-pro-4*", "solar-pro4*"),
    calls=(
        CallSyntax(
            open=("<|tool_call:start|>",),
            close=("<|tool_call:end|>",),
            payload=Markup(
                call_name_end=(),
                parameter=("<|tool_arg:start|>",),
                name_end=("<|tool_arg:value|>",),
                parameter_end=("<|tool_arg:end|>",),
                trim="nothing",
            ),
        ),
    ),
    thoughts=(ReasoningSyntax(open=("<|think:start|>",), close=("<|think:end|>",), implied=True),),
    dropped=("<|im:end|>",),
    telling=ToolPromptSyntax(
        tools=(
            "# Tools\nYou may call these functions:\n{tools}\n\nTo call any of them, write each call in this form:\n"
            "<|tool_call:start|>NAME\n<|tool_arg:start|>KEY<|tool_arg:value|>VALUE<|tool_arg:end|>\n<|tool_call:end|>"
        ),
        tool="function",
    ),
)

ROWS: Final = (_KIMI_K3, _K2_HORIZON, _SOLAR_OPEN2)
