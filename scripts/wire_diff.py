"""What the newest types of the vendors' SDKs have that no dialect reads or writes: `make wire-diff`.

    python scripts/wire_diff.py [--all] [DIALECT ...]

It walks the types of requests, answers and stream events of the installed SDKs (openai, anthropic, google-genai; of
boto3 the model of the service), and compares names of fields and values of `type` with the words in the source of the
dialect. A name that other objects have, too, counts as known, so the list is a lower bound. Such a name still travels
between servers and clients of the same dialect. Each has to stand in `docs/dialects/unread.toml`, with the reason, or
its objects have; the exit code is 1 if one does not, or if an entry there has nothing left to explain. `--all` prints
the listed ones, too. The reasons are also written into the table of `docs/dialects/README.md`.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, get_args, get_origin, get_type_hints

from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as BetaMessageParams
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as MessageParams
from botocore.loaders import Loader
from botocore.model import ServiceModel
from google.genai import types as google
from google.genai._gaos.types import interactions as google_interactions
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsNonStreaming as CompletionParams
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as ResponseParams
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "xenoglot"
LISTED = ROOT / "docs" / "dialects" / "unread.toml"
PAGE = ROOT / "docs" / "dialects" / "README.md"
BEGIN, END = "<!-- made by `make wire-diff`: begin -->\n", "<!-- made by `make wire-diff`: end -->\n"
LONGEST_TEXT = 200
"""Characters of a text in the source beyond which it is prose, and no list of names."""
VERSION_DIGITS = 8
"""Of the date at the end of a `type`, as in `web_search_20250305`."""

Hint: TypeAlias = Any
"""A type as the SDKs write it: a class, a `TypedDict`, or a form of `typing`."""


class GenerateContentRequest(TypedDict, total=False):
    """The body of `generateContent` (https://ai.google.dev/api/generate-content): the SDK has no type for it."""

    contents: list[google.Content]
    systemInstruction: google.Content
    tools: list[google.Tool]
    toolConfig: google.ToolConfig
    safetySettings: list[google.SafetySetting]
    labels: dict[str, str]
    cachedContent: str
    serviceTier: google.ServiceTier
    store: bool
    generationConfig: google.GenerationConfig
    modelArmorConfig: google.ModelArmorConfig


def shapes(*names: str) -> tuple[Hint, ...]:
    """Return types for shapes of Bedrock's runtime, from the service's model in botocore."""
    model = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
    known: dict[str, Hint] = {}

    def hint(shape: Hint) -> Hint:
        if shape.type_name == "structure":
            if shape.name not in known:
                known[shape.name] = dict  # for a shape that contains itself
                known[shape.name] = TypedDict(shape.name, {name: hint(of) for name, of in shape.members.items()})  # type: ignore[misc]  # of a shape
            return known[shape.name]
        if shape.type_name == "list":
            return list[hint(shape.member)]  # type: ignore[misc]  # as above
        return Literal[tuple(shape.enum)] if getattr(shape, "enum", None) else str

    return tuple(hint(model.shape_for(name)) for name in names)


class Surface(NamedTuple):
    """What a dialect's SDK sends and reads: types, and the folders of source that know its words."""

    types: tuple[Hint, ...]
    folders: tuple[str, ...]


SURFACES: Mapping[str, Surface] = {
    "responses": Surface((ResponseParams, Response, ResponseStreamEvent), ("dialects/responses", "dialects/openai")),
    "chat": Surface((ChatParams, ChatCompletion, ChatCompletionChunk), ("dialects/chat", "dialects/openai")),
    "completions": Surface((CompletionParams, Completion), ("dialects/completions", "dialects/openai")),
    "messages": Surface(
        (MessageParams, BetaMessageParams, Message, BetaMessage, RawMessageStreamEvent, BetaRawMessageStreamEvent),
        ("dialects/messages",),
    ),
    "converse": Surface(
        shapes("ConverseRequest", "ConverseResponse", "ConverseStreamOutput", "CountTokensRequest"),
        ("dialects/converse",),
    ),
    "gemini": Surface((GenerateContentRequest, google.GenerateContentResponse), ("dialects/gemini", "dialects/google")),
    "interactions": Surface(
        (
            google_interactions.CreateModelInteractionParam,
            google_interactions.Interaction,
            google_interactions.InteractionSSEEvent,
        ),
        ("dialects/interactions", "dialects/google"),
    ),
}


class Entry(NamedTuple):
    """Why names of a dialect are not read: those in `names`, and those that only objects in `objects` have."""

    reason: str
    names: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()

    def holds(self, name: str, objects: list[str]) -> bool:
        """Return whether it explains a name by itself."""
        return fits(name, self.names) or (bool(objects) and all(fits(one, self.objects) for one in objects))


class Comparison(NamedTuple):
    """What a dialect does not know: names without a reason, names with one, and reasons for nothing."""

    unlisted: dict[str, list[str]]
    listed: dict[str, list[str]]
    needless: list[str]


def fits(word: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a word is one of the patterns, in which `*` is any number of characters."""
    return any(fnmatchcase(word, pattern) for pattern in patterns)


def fields_of(struct: Hint) -> dict[str, Hint]:
    """Return the fields of an object by their names on the wire."""
    if isinstance(struct, type) and issubclass(struct, BaseModel):
        return {field.alias or name: field.annotation for name, field in struct.model_fields.items()}
    return get_type_hints(struct)


def is_struct(hint: Hint) -> bool:
    """Return whether a type is an object with fields of its own."""
    return hasattr(hint, "__required_keys__") or (isinstance(hint, type) and issubclass(hint, BaseModel))


def objects(hint: Hint) -> Iterator[Hint]:
    """Yield the objects that are reachable from a type, each once."""
    seen: dict[int, Hint] = {}  # holds them: a type that was made here and freed would give its id to another
    waiting = [hint]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if is_struct(one):
            yield one
            waiting += fields_of(one).values()
        else:
            waiting += [each for each in get_args(one) if get_origin(one) is not Literal and not isinstance(each, str)]


def names(hint: Hint) -> Iterator[tuple[str, str]]:
    """Yield each name of a field as `field`, and each value of a field `type` as `type=value`, with its object."""
    for struct in objects(hint):
        for name, of in fields_of(struct).items():
            yield name, struct.__name__
            if name == "type":
                for value in _words(of):
                    yield f"type={value}", struct.__name__


def _words(hint: Hint) -> list[str]:
    if get_origin(hint) is Literal:
        return [word for word in get_args(hint) if isinstance(word, str)]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [str(word.value) for word in hint]
    return [word for each in get_args(hint) for word in _words(each)]


@cache
def words(folder: str) -> frozenset[str]:
    """Return the words in the source of a folder: texts, their parts between dots, and names of fields of types."""
    found: set[str] = set()
    for path in (SOURCE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < LONGEST_TEXT:
                found.update(node.value.split())
                found.update(part for word in node.value.split() for part in word.split("."))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
            elif isinstance(node, ast.keyword) and node.arg:
                found.add(node.arg)
    return frozenset(found)


def is_known(name: str, known: frozenset[str]) -> bool:
    """Return whether a name is a word of the source; a `type` with a date or dots may be written in parts."""
    word = name.removeprefix("type=")
    if word in known:
        return True
    stem, _, date = word.rpartition("_")
    if len(date) == VERSION_DIGITS and date.isdigit() and not known.isdisjoint((stem, f"{stem}_")):
        return True
    return "." in word and known.issuperset(word.split("."))


def unread(dialect: str) -> dict[str, list[str]]:
    """Return what a dialect does not know, each with the objects that have it."""
    surface = SURFACES[dialect]
    known = frozenset[str]().union(*(words(folder) for folder in (*surface.folders, "codec")))
    found: dict[str, set[str]] = {}
    for hint in surface.types:
        for name, struct in names(hint):
            if not is_known(name, known):
                found.setdefault(name, set()).add(struct)
    return {name: sorted(found[name]) for name in sorted(found)}


def entries(dialect: str) -> list[Entry]:
    """Return the reasons that are listed for a dialect."""
    rows = tomllib.loads(LISTED.read_text(encoding="utf-8")).get(dialect, [])
    return [Entry(row["reason"], tuple(row.get("names", ())), tuple(row.get("objects", ()))) for row in rows]


def compare(dialect: str) -> Comparison:
    """Return the names that a dialect does not know, sorted by whether a reason is listed."""
    found, reasons = unread(dialect), entries(dialect)
    every = tuple(pattern for entry in reasons for pattern in entry.objects)
    listed = {
        name: structs
        for name, structs in found.items()
        if any(entry.holds(name, structs) for entry in reasons) or all(fits(one, every) for one in structs)
    }
    structs = {one for some in listed.values() for one in some}
    needless = [
        f"{dialect}: {pattern}"
        for entry in reasons
        for patterns, taken in ((entry.names, listed), (entry.objects, structs))
        for pattern in patterns
        if not any(fits(one, (pattern,)) for one in taken)
    ]
    return Comparison({name: found[name] for name in found if name not in listed}, listed, needless)


def table() -> str:
    """Return the reasons as a table for the page."""
    rows = [f"| `{dialect}` | {entry.reason} |" for dialect in SURFACES for entry in entries(dialect)]
    return "\n".join(("| dialect | what is not read, and why |", "|---|---|", *rows))


def with_table(page: str) -> str:
    """Return the text of the page with the current table between its marks."""
    head, _, rest = page.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        message = f"{PAGE}: the marks of the table are missing"
        raise ValueError(message)
    return f"{head}{BEGIN}\n{table()}\n\n{END}{tail}"


def main(arguments: list[str]) -> int:
    """Print the differences; return the exit code."""
    chosen = [one for one in arguments if not one.startswith("-")] or [*SURFACES]
    wrong = 0
    for dialect in chosen:
        unlisted, listed, needless = compare(dialect)
        wrong += len(unlisted) + len(needless)
        sys.stdout.write(f"{dialect}: {len(unlisted)} names without a reason, {len(listed)} with one\n")
        for name, structs in (unlisted | listed if "--all" in arguments else unlisted).items():
            sys.stdout.write(f"  {name}  ({', '.join(structs)})\n")
        for pattern in needless:
            sys.stdout.write(f"  a reason for nothing: {pattern}\n")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
