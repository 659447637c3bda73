"""What the configuration says of the embedded models: the usual one, and others beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct, field

from xenoglot.gateway.config.schema import Problems, join, shown
from xenoglot.text.registry import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterator

EMBEDDED: Final = "embedded"
"""The name under which `[[models]]` mean the embedded models."""

MODELS: Final = f"{EMBEDDED}.models"
"""The table of those beside the usual one."""

EMBEDDING: Final = "embedded/embeddings"
"""The backend of the embedded model for embeddings; no upstream can be called that."""


class EmbeddedModel(Struct, frozen=True, kw_only=True):
    """One model file in a process of its own, and the slots that share `context` tokens.

    At most `queue` requests wait for a slot, each at most `queue_seconds`. `chat_template` is a file with a template in
    place of the one in the model file, `text_syntax` how the model writes calls and thoughts. With `ready` it is loaded
    before the gateway listens, else when it is first asked. With `share_cache` what one client's prompt left in memory
    serves another's that begins alike; not said, it does where there is no other client.
    """

    gguf: str
    slots: Annotated[int, Meta(ge=1)] = 4
    context: Annotated[int, Meta(ge=256)] = 8192
    queue: Annotated[int, Meta(ge=0)] = 64
    queue_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 300.0
    text_syntax: str = AUTO
    chat_template: str | None = None
    share_cache: bool | None = None
    ready: bool = False


class Embedded(Struct, frozen=True, kw_only=True):
    """The usual embedded model (without `gguf`, the one that comes with us), and by their names the others.

    `embedding` is a GGUF file that makes embeddings, in place of the usual one.
    """

    enabled: bool = True
    gguf: str | None = None
    name: str | None = None
    slots: Annotated[int, Meta(ge=1)] = 4
    context: Annotated[int, Meta(ge=256)] = 8192
    queue: Annotated[int, Meta(ge=0)] = 64
    queue_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 300.0
    text_syntax: str = AUTO
    chat_template: str | None = None
    share_cache: bool | None = None
    embedding: str | None = None
    models: dict[str, EmbeddedModel] = field(default_factory=dict)

    def syntaxes(self) -> Iterator[tuple[str, str]]:
        """Yield the table of each model and the syntax it names."""
        yield EMBEDDED, self.text_syntax
        for name, model in self.models.items():
            yield join(MODELS, name), model.text_syntax


def backend_of(model: str) -> str:
    """Return the name of the backend of one of `[embedded.models]`."""
    return f"{EMBEDDED}/models/{model}"


def check_embedded(embedded: Embedded, problems: Problems) -> None:
    """Note names that no client can ask for, or that mean two models."""
    for name in embedded.models:
        if not name or not name.isprintable() or "*" in name or name == embedded.name:
            path = join(MODELS, name)
            problems.add(path, f"found {shown(name)}; expected a name of printable characters without `*`, of no other")
