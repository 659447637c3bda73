"""The target of a request: the facts about a server and model that an encoder needs."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.model.request import Effort

Field: TypeAlias = Literal[
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "n",
    "verbosity",
    "user",
    "metadata",
    "service_tier",
    "store",
    "cache_key",
    "name",
]
"""What a server may not know: a field of `Sampling` or of `Request`, or the `name` of a message."""


class Target(Struct, frozen=True, kw_only=True):
    """The facts about a server that an encoder needs. The defaults suit an unknown server.

    A field that a dialect has no use for is ignored by it. Where `None` may stand it is for "not known": then what came
    in the server's own dialect goes there as it came, and what came in another is written in the way that most take.
    """

    provider: str | None = None
    """Who is there: sealed reasoning of this origin may be sent."""
    reasoning_field: Literal["reasoning_content", "reasoning", "reasoning_details", "none"] = "reasoning_content"
    """Where history's reasoning is written in dialects without a standard for it."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """How the limit is called in a dialect that has had two names for it; where that is not known, `max_tokens`."""
    default_max_tokens: int = 4096
    """Written where the dialect requires a limit and the client gave none."""
    max_tokens_limit: int | None = None
    """The most the server generates; more is lowered to it."""
    thinking: Literal["effort", "budget", "switch", "none"] = "effort"
    """How the server is told to think: by a word, by a budget, on or off alone, or not at all."""
    thinking_field: (
        Literal["reasoning_effort", "thinking", "reasoning", "enable_thinking", "chat_template_kwargs"] | None
    ) = None
    """Where it is told in dialects without a standard for it; where that is not known, a word stands in
    `reasoning_effort` and all else in `thinking`."""
    efforts: tuple[Effort, ...] = ()
    """The words for effort that the server knows, another becomes the nearest; none here: all that the dialect has."""
    developer_role: bool | None = None
    """Whether `developer` is understood; else it is written as `system`."""
    inline_system: bool = True
    """Whether system turns may stand between the others."""
    text_parts: bool = True
    """Whether the texts of a turn may stand in a list; else they are joined."""
    tool_result_media: bool | None = None
    """Whether images and files may stand in tool results; else they are moved to a user turn behind them."""
    extended_sampling: bool = False
    """Whether `top_k`, `min_p` and `repetition_penalty` are understood by a dialect that does not define them."""
    cache_marks: bool = False
    """Whether cache marks are understood by a dialect in which not every server takes them."""
    custom_tools: bool | None = None
    """Whether tools of free text are understood by a dialect in which not every server takes them; else each is
    written as a function of one string."""
    strict_tools: bool = True
    """Whether the server can hold a call to its tool's schema."""
    forced_tools: bool = True
    """Whether a tool call can be demanded; else the demand is written as leave."""
    prefill: Literal["native", "none"] = "none"
    """Whether a last assistant turn is continued."""
    stop_limit: int | None = 4
    """The most stop strings; where it is the usual number, the dialect's own limit holds."""
    stops: Literal["native", "ours"] = "native"
    """Who ends an answer at a stop string: the server, or we, who then do not tell it of any."""
    tool_name_limit: int | None = None
    """The longest tool name; `None` takes the dialect's own limit."""
    fan_out: bool = False
    """Whether the server makes one answer at a time: several (`n`) are then asked for one by one."""
    tools: bool = True
    """Whether the server takes tools at all."""
    parallel_tool_calls: bool = True
    """Whether the server can be told that several calls at once are welcome, or not."""
    tool_id: Literal["any", "nine"] = "any"
    """The ids of calls that the server takes: those of others, or nine letters and digits alone."""
    stream_usage: bool = True
    """Whether usage can be asked for in a dialect that does not always send it (`stream_options`)."""
    json_schema: Literal["native", "object", "none"] = "native"
    """What the server can hold an answer to: a schema, the form of JSON, or nothing."""
    images: bool = True
    """Whether the model sees pictures."""
    image_urls: bool = True
    """Whether the server fetches pictures by their address; else their bytes must be sent."""
    seed_field: Literal["seed", "random_seed"] = "seed"
    """How the seed is called in a dialect in which not every server follows the standard."""
    lacks: tuple[Field, ...] = ()
    """Fields that the server refuses, or does not know."""
