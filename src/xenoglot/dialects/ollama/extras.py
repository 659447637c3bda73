"""Field names shared by the two endpoints, and their unknown fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSONObject

FAMILY = "ollama"
"""Whose words a `Finish` and a `Failure` have, and whose shape tools and their calls: both endpoints have the same."""


class OllamaEndpoint(Struct, frozen=True, kw_only=True):
    """One of the two endpoints: its name, and the field of its answers that holds the content."""

    name: str
    """The name of this dialect in `Extra`."""
    words: str
    """The field that holds the words."""
    nested: bool
    """Whether words, reasoning and calls stand in a `message`, or at the top level."""


CHAT = OllamaEndpoint(name="ollama", words="content", nested=True)
GENERATE = OllamaEndpoint(name="ollama_generate", words="response", nested=False)

NAMES = frozenset({CHAT.name, GENERATE.name})

OPTION = "options."
"""Begins the name under which an unknown option is carried: losses name each, not all of them at once."""

SHARED = frozenset(
    {
        "keep_alive",
        "truncate",
        "shift",
        "_debug_render_only",
        "remote_model",
        "remote_host",
        "total_duration",
        "load_duration",
        "prompt_eval_duration",
        "eval_duration",
        "_debug_info",
    }
)
"""Fields that mean the same at both endpoints (`ChatRequest` and `GenerateRequest` in `api/types.go`, and answers)."""


def extra_of(reader: Reader, name: str, form: JSONObject) -> Extra | None:
    """Return the rest of `reader` with the spellings in `form` that are set."""
    return reader.extra(name, **{key: value for key, value in form.items() if value not in (None, {}, [], False)})


def own_fields(extra: Extra | None, where: str, losses: Losses, name: str) -> JSONObject:
    """Return a copy of what the dialect `name` can write of `extra`: its own fields, or those both endpoints have."""
    if extra is None or extra.dialect == name or extra.dialect not in NAMES:
        return dict(losses.carry(extra, where, name))
    shared = {key: value for key, value in extra.fields.items() if key in SHARED or key.startswith(OPTION)}
    losses.carry(replace(extra, fields={key: extra.fields[key] for key in extra.fields.keys() - shared}), where, name)
    return shared
