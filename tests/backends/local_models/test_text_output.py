"""One's own model, read and held."""

from __future__ import annotations

from msgspec.structs import replace

from tests.backends.local_models.requests import request_of, respond, response_of
from xenoglot.backends.callable import Callable
from xenoglot.backends.local_models.adapt import reading
from xenoglot.backends.wrappers.emulation_settings import Emulate
from xenoglot.model.request import OutputFormat, Request

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Learner:
    """A model that knows better the second time; `closed` once it is let go of."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> str:
        """Answer."""
        self.requests.append(request)
        return "It is Paris." if len(self.requests) == 1 else '{"city": "Paris"}'


async def test_an_output_is_brought_to_its_schema() -> None:
    model = Learner()
    backend = reading(Callable(model, name="mine"), "auto", Emulate(schema="prompt", retries=1))
    request = replace(request_of("Where?"), output=OutputFormat(kind="json_schema", schema=SCHEMA))
    response, _ = await respond(backend, request)
    assert response == response_of('{"city": "Paris"}')
    assert [one.output for one in model.requests] == [None, None]


async def test_without_a_wish_nothing_is_held() -> None:
    backend = Callable(Learner(), name="mine")
    assert reading(backend, "off") is backend
    assert reading(backend, "off", Emulate()) is backend


async def test_the_model_is_let_go_of_with_what_is_around_it() -> None:
    class Closing(Callable):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    backend = Closing(Learner(), name="mine")
    await reading(backend, "auto", Emulate(schema="prompt")).aclose()
    assert backend.closed
