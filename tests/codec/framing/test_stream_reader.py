"""Reading: what is learned, what of it is used, and when the decoders are asked again."""

from collections.abc import Sequence

import pytest

from xenoglot.codec.framing.event_template import TemplateHint
from xenoglot.codec.framing.formats import EVENT_STREAM, JSON_ARRAY, JSON_LINES, Framing
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.model.events import Event, Ping, TextDelta

pytestmark = pytest.mark.usefixtures("with_shortcuts")


class Decoder:
    """Tells the `text` of each event; keeps what it was fed, and how often it gave a lesson."""

    def __init__(self, path: Sequence[str | int] = ("text",)) -> None:
        self.fed: list[bytes] = []
        self.lessons = 0
        self.state: object = None
        self.terminated = False
        self._path = path

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        self.fed.append(event.data)
        try:
            value = decode_json(event.data)
            self.state = value.get("state")
            for step in self._path:
                value = value[step]
        except (WireError, LookupError, TypeError):
            return (Ping(),)
        return (TextDelta(value),) if isinstance(value, str) and value else ()

    def close(self) -> Sequence[Event]:
        return ()

    def lesson(self, _: ServerSentEvent, /) -> TemplateHint:
        self.lessons += 1
        return TemplateHint(self._path, TextDelta, ("n", "pad"))


def frames(*data: str) -> list[bytes]:
    return [f"data: {one}\n\n".encode() for one in data]


def read(decoder: Decoder, pieces: Sequence[bytes], framing: Framing = EVENT_STREAM) -> list[str | None]:
    reading = StreamReader(framing, decoder)
    events = [event for piece in pieces for event in reading.feed(piece)]
    return [event.text if isinstance(event, TextDelta) else None for event in (*events, *reading.close())]


PLAIN = ['{"text":"a"}', '{"text":"b"}', '{"text":"c"}', '{"text":"d"}']


@pytest.mark.parametrize("together", [False, True], ids=["a-read-each", "one-read"])
def test_what_differs_in_its_text_alone_is_not_decoded(*, together: bool) -> None:
    decoder = Decoder()
    pieces = [b"".join(frames(*PLAIN))] if together else frames(*PLAIN)
    assert read(decoder, pieces) == ["a", "b", "c", "d"]
    assert decoder.fed == [b'{"text":"a"}', b'{"text":"b"}']  # nothing is known of the first: what came before it


def test_lines_are_learned_from_as_well() -> None:
    decoder = Decoder()
    assert read(decoder, [f"{line}\n".encode() for line in PLAIN], JSON_LINES) == ["a", "b", "c", "d"]
    assert decoder.fed == [b'{"text":"a"}', b'{"text":"b"}']


def test_the_elements_of_an_array_are_not() -> None:
    decoder = Decoder()
    array = [b'[{"text":"a"}\n', b',{"text":"b"}\n', b',{"text":"c"}\n', b"]"]
    assert read(decoder, array, JSON_ARRAY) == ["a", "b", "c"]
    assert (len(decoder.fed), decoder.lessons) == (3, 0)


def test_a_frame_that_is_cut_is_put_together() -> None:
    decoder = Decoder()
    stream = b"".join(frames(*PLAIN, '{"text":"e"}'))
    at = stream.index(b'"c"') + 1
    assert read(decoder, [stream[:at], stream[at:]]) == ["a", "b", "c", "d", "e"]
    assert decoder.fed == [b'{"text":"a"}', b'{"text":"b"}', b'{"text":"c"}']


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ('{"text":"\\u00e4 \\"}\\n"}', 'ä "}\n'),
        ('{"text": "blank before"}', "blank before"),
        ('{"text":"new"}\ndata: ', "new"),
        ('{"text":"raw\x01"}', None),
        ('{"text":"half \\ud83d"}', None),
        ('{"text":"more","n":1}', "more"),
        ('{"text":"never ends}', None),
    ],
)
def test_what_is_otherwise_is_read_by_the_decoder(data: str, text: str | None) -> None:
    short, general = Decoder(), Decoder()
    pieces = frames(*PLAIN, data, '{"text":"z"}')
    assert read(short, pieces)[4:] == [text, "z"]
    assert read(general, pieces, EVENT_STREAM) == ["a", "b", "c", "d", text, "z"]


def test_counts_and_paddings_may_differ() -> None:
    decoder = Decoder()
    said = [f'{{"n":{n},"text":"{text}","pad":"{"x" * n}"}}' for n, text in enumerate("abcdefghijkl")]
    assert read(decoder, frames(*said, '{"n":07,"text":"m","pad":""}')) == [*"abcdefghijkl", None]
    assert decoder.fed == [one.encode() for one in (*said[:2], '{"n":07,"text":"m","pad":""}')]


@pytest.mark.parametrize(
    "form",
    [
        '{{"text":"{text}","n":{n}}}',
        '{{"text":"{text}","pad":"{pad}","n":{n}}}',
        '{{"text":"{text}","n":{n},"pad":"{pad}"}}',
        '{{"n":{n},"text":"{text}","pad":"{pad}"}}',
        '{{"pad":"{pad}","n":{n},"text":"{text}"}}',
    ],
    ids=["findings-A1-count-last", "padding-then-count", "count-then-padding", "around", "before"],
)
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"], ids=["lf", "crlf"])
def test_a_read_may_end_anywhere_in_an_event(form: str, end: str) -> None:
    """The counts grow from 8 to 12, so that one of them is cut inside as well."""
    words = ["One", " two", " three", " four", " five"]
    events = [form.format(text=word, n=8 + n, pad="7" * n) for n, word in enumerate(words)]
    stream = "".join(f"event: e\ndata: {event}{end}" for event in events).encode()
    for at in range(len(stream)):
        assert (at, read(Decoder(), [stream[:at], stream[at:]])) == (at, words)
    pieces = [stream[at : at + 1] for at in range(len(stream))]
    assert read(Decoder(), pieces) == words


def test_another_state_is_learned_anew() -> None:
    decoder = Decoder()
    said = [f'{{"text":"{text}","state":{state}}}' for text, state in zip("abcdef", (1, 1, 1, 2, 2, 2), strict=True)]
    assert read(decoder, frames(*said)) == [*"abcdef"]
    assert decoder.fed == [said[at].encode() for at in (0, 1, 3)]


@pytest.mark.parametrize(
    "pieces",
    [
        frames(*(f'{{"x":{{"text":"{text}"}},"text":"{text}"}}' for text in "abcd")),
        [f'data: {{"text":"{text}"}}\n: {{"text":"{text}"}}\n\n'.encode() for text in "abcd"],
        [f'data: {{"text":\ndata: "{text}"}}\n\n'.encode() for text in "abcd"],
        [f'data: {{"text":"{text}"}}\r\r'.encode() for text in "abcd"],
    ],
    ids=["twice", "in-a-comment", "on-two-lines", "U20-cr"],
)
def test_what_cannot_be_sure_is_not_learned(pieces: Sequence[bytes]) -> None:
    decoder = Decoder()
    assert read(decoder, pieces) == ["a", "b", "c", "d"]
    assert len(decoder.fed) == 4


def test_a_twin_of_the_text_is_told_from_it() -> None:
    """The key is the same and its value as well, but the text stands elsewhere, under a key that is spelled out."""
    decoder = Decoder(("in", "text"))
    said = [f'{{"text":"{text}","in":{{"te\\u0078t":"{text}"}}}}' for text in "abcd"]
    assert read(decoder, frames(*said)) == ["a", "b", "c", "d"]
    assert len(decoder.fed) == 4


def test_who_learns_in_vain_stops_learning() -> None:
    decoder = Decoder()
    assert read(decoder, frames(*(f'{{"x":{n},"text":"t"}}' for n in range(20)))) == ["t"] * 20
    assert decoder.lessons == 8


def test_a_read_beyond_all_measure_is_left_to_the_framing() -> None:
    decoder = Decoder()
    long = f'{{"text":"{"x" * 2**20}"}}'
    assert read(decoder, frames(*PLAIN, long)) == ["a", "b", "c", "d", "x" * 2**20]
    assert decoder.fed == [b'{"text":"a"}', b'{"text":"b"}', long.encode()]


def test_a_decoder_that_gives_no_lessons_is_fed() -> None:
    class Plain:
        terminated = False

        def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
            return (TextDelta(event.data.decode()),)

        def close(self) -> Sequence[Event]:
            return (Ping(),)

    reading = StreamReader(EVENT_STREAM, Plain())
    assert [*reading.feed(b"data: a\n\ndata: b\n\ndata: c"), *reading.close()] == [
        TextDelta("a"),
        TextDelta("b"),
        TextDelta("c"),
        Ping(),
    ]
