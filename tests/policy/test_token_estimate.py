"""The tokens of a text, beside what OpenAI's cl100k and o200k encodings make of it."""

import json
from typing import NamedTuple

import pytest

from xenoglot.model.content import Text
from xenoglot.model.request import Message, Request
from xenoglot.policy import token_estimate
from xenoglot.policy.token_estimate import bytes_tokens, estimate, text_tokens


class Sample(NamedTuple):
    """A text, and its true tokens: by cl100k, and by o200k."""

    text: str
    cl100k: int
    o200k: int


def lines(count: int, line: str) -> str:
    """Return lines in which `{0}` is the number of the line, and `{1}` a larger one."""
    return "\n".join(line.format(index, index * 977 + 13) for index in range(count))


ITEMS = [
    {"name": f"item {index}", "price": index * 3.5, "tags": ["red", "blue"], "stock": {"warehouse": index}}
    for index in range(40)
]
RECORDS = [
    {"id": index, "user": f"u{index * 37}", "t": 1700000000 + index * 977, "v": [index / 7, index / 9], "ok": True}
    for index in range(40)
]
SAMPLES = {
    "prose": Sample(
        "The old lighthouse keeper climbed the stairs every evening at dusk, carrying a lamp that his grandfather had "
        "made. He did not complain about the weather, nor about the loneliness; he had chosen both, and he said that "
        "they were good company. ",
        50,
        49,
    ),
    "python": Sample(
        lines(40, "def f{0}(x, y):\n    return [(a, b) for a in x for b in y if a != b and (a * {1} + b) % 7 == 0]\n"),
        1718,
        1718,
    ),
    "python-dense": Sample(
        lines(40, "def f{0}(x,y):return[(a,b)for a in x for b in y if a!=b and(a*{0}+b)%7==0]"), 1320, 1320
    ),
    "json-lines": Sample("\n".join(map(json.dumps, RECORDS)), 1936, 1936),
    "json-indented": Sample(json.dumps(ITEMS, indent=2), 2042, 2042),
    "json-compact": Sample(json.dumps(ITEMS, separators=(",", ":")), 1002, 1042),
    "csv": Sample(lines(60, "{0},{1},0.{1},2024-05-17,active"), 1135, 1135),
    "log": Sample(
        lines(40, "2024-05-17T12:00:{0:02d}Z INFO [worker-{0}] GET /api/v1/items/{1} took {0}ms status=200"), 1437, 1437
    ),
    "xml": Sample(
        lines(40, '<item id="{0}"><name>Widget {1}</name><price currency="EUR">{0}.50</price></item>'), 1118, 1118
    ),
    "chinese": Sample(
        "人工智能正在改变我们的生活方式。从智能手机到自动驾驶汽车、这些技术已经成为日常生活的一部分。然而、我们也必须考虑"
        "它们带来的风险和挑战、例如隐私、安全和就业问题。政府、企业和公民需要共同努力、制定合理的规则。",
        111,
        61,
    ),
    "japanese": Sample(
        "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
        "何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。",
        78,
        61,
    ),
    "korean": Sample(
        "인공지능은 우리의 생활 방식을 바꾸고 있습니다. 이러한 기술은 이미 일상생활의 일부가 되었습니다.", 45, 26
    ),
    "russian": Sample(
        "Искусственный интеллект меняет наш образ жизни. От смартфонов до беспилотных автомобилей эти технологии уже "
        "стали частью повседневности, но мы должны помнить про риски.",
        78,
        38,
    ),
    "german": Sample(
        "Die künstliche Intelligenz verändert unsere Lebensweise. Von Mobiltelefonen bis zu selbstfahrenden Autos sind "
        "diese Technologien bereits Teil des Alltags geworden, doch müssen wir auch die Risiken berücksichtigen.",
        54,
        40,
    ),
    "greek": Sample("νοημοσύνη που αλλάζει τον τρόπο ζωής μας: από τα κινητά έως τα αυτόνομα αυτοκίνητα.", 73, 26),
    "emoji": Sample("Great! 😀🎉🚀 Let's go 👍🏽 ❤️ " * 20, 381, 261),
}
LATIN = ("prose", "python", "python-dense", "json-lines", "json-indented", "json-compact", "csv", "log", "xml")
"""What newer encodings make no fewer tokens of."""


@pytest.mark.parametrize("name", SAMPLES)
def test_findings_f_s6_an_estimate_is_near_the_truth(name: str) -> None:
    sample = SAMPLES[name]
    assert 0.9 <= text_tokens(sample.text) / sample.cl100k <= 1.5


@pytest.mark.parametrize("name", LATIN)
def test_findings_f_s6_also_for_newer_encodings(name: str) -> None:
    sample = SAMPLES[name]
    assert 0.9 <= text_tokens(sample.text) / sample.o200k <= 1.5


@pytest.mark.parametrize("name", SAMPLES)
def test_a_long_text_is_sampled(name: str) -> None:
    """Its cost has a bound, and its estimate is that of its pieces."""
    text = SAMPLES[name].text
    times = 400_000 // len(text.encode())
    assert text_tokens((text + "\n") * times) / times == pytest.approx(text_tokens(text + "\n"), rel=0.1)


def test_the_cost_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    tokens = token_estimate._tokens

    def noted(data: bytes) -> float:
        looked.append(len(data))
        return tokens(data)

    monkeypatch.setattr(token_estimate, "_tokens", noted)
    for size in (10, 32_768, 100_000, 10_000_000):
        bytes_tokens(b"word " * (size // 5))
    assert looked == [10, 32_765, 32_768, 32_768]


def test_long_texts_of_one_length_and_with_the_same_ends_are_told_apart() -> None:
    end = "word " * 20
    texts = [f"{end}{middle}{end}" for middle in ("word " * 400, "7 + 3 = " * 250, "x" * 2000)]
    assert len({*map(len, texts)}) == 1
    asked = [Request(model="m", messages=(Message(role="user", content=(Text(text=text),)),)) for text in texts]
    found = [estimate(request) for request in asked]
    assert len({*found}) == len(texts)
    assert [estimate(request) for request in reversed(asked)] == found[::-1]


def test_no_text_has_no_tokens() -> None:
    assert text_tokens("") == 0
