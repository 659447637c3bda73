"""How requests to an upstream show who sends them: by a token, or by a signature of each request.

A strategy has a credential that expires (`RefreshedCredential`) and turns it into header fields of one request. A
server that refuses a credential answers with one of the statuses in `refusals`: then another is fetched, and the
request is sent again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from xenoglot.backends.http.http1 import HTTPRequest
from xenoglot.backends.http.timeouts import TransportError
from xenoglot.backends.remote.sign_in.credential import SignInError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.backends.redaction import Redactor
    from xenoglot.backends.remote.sign_in.credential import Credential
    from xenoglot.backends.remote.sign_in.refreshed_credential import RefreshedCredential
    from xenoglot.codec.dialect import Headers

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class SignIn(Generic[T]):
    """The sign-in of one upstream, shared by all its dialects. Subclasses write the header fields."""

    refusals: ClassVar[frozenset[int]] = frozenset({401})

    def __init__(self, credential: RefreshedCredential[T]) -> None:
        self.credential = credential

    @property
    def ready(self) -> bool:
        """Whether a request can be sent at once."""
        return self.credential.current is not None

    def start(self) -> None:
        """Begin to fetch the credential."""
        self.credential.start()

    async def wait(self) -> None:
        """Wait until there is a credential.

        Raises:
            TransportError: there is none; nothing was sent.
        """
        try:
            await self.credential.get()
        except SignInError as error:
            problem = str(error)
        else:
            return
        raise TransportError("credentials", "request", problem, sent=False)

    async def renew(self, refused: object = None) -> bool:
        """Fetch another credential after a refusal; return whether the request is to be sent again with it."""
        return await self.credential.renew(refused)

    @property
    def value(self) -> object:
        """The value of the credential of now, to be compared; `None` while there is none."""
        current = self.credential.current
        return None if current is None else current.value

    def corrected(self, date: str | None) -> bool:  # noqa: ARG002  tokens have no time of their own
        """Correct the clock after a refusal with this `date`; return whether the request is to be sent again."""
        return False

    def redacted_by(self, redactor: Redactor) -> None:
        """Have credentials removed from texts by `redactor`."""
        self.credential.redacted_by(redactor)

    def fields(self, request: HTTPRequest, *, whole: bool = True) -> bytes:
        """Return the header fields that are added to `request`, as they are written, each with its line end.

        Without `whole` the body of `request` is only the beginning of what is sent.

        Raises:
            TransportError: there is no credential any more.
        """
        raise NotImplementedError

    def signed(self, request: HTTPRequest, *, whole: bool = True) -> HTTPRequest:
        """Return `request` with these fields. Raises `TransportError` as above."""
        head = request.head[:-2] + self.fields(request, whole=whole) + b"\r\n"
        return HTTPRequest(request.method, request.origin, head, request.body)

    def valid(self) -> Credential[T]:
        """Return the credential of now. Raises `TransportError` where there is none any more."""
        current = self.credential.current
        if current is None:
            raise TransportError("credentials", "request", "the credential has just expired", sent=False)
        return current

    async def aclose(self) -> None:
        """Stop refreshing."""
        await self.credential.aclose()


class TokenSignIn(SignIn[str]):
    """A token that is sent as `authorization: Bearer TOKEN`, with further fields that go with it (`more`).

    `listed` is a field whose value is a list: it is added to the list of a request that has one.
    """

    def __init__(
        self, credential: RefreshedCredential[str], more: Headers = (), listed: tuple[str, str] | None = None
    ) -> None:
        super().__init__(credential)
        self._more = written(more)
        self._listed = listed
        self._known: tuple[Credential[str] | None, bytes] = (None, b"")

    def fields(self, request: HTTPRequest, *, whole: bool = True) -> bytes:
        """Return the fields, which are the same for every request of one token."""
        del request, whole
        current = self.valid()
        if self._known[0] is not current:
            self._known = (current, written([("authorization", f"Bearer {current.value}")]) + self._more)
        return self._known[1]

    def signed(self, request: HTTPRequest, *, whole: bool = True) -> HTTPRequest:
        """Return `request` with the fields, its list completed."""
        signed = super().signed(request, whole=whole)
        return signed if self._listed is None else _with_item(signed, *self._listed)


class SignedRequest(NamedTuple):
    """What is signed: `url` with its query, `headers` in lower case with `host`; `body` is `None` for a stream."""

    method: str
    url: str
    headers: Headers
    body: bytes | None


class Signer(Protocol[T_contra]):
    """Signs one request; computes only, without I/O."""

    def __call__(self, credential: T_contra, request: SignedRequest) -> Headers:
        """Return the header fields to add."""
        ...


class SigningSignIn(SignIn[T]):
    """A signature of each request. Clouds that sign answer 403 where a credential has expired."""

    refusals: ClassVar[frozenset[int]] = frozenset({401, 403})

    def __init__(
        self, credential: RefreshedCredential[T], signer: Signer[T], correct: Callable[[str | None], bool] | None = None
    ) -> None:
        """Sign with `signer`; `correct` corrects its clock by the `Date` of a refusal, and returns if it was wrong."""
        super().__init__(credential)
        self._signer = signer
        self._correct = correct

    def corrected(self, date: str | None) -> bool:
        """Correct the clock of the signatures; return whether it was wrong."""
        return self._correct is not None and self._correct(date)

    def fields(self, request: HTTPRequest, *, whole: bool = True) -> bytes:
        """Return the fields that sign `request`."""
        return written(self._signer(self.valid().value, signed_request(request, whole=whole)))


def signed_request(request: HTTPRequest, *, whole: bool = True) -> SignedRequest:
    """Return a request that is ready to be sent, in the parts that a signature is made of."""
    start, *lines = request.head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = start.split(" ", 2)
    headers = tuple((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines))
    host = next(value for name, value in headers if name == "host")
    url = f"{request.origin.scheme}://{host}{target}"
    return SignedRequest(method, url, headers, request.body if whole else None)


def _with_item(request: HTTPRequest, name: str, value: str) -> HTTPRequest:
    """Return a request with `value` in its list field `name` (RFC 9110 section 5.6.1)."""
    start = f"\r\n{name}: ".encode("latin-1")
    before, found, after = request.head.partition(start)
    if not found:
        head = request.head[:-2] + start[2:] + value.encode("latin-1") + b"\r\n\r\n"
    elif value.encode("latin-1") in after.partition(b"\r\n")[0]:
        return request
    else:
        head = before + start + value.encode("latin-1") + b"," + after
    return HTTPRequest(request.method, request.origin, head, request.body)


def written(headers: Sequence[tuple[str, str]]) -> bytes:
    """Return header fields as bytes of a head.

    Raises:
        TransportError: a value has line ends or other characters that a field cannot have.
    """
    for name, value in headers:
        if not value.isprintable() or not value.isascii():
            problem = f"the value of the header field `{name}` has characters that header fields cannot have"
            raise TransportError("credentials", "request", problem, sent=False)
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode("latin-1")
