"""What a server accepts (`Target`), and the rules that select it by a model's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

from xenoglot.codec.glob import matches
from xenoglot.model.content import HostedKind
from xenoglot.model.request import Effort

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    "cache_retention",
    "moderation",
    "name",
]
"""What a server may not know: a field of `Sampling` or of `Request`, or the `name` of a message."""


class Target(Struct, frozen=True, kw_only=True):
    """The facts about a server that an encoder needs. The defaults suit an unknown server.

    A field that a dialect has no use for is ignored by it. Where `None` may stand it is for "not known": then what came
    in the server's own dialect goes there as it came, and what came in another is written in the way that most take.
    """

    provider: str | None = None
    """The origin whose signed reasoning the server accepts."""
    reasoning_field: Literal["reasoning_content", "reasoning", "reasoning_details", "none"] = "reasoning_content"
    """Where reasoning of the history is written in dialects without a standard field for it."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The name of the token limit field, in a dialect that has had two names for it; unknown: `max_tokens`."""
    default_max_tokens: int = 4096
    """The limit that is written if the dialect requires one and the client set none."""
    max_tokens_limit: int | None = None
    """The longest output that the server generates; a higher limit is lowered to it."""
    thinking: Literal["effort", "budget", "switch", "none"] = "effort"
    """The form of reasoning effort that the server accepts: a level, a budget, on or off only, or none."""
    thinking_field: (
        Literal["reasoning_effort", "thinking", "reasoning", "enable_thinking", "chat_template_kwargs"] | None
    ) = None
    """The field for it in dialects without a standard one; if that is not known, a level is written as
    `reasoning_effort` and everything else as `thinking`."""
    efforts: tuple[Effort, ...] = ()
    """The effort levels that the server knows; another becomes the nearest. Empty: all levels of the dialect."""
    developer_role: bool | None = None
    """Whether the server understands `developer`; otherwise it is written as `system`."""
    inline_system: bool = True
    """Whether system turns may appear between the others."""
    text_parts: bool = True
    """Whether the texts of a turn may be a list; otherwise they are joined."""
    tool_result_media: bool | None = None
    """Whether tool results may contain images and files; otherwise they move to a user turn after them."""
    extended_sampling: bool = False
    """Whether `top_k`, `min_p` and `repetition_penalty` are supported, in a dialect that does not define them."""
    cache_marks: bool = False
    """Whether cache marks are supported, in a dialect in which not every server accepts them."""
    cache_minimum: int = 1024
    """The least tokens of a prefix that the server caches, where it caches at marks only."""
    thought_signatures: bool = False
    """Whether Gemini's thought signatures are accepted, in a dialect that is not theirs (`extra_content.google`)."""
    custom_tools: bool | None = None
    """Whether free-text tools are supported, in a dialect in which not every server accepts them; otherwise each is
    written as a function of one string."""
    strict_tools: bool = True
    """Whether the server can constrain a call to its tool's schema."""
    forced_tools: bool = True
    """Whether a request can demand a tool call; otherwise it is written as permission to call one."""
    prefill: Literal["native", "none"] = "none"
    """Whether the server continues a last assistant turn."""
    stop_limit: int | None = 4
    """The maximum number of stop strings; if it is the usual number, the dialect's own limit holds."""
    compaction: bool = False
    """Whether the server compacts and clears the context itself, in a dialect with wishes for that; otherwise the
    gateway does."""
    stops: Literal["native", "ours"] = "native"
    """What ends an answer at a stop string: the server, or we, who then do not send it any."""
    tool_name_limit: int | None = None
    """The maximum length of a tool name; `None` takes the dialect's own limit."""
    fan_out: bool = False
    """Whether the server generates one answer at a time: several (`n`) are then requested one by one."""
    tools: bool = True
    """Whether the server accepts tools at all."""
    parallel_tool_calls: bool = True
    """Whether a request can allow or forbid parallel tool calls."""
    tool_id: Literal["any", "nine"] = "any"
    """The ids of calls that the server accepts: any id, or exactly nine letters and digits."""
    stream_usage: bool = True
    """Whether usage can be requested in a dialect that does not always send it (`stream_options`)."""
    json_schema: Literal["native", "object", "none"] = "native"
    """How the server can constrain an answer: to a schema, to JSON, or not at all."""
    images: bool = True
    """Whether the model accepts images."""
    image_urls: bool = True
    """Whether the server fetches images by URL; otherwise their bytes are sent."""
    seed_field: Literal["seed", "random_seed"] = "seed"
    """The name of the seed field, in a dialect in which not every server follows the standard."""
    operation_paths: tuple[str, ...] = ()
    """Paths of endpoints that the server has in place of its dialect's usual ones, for an operation with several."""
    hosted_tools: tuple[HostedKind, ...] | None = None
    """The tools that the server runs itself; not known: those of its dialect that all of its servers have."""
    sealed_results: bool = False
    """Whether the server takes back only calls and results of hosted tools that it made itself; others become words."""
    lacks: tuple[Field, ...] = ()
    """Fields that the server rejects, or does not know."""
    body_fields: dict[str, str] = field(default_factory=dict)
    """Fields that every request for an answer has at this server, such as a version of the API."""


_MOST, _LONGEST = 1024, 256
"""How many names are remembered with their facts, and how long they may be: where a route leaves the name to the
client, there is no end of them."""


class TargetRule(Struct, frozen=True, kw_only=True):
    """The facts of those models whose names fit one of `names`, in which `*` is any number of characters."""

    names: tuple[str, ...]
    target: Target


class Targets:
    """The facts that hold for each model: those of the first rule that its name fits, else the usual ones."""

    def __init__(self, usual: Target, rules: Sequence[TargetRule] = ()) -> None:
        self.usual = usual
        self._rules = rules
        self._known: dict[str, Target] = {}

    def of(self, model: str) -> Target:
        """Return what is known of `model`."""
        if not self._rules:
            return self.usual
        known = self._known.get(model)
        if known is None:
            known = self._found(model)
            if len(model) <= _LONGEST:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[model] = known
        return known

    def _found(self, model: str) -> Target:
        for rule in self._rules:
            if any(matches(pattern, model) for pattern in rule.names):
                return rule.target
        return self.usual
