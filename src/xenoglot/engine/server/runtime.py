"""Client of the runtime's HTTP API: requests to the child process, and the meaning of its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from xenoglot.backends.http.client import TransportError
from xenoglot.codec.invalid_request import refused
from xenoglot.codec.json.json_io import encode_json
from xenoglot.engine.errors import BROKEN, CRASHED, EngineError, context_overflow, unavailable
from xenoglot.engine.server.model_traits import SWITCH, ChatTemplate, has_thoughts
from xenoglot.errors import FailureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.http.client import Transport, UpstreamResponse
    from xenoglot.engine.server.server_process import EngineEndpoint
    from xenoglot.model.json import JSON, JSONObject

OK = 200
BAD_REQUEST = 400
FRAGMENTS: Final = 512
LONGEST_FRAGMENT: Final = 2048
"""How many pieces of templates are remembered as tokens, and how many characters such a piece has."""

ENDING: Final = 200
"""Characters of a prompt's end that are looked at."""

ANY_TOKENIZER: Final = "PreTrainedTokenizerFast"
TOKENIZERS: Final = {1: "LlamaTokenizer", 2: "GPT2Tokenizer", 3: "BertTokenizer", 4: "T5Tokenizer"}
"""The classes of the transformers library by the runtime's numbers for kinds of vocabularies (`llama_vocab_type`)."""

Answer = TypeVar("Answer")


class RuntimeProperties(Struct, frozen=True):
    """Properties of the loaded model: context size, vocabulary size, chat template.

    `bos` and `eos` are the texts of the tokens that begin and end texts, `tokenizer` is the class of the transformers
    library for tokenizers of its kind.
    """

    context: int
    vocabulary: int
    template: ChatTemplate = ChatTemplate()
    bos: str = ""
    eos: str = ""
    tokenizer: str = ANY_TOKENIZER


class _Said(Struct):
    message: str = ""
    type: str = ""
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Error(Struct):
    error: _Said = msgspec.field(default_factory=_Said)


class _Settings(Struct):
    n_ctx: int


class _Abilities(Struct):
    supports_tools: bool = False
    supports_tool_calls: bool = False


class _Properties(Struct):
    default_generation_settings: _Settings
    chat_template: str = ""
    bos_token: str = ""
    eos_token: str = ""
    chat_template_caps: _Abilities = msgspec.field(default_factory=_Abilities)


class _Meta(Struct):
    n_vocab: int
    vocab_type: int = 0


class _Model(Struct):
    meta: _Meta


class _Models(Struct):
    data: tuple[_Model, ...]


class _Prompt(Struct):
    prompt: str


class _Tokens(Struct):
    tokens: list[int]


class _Piece(Struct):
    id: int
    piece: str | tuple[int, ...]


class _Pieces(Struct):
    tokens: list[_Piece]


class _Content(Struct):
    content: str


class _Vector(Struct):
    embedding: str
    index: int


class _Vectors(Struct):
    data: tuple[_Vector, ...]


class TokenLogprob(Struct):
    """A token with its logprob, as the runtime reports it; `top` are the most likely tokens at its position."""

    token: str
    logprob: float
    bytes: tuple[int, ...] = ()
    top_logprobs: tuple[TokenLogprob, ...] = ()
    id: int = -1


class _Weighed(Struct):
    completion_probabilities: tuple[TokenLogprob, ...] = ()


class Process(Protocol):
    """Owner of the runtime's address, which starts it when needed: an `EngineProcess`."""

    async def ready(self) -> EngineEndpoint:
        """Return the address of the running engine.

        Raises:
            EngineError: it is not running, and will not be soon.
        """
        ...

    async def lost(self, endpoint: EngineEndpoint) -> None:
        """Report that no process answers at `endpoint`; returns when `ready` has a better one."""
        ...

    def hung(self) -> None:
        """Report that the process is silent for too long, and is to be replaced."""
        ...

    async def stop(self) -> None:
        """End it."""
        ...


_GONE = ("connect", "closed")
"""What happens to a request whose process ended a moment ago, whether or not its bytes had left."""


class Runtime:
    """HTTP client of one engine process. Every error is raised as a `FailureError`."""

    def __init__(self, process: Process, transport: Transport) -> None:
        self._process = process
        self._transport = transport
        self._facts: tuple[EngineEndpoint, RuntimeProperties] | None = None
        self.starts = 0
        """How many lives of the process were met with."""
        self._met: EngineEndpoint | None = None
        self._fragments: dict[tuple[str, bool], list[int]] = {}

    async def facts(self) -> RuntimeProperties:
        """Return the running model's properties; requested once in each life of the process."""
        endpoint = await self._ready()
        if self._facts is None or self._facts[0] is not endpoint:
            properties = await self._ask("GET", "/props", None, _Properties)
            models = await self._ask("GET", "/v1/models", None, _Models)
            meta = models.data[0].meta
            facts = RuntimeProperties(
                properties.default_generation_settings.n_ctx,
                meta.n_vocab,
                await self._template(properties),
                bos=properties.bos_token,
                eos=properties.eos_token,
                tokenizer=TOKENIZERS.get(meta.vocab_type, ANY_TOKENIZER),
            )
            self._facts = (endpoint, facts)
        return self._facts[1]

    async def apply_template(
        self, said: Sequence[JSONObject], tools: Sequence[JSONObject] = (), *, thinking: bool | None = None
    ) -> str:
        """Return the prompt that the model's own template makes of messages, and of tools.

        `thinking` is whether the model is to think, where its template asks for that.
        """
        body: JSONObject = {"messages": list(said)}
        if tools:  # `none` keeps the runtime from making a grammar of its own, which refuses schemas that ours takes
            body |= {"tools": list(tools), "tool_choice": "none"}
        if thinking is not None:
            body["chat_template_kwargs"] = {SWITCH: thinking}
        return (await self._ask("POST", "/apply-template", body, _Prompt)).prompt

    async def _template(self, properties: _Properties) -> ChatTemplate:
        text, can = properties.chat_template, properties.chat_template_caps
        ends: dict[bool | None, str] = {}
        if has_thoughts(text):
            question: list[JSONObject] = [{"role": "user", "content": "?"}]
            for thinking in (None, True, False):
                ends[thinking] = (await self.apply_template(question, thinking=thinking))[-ENDING:]
        return ChatTemplate(text=text, tools=can.supports_tools and can.supports_tool_calls, ends=ends)

    async def tokens_of_template(self, text: str, *, first: bool) -> list[int]:
        """Return the tokens of a piece of a template, control tokens included; the `first` begins the prompt."""
        if len(text) > LONGEST_FRAGMENT:  # tools, or calls: somebody's, and not the template's own
            return await self._tokenize(text, special=True, first=first)
        key = (text, first)
        if key not in self._fragments:
            if len(self._fragments) >= FRAGMENTS:
                self._fragments.clear()
            self._fragments[key] = await self._tokenize(text, special=True, first=first)
        return self._fragments[key]

    async def tokens_of_content(self, text: str) -> list[int]:
        """Return the tokens of words that a client wrote; whatever they look like, none is a control token."""
        return await self._tokenize(text, special=False, first=False)

    async def tokens_around_content(self, text: str) -> list[int]:
        """Return the tokens of words that a client wrote, with those with which texts of the model begin and end."""
        body = {"content": text, "add_special": True, "parse_special": False}
        return (await self._ask("POST", "/tokenize", body, _Tokens)).tokens

    async def tokens_of_text(self, text: str) -> list[int]:
        """Return the tokens of a text that stands for itself, control tokens included; it begins as texts begin."""
        begin = await self.tokens_of_template("", first=True)
        tokens = await self._tokenize(text, special=True, first=False)
        return tokens if tokens[: len(begin)] == begin else begin + tokens

    async def tokens_of_bare_text(self, text: str) -> list[int]:
        """Return the tokens of a text, control tokens included, and no other before them."""
        return await self._tokenize(text, special=True, first=False)

    async def pieces_of(self, text: str, *, control: bool) -> dict[int, str | tuple[int, ...]]:
        """Return the pieces of a text by the numbers of its tokens; bytes where one is no whole character."""
        body = {"content": text, "add_special": False, "parse_special": control, "with_pieces": True}
        found = (await self._ask("POST", "/tokenize", body, _Pieces)).tokens
        return {one.id: one.piece for one in found}

    async def text_of(self, tokens: list[int]) -> str:
        """Return the text of tokens."""
        return (await self._ask("POST", "/detokenize", {"tokens": tokens}, _Content)).content

    async def weigh(self, fields: JSONObject) -> tuple[TokenLogprob, ...]:
        """Return the likelihoods of what a completion made, which is requested in one piece."""
        return (await self._ask("POST", "/completion", fields, _Weighed)).completion_probabilities

    async def vectors(self, texts: Sequence[Sequence[int]]) -> list[str]:
        """Return the vectors of texts given as tokens: each packed, in the order of the texts."""
        body: JSONObject = {"input": [list(text) for text in texts], "encoding_format": "base64"}
        found = (await self._ask("POST", "/v1/embeddings", body, _Vectors)).data
        return [one.embedding for one in sorted(found, key=lambda one: one.index)]

    async def complete(self, fields: JSONObject) -> UpstreamResponse:
        """Start a completion and return the stream that it comes in."""
        return await self._send("POST", "/completion", fields)

    async def _tokenize(self, text: str, *, special: bool, first: bool) -> list[int]:
        if not text and not first:
            return []
        body = {"content": text, "add_special": first, "parse_special": special}
        return (await self._ask("POST", "/tokenize", body, _Tokens)).tokens

    async def _ask(self, method: str, path: str, body: JSON, kind: type[Answer]) -> Answer:
        reply = await self._send(method, path, body)
        try:
            return msgspec.json.decode(await reply.read(), type=kind)
        except TransportError:
            raise FailureError(CRASHED) from None
        except msgspec.DecodeError:
            raise FailureError(BROKEN) from None

    async def _send(self, method: str, path: str, body: JSON) -> UpstreamResponse:
        data = b"" if body is None else encode_json(body)
        endpoint = await self._ready()
        try:
            try:
                reply = await self._send_to(endpoint, method, path, data)
            except TransportError as error:
                if error.kind not in _GONE:
                    raise
                await self._process.lost(endpoint)  # nothing was answered yet: another one will do
                reply = await self._send_to(await self._ready(), method, path, data)
            if reply.status != OK:
                raise _refusal(reply.status, await reply.read())
        except TransportError as error:
            self.broken(error)
            raise FailureError(CRASHED) from None
        return reply

    def broken(self, error: TransportError) -> None:
        """Have a process replaced that neither answers nor ends: other requests wait for it."""
        if error.kind == "timeout" and error.stage != "connect":
            self._process.hung()

    async def _send_to(self, endpoint: EngineEndpoint, method: str, path: str, data: bytes) -> UpstreamResponse:
        headers = [("authorization", f"Bearer {endpoint.key}"), ("content-type", "application/json")]
        return await self._transport.send(method, endpoint.url + path, headers, data, socket_path=endpoint.socket_path)

    async def _ready(self) -> EngineEndpoint:
        try:
            endpoint = await self._process.ready()
        except EngineError as error:
            raise unavailable(error) from None
        if endpoint is not self._met:
            self._met = endpoint
            self.starts += 1
        return endpoint


def _refusal(status: int, body: bytes) -> FailureError:
    """Return what a status other than 200 means; the runtime's words on a bad request are about that request."""
    try:
        said = msgspec.json.decode(body, type=_Error).error
    except msgspec.DecodeError:
        return FailureError(BROKEN)
    if said.type == "exceed_context_size_error":
        return context_overflow(said.n_prompt_tokens, said.n_ctx)
    if status == BAD_REQUEST:
        return refused("$", f"the embedded model's runtime refuses this: {said.message}")
    return FailureError(BROKEN)
