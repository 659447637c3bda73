"""Settings of emulation: what is done for models and servers without tools or structured output.

They stand apart from what they set, so that a configuration is read without loading what it does not ask for.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

RepairMode: TypeAlias = Literal["off", "on", "loss"]
"""Whether arguments that are not valid JSON are repaired: not at all, silently, or with a loss."""


class Emulate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done for a model whose server does not hold its answers to a schema, or does not do so reliably."""

    schema: Literal["none", "tool", "prompt"] = "none"
    """How JSON is requested: as in the request, as the call of a tool, or in the prompt."""
    check: bool = False
    """Whether answers are validated against the schema; the three below, and `schema = "prompt"`, imply it."""
    retries: Annotated[int, Meta(ge=0, le=5)] = 0
    """How often the model is called again with the list of problems. Streams then begin when the answer is valid."""
    lenient: bool = False
    """Whether an answer that stays wrong is passed on, with a loss, in place of a failure."""

    @property
    def checks(self) -> bool:
        """Whether answers are held against the schema."""
        return self.check or self.retries > 0 or self.lenient or self.schema == "prompt"

    @property
    def acts(self) -> bool:
        """Whether there is anything to do."""
        return self.checks or self.schema != "none"


class Emulation(Emulate, frozen=True, kw_only=True):
    """What is emulated for a model or a server that does not support it.

    Args:
        tools: Whether tools are described in the prompt, and calls are read from the text. Default: `False`.
        repair: Whether arguments that are not valid JSON are repaired: `"off"`, `"on"`, or `"loss"` (and reported as a
            `Loss`). Default: `"off"`.
        schema: How JSON is requested: `"none"` (as in the request), `"tool"` (as the call of a tool) or `"prompt"`
            (in the prompt). Default: `"none"`.
        check: Whether answers are validated against the schema; `retries`, `lenient` and `schema="prompt"` imply it.
            Default: `False`.
        retries: How often the model is called again with the list of problems, 0 to 5. Default: `0`.
        lenient: Whether an answer that stays invalid is returned, with a `Loss`, instead of a failure.
            Default: `False`.

    Example:
        >>> import xenoglot
        >>> emulate = xenoglot.Emulation(tools=True, schema="prompt", retries=2)
        >>> client = xenoglot.Client("http://localhost:8000/v1", model="m", text_syntax="auto", emulate=emulate)
    """

    tools: bool = False
    """Whether tools are described in the prompt."""
    repair: RepairMode = "off"
    """Whether arguments that are not valid JSON are repaired, silently (`on`) or with a loss (`loss`)."""
