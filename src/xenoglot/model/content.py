"""The parts of a message, where their bytes are stored, and the extra fields of each."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.short_repr import short_repr


class Extra(Struct, frozen=True, kw_only=True):
    """Fields of an object that only its own dialect has.

    `fields` are the wire fields that were not decoded: written back by the same dialect, a `Loss` for any other (unless
    they are `None`). `form` is the spelling of the decoded fields, if the dialect has more than one: with it an object
    is encoded as it was received. Losing it is no `Loss`.
    """

    dialect: str
    fields: JSONObject = field(default_factory=dict)
    form: JSONObject = field(default_factory=dict)

    __repr__ = short_repr


class CacheMark(Struct, frozen=True, kw_only=True):
    """A wish that the prompt up to here be cached; `ttl` in the words of the dialect that wished it (`5m`, `1h`).

    `explicit` is of the mark of a whole request alone: the server is to cache up to the marks inside, and to set none.
    """

    ttl: str | None = None
    explicit: bool = False
    extra: Extra | None = None

    __repr__ = short_repr


class Inline(Struct, frozen=True, tag=True):
    """Bytes in base64, sent along with the request.

    Args:
        data: The bytes in base64.
        media_type: Their type, like `image/png`. `None` if unknown.

    Example:
        >>> import base64, xenoglot
        >>> xenoglot.Inline(base64.b64encode(b"PNG").decode(), "image/png")
        Inline(data='UE5H', media_type='image/png')
    """

    data: str
    media_type: str | None = None

    __repr__ = short_repr


class Remote(Struct, frozen=True, tag=True):
    """Bytes at a URL. The server fetches them; Xenoglot never opens the URL."""

    url: str

    __repr__ = short_repr


class Stored(Struct, frozen=True, tag=True):
    """Bytes kept by the provider under an id."""

    id: str

    __repr__ = short_repr


class Plain(Struct, frozen=True, tag=True):
    """A document given as its text."""

    text: str
    media_type: str | None = None

    __repr__ = short_repr


class Nested(Struct, frozen=True, tag=True):
    """A document given as parts; `form` keeps whether a lone text was a string on the wire."""

    parts: tuple[Part, ...]
    form: str | None = None

    __repr__ = short_repr


Source: TypeAlias = Inline | Remote | Stored | Plain | Nested


class Origin(Struct, frozen=True, kw_only=True):
    """Origin of signed or encrypted reasoning: only that dialect of that provider can read it again."""

    dialect: str
    provider: str | None = None

    __repr__ = short_repr


class Logprob(Struct, frozen=True, kw_only=True):
    """The natural logarithm of one token's probability, with the likeliest alternatives at its place."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    top: tuple[Logprob, ...] | None = None
    extra: Extra | None = None

    __repr__ = short_repr


CitedUnit: TypeAlias = Literal["char", "page", "block", "search_result"]
"""What the range of a citation counts."""


class CitedRange(Struct, frozen=True, kw_only=True):
    """The part of a document that is cited, from `start` to before `end`.

    `unit` is what is counted: characters and blocks from 0, pages from 1, or (`search_result`) the blocks of a search
    result of the prompt. `index` is which document or search result of the prompt it is, from 0.
    """

    unit: CitedUnit
    index: int | None = None
    start: int | None = None
    end: int | None = None

    __repr__ = short_repr


class Citation(Struct, frozen=True, kw_only=True):
    """Where a text took something from.

    `kind` is the dialect's own name of the form (`url_citation`, `page_location`). `start` and `end` are character
    offsets into the text that cites; `range` is the part of the document that is cited, `source` where a search result
    of the prompt is from.
    """

    kind: str
    url: str | None = None
    title: str | None = None
    file_id: str | None = None
    cited_text: str | None = None
    source: str | None = None
    range: CitedRange | None = None
    start: int | None = None
    end: int | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Text(Struct, frozen=True, kw_only=True, tag=True):
    """A part of a message: text.

    Args:
        text: The text.
        citations: Sources of the text.
        logprobs: Log probabilities of its tokens.
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> xenoglot.Message(role="user", content=(xenoglot.Text(text="Hi"),))
        Message(role='user', content=(Text(text='Hi'),))
    """

    text: str
    citations: tuple[Citation, ...] = ()
    logprobs: tuple[Logprob, ...] = ()
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Image(Struct, frozen=True, kw_only=True, tag=True):
    """A part of a message: an image.

    Args:
        source: The bytes (`Inline`), or where they are (`xenoglot.model.content.Remote`, `Stored`).
        detail: How closely the model should look: `"auto"`, `"low"`, `"high"` or `"original"`.
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> picture = xenoglot.Image(source=xenoglot.Inline("UE5H", "image/png"))
        >>> messages = [["What is this?", picture]]  # one message of two parts, for `Client.complete`
    """

    source: Source
    detail: str | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Audio(Struct, frozen=True, kw_only=True, tag=True):
    """Sound: given as input (`source`, `format`), or spoken by the model (`id`, `transcript`, Unix `expires_at`)."""

    source: Inline | Remote | Stored | None = None
    format: str | None = None
    id: str | None = None
    transcript: str | None = None
    expires_at: int | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Video(Struct, frozen=True, kw_only=True, tag=True):
    """A part of a message: a video, or the cut of it from `start` to `end` in seconds, seen `fps` times a second.

    Args:
        source: The bytes (`Inline`), or where they are (`xenoglot.model.content.Remote`, `Stored`).
        start: Where the model begins to watch. `None` is the beginning.
        end: Where the model stops. `None` is the end.
        fps: Frames per second that the model is shown. `None` is the server's default.
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has.

    Example:
        >>> from xenoglot.model.content import Remote, Video
        >>> video = Video(source=Remote(url="https://example.com/a.mp4"), start=10.0, end=20.0)
    """

    source: Inline | Remote | Stored
    start: float | None = None
    end: float | None = None
    fps: float | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class File(Struct, frozen=True, kw_only=True, tag=True):
    """A document; `context` is a note on it for the model, `citable` asks the model to cite it."""

    source: Source
    name: str | None = None
    context: str | None = None
    citable: bool | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Reasoning(Struct, frozen=True, kw_only=True, tag=True):
    """Reasoning of the model before its answer.

    `text` is the reasoning itself, `summary` the provider's summary, `signature` the signature of the text,
    `encrypted` the reasoning in a form that only its provider can read. `redacted`: there is nothing but
    `encrypted`. Signature and encrypted content go back to `origin` alone.
    """

    text: str | None = None
    summary: tuple[str, ...] | None = None
    signature: str | None = None
    encrypted: str | None = None
    redacted: bool = False
    origin: Origin | None = None
    id: str | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class ToolCall(Struct, frozen=True, kw_only=True, tag=True):
    """A part of an answer: the model calls a tool.

    Args:
        id: The id of the call, which the result repeats.
        name: The name of the tool.
        arguments: The text that the model wrote: for a `function` a JSON object, which may be invalid; for a `custom`
            tool free text.
        kind: `"function"` or `"custom"`. Default: `"function"`.
        namespace: The namespace of the tool, in dialects with namespaces.
        item_id: The id of the call as an item of the answer, in dialects with two ids.
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has.

    Example:
        >>> import json, xenoglot
        >>> call = xenoglot.ToolCall(id="1", name="weather", arguments='{"city": "Oslo"}')
        >>> json.loads(call.arguments)["city"]
        'Oslo'
    """

    id: str
    name: str
    arguments: str = ""
    kind: Literal["function", "custom"] = "function"
    namespace: str | None = None
    item_id: str | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class ToolResult(Struct, frozen=True, kw_only=True, tag=True):
    """A part of a message: the result of a tool call.

    Args:
        call_id: The id of the call.
        content: Parts of the result.
        is_error: Whether the tool failed. `None` if not set.
        name: The name of the tool, for dialects that match results by name.
        kind: The kind of the call. Default: `"function"`.
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> result = xenoglot.ToolResult(call_id="1", content=(xenoglot.Text(text="sunny"),))
        >>> xenoglot.Message(role="tool", content=(result,))
        Message(role='tool', content=(ToolResult(call_id='1', content=(Text(text='sunny'),)),))
    """

    call_id: str
    content: tuple[Part, ...] = ()
    is_error: bool | None = None
    name: str | None = None
    kind: Literal["function", "custom"] = "function"
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class SearchResult(Struct, frozen=True, kw_only=True, tag=True):
    """One thing that a search found, or a page that was fetched: its place and its text.

    `text` is what was taken from it, `age` when it was published or changed in the provider's words, `score` how well
    it fits, from 0 to 1. What only the provider can read (encrypted text) is in `extra`.
    """

    url: str | None = None
    title: str | None = None
    text: str | None = None
    age: str | None = None
    file_id: str | None = None
    score: float | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class CodeOutput(Struct, frozen=True, kw_only=True, tag=True):
    """What code printed that the provider ran, its exit code, and the ids of the files that it wrote."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    file_ids: tuple[str, ...] = ()
    extra: Extra | None = None

    __repr__ = short_repr


class FoundTool(Struct, frozen=True, kw_only=True, tag=True):
    """A tool of the request that a search for tools found, by its name; from now on the model can call it.

    Some dialects repeat its definition in the result. It is spelling: the request has it.
    """

    name: str
    namespace: str | None = None
    extra: Extra | None = None

    __repr__ = short_repr


HostedKind: TypeAlias = Literal[
    "web_search", "web_fetch", "code_execution", "mcp", "file_search", "image_generation", "tool_search", "google_maps"
]
"""What a tool does that the provider runs, in the words that dialects share; `tool_search` looks for other tools of the
request. Answers have no calls of `google_maps` in these words: they are carried."""

HostedContent: TypeAlias = "Part | SearchResult | CodeOutput | FoundTool"
"""What came out of a tool that the provider ran."""


class HostedCall(Struct, frozen=True, kw_only=True, tag=True):
    """A part of an answer: the model called a tool that the provider runs itself.

    Args:
        id: The id of the call, which the result repeats.
        kind: What the tool does, like `"web_search"`.
        name: The name of the tool, where a kind has several, as of an MCP server.
        arguments: The text of a JSON object: a search has a `query` or `queries`, a page fetch a `url` (and a
            `pattern` to find in it), code has `code` or a `command`, a search for tools a `query`, a `pattern` or
            `paths`; for MCP, the schema of the tool applies.
        server: The label of the MCP server that has the tool.
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> xenoglot.model.content.HostedCall(id="1", kind="web_search", arguments='{"query": "news"}').kind
        'web_search'
    """

    id: str
    kind: HostedKind
    name: str | None = None
    arguments: str = ""
    server: str | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class HostedResult(Struct, frozen=True, kw_only=True, tag=True):
    """A part of an answer: what a tool found or did that the provider ran. It is no part of the model's words.

    Args:
        call_id: The id of the call.
        kind: The kind of the call.
        name: The name of the tool, where a kind has several.
        content: What came out: a `SearchResult` for each thing found, a `FoundTool` for each tool, `CodeOutput`, texts,
            images, files.
        error: Why the tool failed, in the provider's word (`"max_uses_exceeded"`). `None` if it did not.
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has.

    Example:
        >>> from xenoglot.model.content import HostedResult, SearchResult
        >>> found = SearchResult(url="https://example.com", title="Example")
        >>> HostedResult(call_id="1", kind="web_search", content=(found,)).error
    """

    call_id: str
    kind: HostedKind
    name: str | None = None
    content: tuple[HostedContent, ...] = ()
    error: str | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Refusal(Struct, frozen=True, kw_only=True, tag=True):
    """The model declines, in words of its own."""

    text: str
    logprobs: tuple[Logprob, ...] = ()
    extra: Extra | None = None

    __repr__ = short_repr


class CompactedHistory(Struct, frozen=True, kw_only=True, tag=True):
    """A summary that stands for the turns before it; of several, the last counts.

    `text` is the summary in plain words, `encrypted` a form of it that only `origin` can read, `signature` what
    `origin` signed it with. With neither text nor encrypted content the compaction failed, and stands for nothing.
    `replaces` is what it stands for: `all` turns before it except those of the system, or only the `answers`, with the
    tool results: then the turns of the user stay.
    """

    text: str | None = None
    encrypted: str | None = None
    signature: str | None = None
    origin: Origin | None = None
    replaces: Literal["all", "answers"] = "all"
    id: str | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Opaque(Struct, frozen=True, kw_only=True, tag=True):
    """A whole part, tool or item that only its own dialect understands.

    `text` describes it, if possible, for dialects that cannot hold `data`.
    """

    dialect: str
    data: JSON
    text: str | None = None

    __repr__ = short_repr


Part: TypeAlias = (
    Text
    | Image
    | Audio
    | Video
    | File
    | Reasoning
    | ToolCall
    | ToolResult
    | HostedCall
    | HostedResult
    | Refusal
    | CompactedHistory
    | Opaque
)
