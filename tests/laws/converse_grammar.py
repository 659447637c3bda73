"""What the events of a Converse stream allow.

Source: `ConverseStreamOutput` in `bedrock-runtime/2023-09-30/service-2.json` of botocore: the names of the events,
their required fields and their unions are read from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.loaders import Loader

from xenoglot.codec.framing.binary_events import EXCEPTION
from xenoglot.codec.json.json_io import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject

SHAPES: JSONObject = Loader().load_service_model("bedrock-runtime", "service-2")["shapes"]
EVENTS: JSONObject = SHAPES["ConverseStreamOutput"]["members"]

ORDER = {
    "start": {"messageStart": "between"},
    "between": {
        "contentBlockStart": "inside",
        "contentBlockDelta": "inside",
        "messageStop": "stopped",
    },
    "inside": {"contentBlockDelta": "inside", "contentBlockStop": "between"},
    "stopped": {"metadata": "done"},
    "done": {},
}
"""State -> event -> next state; an exception ends the stream in any."""


def check_converse(events: Iterable[ServerSentEvent]) -> str:
    """Walk a whole stream of events; return the state it ended in, `done` or `failed`."""
    state, index = "start", 0
    for event in events:
        name, data = event.event or "", decode_json(event.data)
        assert state != "failed", f"`{name}` after an exception"
        assert event.comment is None, "the format has no comments"
        assert name in EVENTS, f"`{name}` is no event of the stream"
        _check_shape(data, EVENTS[name]["shape"], name)
        if SHAPES[EVENTS[name]["shape"]].get("exception"):
            assert (event.id, data.get("message", "")) != (None, ""), "an exception has its own type and a message"
            assert event.id == EXCEPTION
            state = "failed"
            continue
        assert event.id is None
        assert name in ORDER[state], f"`{name}` while `{state}`"
        state = ORDER[state][name]
        if "contentBlockIndex" in data:
            assert data["contentBlockIndex"] == index, f"`{name}` of another block than {index}"
            index += name == "contentBlockStop"
    assert state in {"done", "failed"}, f"the stream ended while `{state}`"
    return state


def _check_shape(value: JSON, shape: str, path: str) -> None:
    """Check that an object has the required fields of its shape, and one field if it is a union."""
    described = SHAPES[shape]
    if described["type"] == "list":
        for item in value:
            _check_shape(item, described["member"]["shape"], f"{path}[]")
    if described["type"] != "structure" or described.get("document"):
        return
    missing = {*described.get("required", ())} - value.keys()
    assert not missing, f"`{path}` lacks {missing}"
    known = [name for name in value if name in described["members"]]
    assert not described.get("union") or len(known) <= 1, f"`{path}` is a union of one field, and has {known}"
    for name in known:
        _check_shape(value[name], described["members"][name]["shape"], f"{path}.{name}")
