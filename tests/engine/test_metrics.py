"""What requests did, added up."""

from xenoglot.engine.metrics import EngineMetrics, Meter, Timings

ONE = Timings(cache_n=3, prompt_n=10, prompt_ms=100.0, predicted_n=20, predicted_ms=400.0)
SLOWER = Timings(prompt_n=10, prompt_ms=200.0, predicted_n=20, predicted_ms=800.0)


def test_nothing_has_no_rate() -> None:
    assert Meter().measures("m", 4, 0) == EngineMetrics(model="m", slots=4)


def test_the_latest_counts_for_a_fifth() -> None:
    meter = Meter()
    meter.add([ONE], finished=True)
    meter.add([SLOWER], finished=True)
    assert meter.measures("m", 4, 2) == EngineMetrics(
        model="m",
        slots=4,
        starts=2,
        finished=2,
        prompt_tokens=23,
        cached_tokens=3,
        generated_tokens=40,
        prompt_seconds=0.3,
        generation_seconds=1.2,
        prompt_rate=90.0,
        generation_rate=45.0,
    )


def test_what_was_broken_off_has_no_times() -> None:
    meter = Meter()
    meter.add([], finished=False)
    assert meter.measures("m", 4, 1) == EngineMetrics(model="m", slots=4, starts=1, broken_off=1)


def test_what_took_no_time_tells_no_rate() -> None:
    meter = Meter()
    meter.add([Timings(cache_n=5, predicted_n=1)], finished=True)
    measures = meter.measures("m", 1, 1)
    assert (measures.prompt_tokens, measures.prompt_rate, measures.generation_rate) == (5, None, None)
