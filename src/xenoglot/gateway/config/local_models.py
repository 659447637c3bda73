"""Configuration of embedded models, and of the emulation for models that only write text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct, field

from xenoglot.backends.wrappers.emulation_settings import Emulation as Emulate
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.schema import Problems, join, shown, unknown
from xenoglot.text.registry import AUTO, OFF, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


EMBEDDED: Final = "embedded"
"""The name under which `[[models]]` mean the embedded models."""

MODELS: Final = f"{EMBEDDED}.models"
"""The table of the models in addition to the default one."""

EMBEDDING: Final = "embedded/embeddings"
"""The backend of the embedded model for embeddings; no upstream can be called that."""


class EmbeddedModel(Struct, frozen=True, kw_only=True):
    """One model file in a process of its own, and the slots that share `context` tokens.

    At most `queue` requests wait for a slot, each at most `queue_seconds`. `chat_template` is a file with a template in
    place of the one in the model file, `text_syntax` the syntax of its calls and reasoning. With `ready` it is loaded
    before the gateway listens, else when it is first asked. With `share_cache` what one client's prompt left in memory
    serves another's that begins alike; if not set, it does without other clients.
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


__all__ = ["Emulate", "check_emulate", "check_syntax"]


def check_syntax(name: str | None, path: str, problems: Problems) -> None:
    """Note an unknown text syntax; the rows are loaded only if one is named."""
    if name is None or name in (OFF, AUTO):
        return
    known = (AUTO, OFF, *names())
    if name not in known:
        problems.add(join(path, "text_syntax"), f"found {shown(name)}: {unknown(name, known)}")


def check_emulate(emulate: Emulate, path: str, problems: Problems) -> None:
    """Note what needs an extra that is not installed."""
    for key, require in _required(emulate):
        try:
            require()
        except ConfigurationError as error:
            problems.add(join(join(path, "emulate"), key), str(error))


def _required(emulate: Emulate) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield what makes sure of an extra, under the key that asks for it; few configurations ask for any."""
    if emulate.repair != "off":
        from xenoglot.text.json import repair  # noqa: PLC0415

        yield "repair", repair.require
    if emulate.checks:
        from xenoglot.text.json import schema  # noqa: PLC0415

        yield "check", schema.require
