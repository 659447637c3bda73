"""What tools answered: in order, with errors, with pictures, and missing."""

from tests.matrix.case import assistant, base64, call, image_url, requests, result, text, tool, use, user
from tests.matrix.cases.images import PNG, PNG_URL
from tests.matrix.cases.tools import CHAT_TOOLS, MESSAGES_TOOLS, USER

USE = [
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}},
    {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"city": "Rome", "n": 1.5}},
]
CALLS = [call("call_1", "weather", '{"city": "Paris"}'), call("call_2", "weather", '{"city": "Rome", "n": 1.50}')]

CASES = (
    requests(
        "results-parallel-pitfall-5",
        {
            "chat": {
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "messages": [
                    USER,
                    assistant(None, tool_calls=CALLS),
                    tool("call_1", "Sun"),
                    tool("call_2", [text("Rain"), text("Wind")]),
                ],
            },
            "messages": {
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "messages": [
                    USER,
                    assistant([text("I look."), *USE]),
                    user([result("toolu_1", "Sun"), result("toolu_2", [text("Rain"), text("Wind")])]),
                ],
            },
        },
        {
            "messages": {
                "messages": [
                    USER,
                    assistant(
                        [
                            use("call_1", "weather", {"city": "Paris"}),
                            use("call_2", "weather", {"city": "Rome", "n": 1.5}),
                        ]
                    ),
                    user([result("call_1", "Sun"), result("call_2", [text("Rain"), text("Wind")])]),
                ],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
            },
            "chat": {
                "messages": [
                    USER,
                    assistant(
                        "I look.",
                        tool_calls=[
                            call("toolu_1", "weather", '{"city":"Paris"}'),
                            call("toolu_2", "weather", '{"city":"Rome","n":1.5}'),
                        ],
                    ),
                    tool("toolu_1", "Sun"),
                    tool("toolu_2", "Rain\nWind"),
                ],
                "tools": CHAT_TOOLS,
                "max_tokens": 64,
            },
        },
        {"chat": ("$.messages[2].content[1] content approximated (its texts are joined)",)},
    ),
    requests(
        "results-errors-pitfall-9",
        {
            "chat": {
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "messages": [
                    USER,
                    assistant(None, tool_calls=CALLS),
                    tool("call_1", "[tool error] no such city"),
                    tool("call_2", ""),
                ],
            },
            "messages": {
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "messages": [
                    USER,
                    assistant(USE),
                    user([result("toolu_1", "no such city", is_error=True), result("toolu_2", is_error=False)]),
                ],
            },
        },
        {
            "messages": {
                "messages": [
                    USER,
                    assistant(
                        [
                            use("call_1", "weather", {"city": "Paris"}),
                            use("call_2", "weather", {"city": "Rome", "n": 1.5}),
                        ]
                    ),
                    user([result("call_1", "no such city", is_error=True), result("call_2")]),
                ],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
            },
            "chat": {
                "messages": [
                    USER,
                    assistant(
                        "",
                        tool_calls=[
                            call("toolu_1", "weather", '{"city":"Paris"}'),
                            call("toolu_2", "weather", '{"city":"Rome","n":1.5}'),
                        ],
                    ),
                    tool("toolu_1", "[tool error] no such city"),
                    tool("toolu_2", ""),
                ],
                "tools": CHAT_TOOLS,
                "max_tokens": 64,
            },
        },
        {"chat": ("$.messages[2].content[0] is_error emulated (the text begins with `[tool error]`)",)},
    ),
    requests(
        "results-images-pitfall-7",
        {
            "messages": {
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "messages": [
                    USER,
                    assistant(USE),
                    user(
                        [
                            result("toolu_1", [text("A map:"), {"type": "image", "source": base64("image/png", PNG)}]),
                            result("toolu_2", "Rain"),
                            text("And now?"),
                        ]
                    ),
                ],
            },
            "chat": {
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "messages": [
                    USER,
                    {"role": "assistant", "tool_calls": CALLS},
                    tool("call_1", [text("A map:"), image_url(f"data:image/png;base64,{PNG}")]),
                    tool("call_2", "Rain"),
                    user("And now?"),
                ],
            },
        },
        {
            "chat": {
                "messages": [
                    USER,
                    assistant(
                        "",
                        tool_calls=[
                            call("toolu_1", "weather", '{"city":"Paris"}'),
                            call("toolu_2", "weather", '{"city":"Rome","n":1.5}'),
                        ],
                    ),
                    tool("toolu_1", "A map:\n[image: in the next user message]"),
                    tool("toolu_2", "Rain"),
                    user([text("[image from the result of toolu_1]"), image_url(PNG_URL), text("And now?")]),
                ],
                "tools": CHAT_TOOLS,
                "max_tokens": 64,
            },
            "messages": {
                "messages": [
                    USER,
                    assistant(
                        [
                            use("call_1", "weather", {"city": "Paris"}),
                            use("call_2", "weather", {"city": "Rome", "n": 1.5}),
                        ]
                    ),
                    user(
                        [
                            result("call_1", [text("A map:"), {"type": "image", "source": base64("image/png", PNG)}]),
                            result("call_2", "Rain"),
                            text("And now?"),
                        ]
                    ),
                ],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
            },
        },
        {
            "chat": (
                (
                    "$.messages[2].content[0].content[1] image emulated "
                    "(moved to the user turn after the results of tools)"
                ),
                "$.messages[2].content[0] content approximated (its texts are joined)",
            )
        },
    ),
    requests(
        "results-before-words-pitfall-4",
        {
            "messages": {
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "messages": [
                    USER,
                    assistant(USE[:1]),
                    user([result("toolu_1", "Sun"), text("Thanks."), text("More?")]),
                ],
            }
        },
        {
            "chat": {
                "messages": [
                    USER,
                    assistant("", tool_calls=[call("toolu_1", "weather", '{"city":"Paris"}')]),
                    tool("toolu_1", "Sun"),
                    user([text("Thanks."), text("More?")]),
                ],
                "tools": CHAT_TOOLS,
                "max_tokens": 64,
            }
        },
    ),
    requests(
        "results-missing-pitfall-44",
        {
            "messages": {
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "messages": [USER, assistant(USE), user([result("toolu_2", "Rain")])],
            },
            "chat": {
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "messages": [USER, {"role": "assistant", "tool_calls": CALLS}, tool("call_2", "Rain"), user("Well?")],
            },
        },
        {
            "chat": {
                "messages": [
                    USER,
                    assistant(
                        "",
                        tool_calls=[
                            call("toolu_1", "weather", '{"city":"Paris"}'),
                            call("toolu_2", "weather", '{"city":"Rome","n":1.5}'),
                        ],
                    ),
                    tool("toolu_2", "Rain"),
                    tool("toolu_1", "[tool error] there is no result of this call"),
                ],
                "tools": CHAT_TOOLS,
                "max_tokens": 64,
            },
            "messages": {
                "messages": [
                    USER,
                    assistant(
                        [
                            use("call_1", "weather", {"city": "Paris"}),
                            use("call_2", "weather", {"city": "Rome", "n": 1.5}),
                        ]
                    ),
                    user(
                        [
                            result("call_1", "The tool gave no result.", is_error=True),
                            result("call_2", "Rain"),
                            text("Well?"),
                        ]
                    ),
                ],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
            },
        },
        {
            "chat": ("$.messages tool result emulated (an error stands for a result that is missing)",),
            "messages": ("$.messages[1] tool_result emulated (a call without a result gets a placeholder)",),
        },
    ),
    requests(
        "results-invalid-arguments-pitfall-40",
        {
            "chat": {
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "messages": [
                    USER,
                    assistant(
                        "", tool_calls=[call("call_1", "weather", '{"city": "Par'), call("call_2", "weather", "")]
                    ),
                    tool("call_1", "Sun"),
                    tool("call_2", "Rain"),
                ],
            }
        },
        {
            "messages": {
                "messages": [
                    USER,
                    assistant([use("call_1", "weather", {"_raw": '{"city": "Par'}), use("call_2", "weather", {})]),
                    user([result("call_1", "Sun"), result("call_2", "Rain")]),
                ],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
            }
        },
        {"messages": ("$.messages[1].content[0] arguments approximated (no JSON object; written as `_raw`)",)},
    ),
    requests(
        "results-foreign-ids-pitfall-41",
        {
            "chat": {
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "messages": [
                    USER,
                    {
                        "role": "assistant",
                        "tool_calls": [
                            call("functions.weather:0", "weather", "{}"),
                            call("functions.weather:1", "weather", "{}"),
                        ],
                    },
                    tool("functions.weather:0", "Sun"),
                    tool("functions.weather:1", "Rain"),
                ],
            }
        },
        {
            "messages": {
                "messages": [
                    USER,
                    assistant(
                        [
                            use("functions_weather_0_c8cf4471", "weather", {}),
                            use("functions_weather_1_8883eeee", "weather", {}),
                        ]
                    ),
                    user(
                        [result("functions_weather_0_c8cf4471", "Sun"), result("functions_weather_1_8883eeee", "Rain")]
                    ),
                ],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
            }
        },
    ),
    requests(
        "results-functions-pitfall-45",
        {
            "chat": {
                "max_tokens": 64,
                "functions": [{"name": "weather", "parameters": {"type": "object"}}],
                "function_call": "auto",
                "messages": [
                    USER,
                    assistant(None, function_call={"name": "weather", "arguments": '{"city":"Rome"}'}),
                    {"role": "function", "name": "weather", "content": "Sun"},
                ],
            }
        },
        {
            "messages": {
                "messages": [
                    USER,
                    assistant([use("call_function_1", "weather", {"city": "Rome"})]),
                    user([result("call_function_1", "Sun")]),
                ],
                "max_tokens": 64,
                "tools": [{"name": "weather", "input_schema": {"type": "object"}}],
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            }
        },
    ),
)
