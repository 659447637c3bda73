"""Tools: declared, chosen, called side by side."""

from tests.matrix.case import (
    Answer,
    answers,
    call,
    chat_usage,
    choice,
    delta,
    function,
    last_usage,
    message,
    requests,
    start,
    stop,
    text,
    text_block,
    tool_block,
    use,
)
from xenoglot.model.json import JSON, JSONObject

USER = {"role": "user", "content": "What is the weather in Paris and in Rome?"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MESSAGES_TOOLS = [{"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA}]
CHAT_TOOLS = [function("weather", SCHEMA, description="Tells the weather.")]
LONG = "mcp__a_server_with_a_very_long_name_indeed__a_tool_with_a_name_of_its_own"
BIG = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991, "default": None},
        "mode": {"const": "fast"},
        "tree": {"$ref": "#/$defs/node"},
    },
    "propertyNames": {"type": "string"},
    "$defs": {
        "node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
    },
}


def called(index: int, **fields: JSON) -> JSONObject:
    """Return the delta of a tool call."""
    return {"tool_calls": [{"index": index, **fields}]}


CASES = (
    answers(
        "tools-parallel-pitfall-90",
        {
            "chat": Answer(
                choice(
                    {
                        "content": "I look.",
                        "tool_calls": [
                            call("call_1", "weather", '{"city": "Paris"}'),
                            call("call_2", "weather", '{"city":"Rome"}'),
                        ],
                    },
                    "tool_calls",
                    chat_usage(30, 20),
                ),
                (
                    delta(role="assistant", content=None),
                    delta(content="I look."),
                    delta(**called(0, id="call_1", type="function", function={"name": "weather", "arguments": ""})),
                    delta(**called(0, function={"arguments": '{"city":'})),
                    delta(**called(0, function={"arguments": ' "Paris"}'})),
                    delta(
                        **called(
                            1,
                            id="call_2",
                            type="function",
                            function={"name": "weather", "arguments": '{"city":"Rome"}'},
                        )
                    ),
                    delta("tool_calls"),
                    last_usage(chat_usage(30, 20)),
                ),
            ),
            "messages": Answer(
                message(
                    text("I look."),
                    use("toolu_1", "weather", {"city": "Paris"}),
                    use("toolu_2", "weather", {"city": "Rome"}),
                    stop="tool_use",
                    usage={"input_tokens": 30, "output_tokens": 20},
                ),
                (
                    start({"input_tokens": 30, "output_tokens": 1}),
                    *text_block(0, "I look."),
                    *tool_block(1, "toolu_1", "weather", "", '{"city":', '"Paris"}'),
                    *tool_block(2, "toolu_2", "weather", '{"city":"Rome"}'),
                    *stop("tool_use", {"output_tokens": 20}),
                ),
            ),
        },
        {
            "chat": choice(
                {
                    "content": "I look.",
                    "tool_calls": [
                        call("toolu_1", "weather", '{"city":"Paris"}'),
                        call("toolu_2", "weather", '{"city":"Rome"}'),
                    ],
                },
                "tool_calls",
                chat_usage(30, 20),
            ),
            "messages": message(
                text("I look."),
                use("call_1", "weather", {"city": "Paris"}),
                use("call_2", "weather", {"city": "Rome"}),
                stop="tool_use",
                usage={"input_tokens": 30, "output_tokens": 20},
            ),
        },
    ),
    answers(
        "tools-interleaved-pitfall-89",
        {
            "chat": Answer(
                choice(
                    {
                        "content": None,
                        "tool_calls": [
                            call("call_1", "weather", '{"city":"Paris"}'),
                            call("call_2", "weather", '{"city":"Rome"}'),
                        ],
                    },
                    "stop",
                    chat_usage(30, 20),
                ),
                (
                    delta(**called(0, id="call_1", type="function", function={"name": "weather", "arguments": ""})),
                    delta(**called(1, id="call_2", type="function", function={"name": "weather", "arguments": ""})),
                    delta(**called(1, function={"arguments": '{"city":'})),
                    delta(**called(0, function={"arguments": '{"city":"Pa'})),
                    delta(**called(1, function={"arguments": '"Rome"}'})),
                    delta(**called(0, function={"arguments": 'ris"}'})),
                    delta("stop"),
                    last_usage(chat_usage(30, 20)),
                ),
            )
        },
        {
            "messages": message(
                use("call_1", "weather", {"city": "Paris"}),
                use("call_2", "weather", {"city": "Rome"}),
                stop="tool_use",
                usage={"input_tokens": 30, "output_tokens": 20},
            )
        },
    ),
    answers(
        "tools-no-arguments-pitfall-94",
        {
            "chat": Answer(
                choice(
                    {"content": None, "tool_calls": [call("call_1", "weather", "")]}, "tool_calls", chat_usage(30, 9)
                ),
                (
                    delta(role="assistant", content=None),
                    delta(**called(0, id="call_1", type="function", function={"name": "weather", "arguments": ""})),
                    delta("tool_calls"),
                    last_usage(chat_usage(30, 9)),
                ),
            ),
            "messages": Answer(
                message(use("toolu_1", "weather", {}), stop="tool_use", usage={"input_tokens": 30, "output_tokens": 9}),
                (
                    start({"input_tokens": 30, "output_tokens": 1}),
                    *tool_block(0, "toolu_1", "weather", ""),
                    *stop("tool_use", {"output_tokens": 9}),
                ),
            ),
        },
        {
            "chat": choice(
                {"content": None, "tool_calls": [call("toolu_1", "weather", "{}")]}, "tool_calls", chat_usage(30, 9)
            ),
            "messages": message(
                use("call_1", "weather", {}), stop="tool_use", usage={"input_tokens": 30, "output_tokens": 9}
            ),
        },
    ),
    answers(
        "tools-exact-numbers-pitfall-128",
        {
            "chat": Answer(
                choice(
                    {
                        "content": None,
                        "tool_calls": [
                            call("call_1", "weather", '{"a": 1152921504606846977, "b": 1.0, "c": "\\ud83d\\udc69"}')
                        ],
                    },
                    "tool_calls",
                    chat_usage(30, 9),
                ),
                (
                    delta(role="assistant", content=None),
                    delta(
                        **called(
                            0,
                            id="call_1",
                            type="function",
                            function={
                                "name": "weather",
                                "arguments": '{"a": 1152921504606846977, "b": 1.0, "c": "\\ud83d',
                            },
                        )
                    ),
                    delta(**called(0, function={"arguments": '\\udc69"}'})),
                    delta("tool_calls"),
                    last_usage(chat_usage(30, 9)),
                ),
            )
        },
        {
            "messages": message(
                use("call_1", "weather", {"a": 1152921504606846977, "b": 1.0, "c": "👩"}),
                stop="tool_use",
                usage={"input_tokens": 30, "output_tokens": 9},
            )
        },
    ),
    requests(
        "tools-declared",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": [function("weather", BIG, strict=True), {"type": "function", "function": {"name": "now"}}],
            },
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": [
                    {"name": "weather", "input_schema": BIG, "strict": True, "cache_control": {"type": "ephemeral"}},
                    {"type": "custom", "name": "now", "input_schema": {"type": "object"}},
                ],
            },
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": [
                    {"name": "weather", "strict": True, "input_schema": BIG},
                    {"name": "now", "input_schema": {"type": "object", "properties": {}}},
                ],
            },
            "chat": {
                "messages": [USER],
                "tools": [function("weather", BIG, strict=True), function("now", {"type": "object"})],
                "max_tokens": 64,
            },
        },
        {
            "messages": (
                "$.tools[1] parameters approximated (a tool of the dialect has a schema: an object of no properties)",
            ),
            "chat": ("$.tools[0] cache dropped (a tool takes no cache mark)",),
        },
    ),
    requests(
        "tools-choice-auto-serial-pitfall-15",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "tool_choice": "auto",
                "parallel_tool_calls": False,
            },
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            },
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            },
            "chat": {
                "messages": [USER],
                "tools": CHAT_TOOLS,
                "tool_choice": "auto",
                "parallel_tool_calls": False,
                "max_tokens": 64,
            },
        },
    ),
    requests(
        "tools-choice-required-parallel-pitfall-14",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "tool_choice": "required",
                "parallel_tool_calls": True,
            },
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "any", "disable_parallel_tool_use": False},
            },
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "any", "disable_parallel_tool_use": False},
            },
            "chat": {
                "messages": [USER],
                "tools": CHAT_TOOLS,
                "tool_choice": "required",
                "parallel_tool_calls": True,
                "max_tokens": 64,
            },
        },
    ),
    requests(
        "tools-choice-named-pitfall-14",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "tool_choice": {"type": "function", "function": {"name": "weather"}},
            },
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "tool", "name": "weather"},
            },
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "tool", "name": "weather"},
            },
            "chat": {
                "messages": [USER],
                "tools": CHAT_TOOLS,
                "tool_choice": {"type": "function", "function": {"name": "weather"}},
                "max_tokens": 64,
            },
        },
    ),
    requests(
        "tools-choice-none-pitfall-14",
        {
            "chat": {"messages": [USER], "max_tokens": 64, "tools": CHAT_TOOLS, "tool_choice": "none"},
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "none"},
            },
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "none"},
            },
            "chat": {"messages": [USER], "tools": CHAT_TOOLS, "tool_choice": "none", "max_tokens": 64},
        },
    ),
    requests(
        "tools-choice-allowed",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": [*CHAT_TOOLS, function("now", {"type": "object", "properties": {}})],
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "now"}}]},
                },
            }
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": [{"name": "now", "input_schema": {"type": "object", "properties": {}}}],
                "tool_choice": {"type": "auto"},
            }
        },
        {
            "messages": (
                "$ tools emulated (only those allowed by `tool_choice` are sent)",
                "$.tool_choice names emulated (only the tools allowed are sent)",
            )
        },
    ),
    requests(
        "tools-serial-alone-pitfall-15",
        {"chat": {"messages": [USER], "max_tokens": 64, "tools": CHAT_TOOLS, "parallel_tool_calls": False}},
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            }
        },
    ),
    requests(
        "tools-choice-without-tools-pitfall-16",
        {
            "chat": {"messages": [USER], "max_tokens": 64, "tool_choice": "auto"},
            "messages": {"messages": [USER], "max_tokens": 64, "tool_choice": {"type": "auto"}},
        },
        {"messages": {"messages": [USER], "max_tokens": 64}, "chat": {"messages": [USER], "max_tokens": 64}},
        {
            "messages": ("$ tool_choice dropped (there are no tools to call)",),
            "chat": ("$ tool_choice dropped (there are no tools)",),
        },
    ),
    requests(
        "tools-custom-pitfall-62",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": [
                    {
                        "type": "custom",
                        "custom": {"name": "patch", "description": "Applies a patch.", "format": {"type": "text"}},
                    }
                ],
            }
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": [
                    {
                        "name": "patch",
                        "description": "Applies a patch.",
                        "input_schema": {
                            "type": "object",
                            "properties": {"input": {"type": "string"}},
                            "required": ["input"],
                        },
                    }
                ],
            }
        },
        {
            "messages": (
                "$.tools[0] kind emulated (a custom tool is written as a function of one string)",
                "$.tools[0] format dropped (a function is restricted by no grammar)",
            )
        },
    ),
    requests(
        "tools-of-the-server-pitfall-30",
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, *MESSAGES_TOOLS],
            }
        },
        {"chat": {"messages": [USER], "tools": CHAT_TOOLS, "max_tokens": 64}},
        {"chat": ("$.tools[0] web_search dropped (the provider runs it, and the dialect has no such tool)",)},
    ),
)
