"""The page Playground: requests of a form in every dialect, with tools and images, and answers read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import httpx2
import pytest

from tests.gateway.admin.administered import CLIENT, KEYS, SECRETS, Administered
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.gateway.console.pages.playground import shown_dialects
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.console.visited import Visitor
    from xenoglot.model.json import JSONObject

TALKING = shown_dialects()
IMAGE = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs="
FORM: JSONObject = {
    "model": "m",
    "stream": True,
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": IMAGE}}],
        }
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Administered]:
    with (
        Upstream(*answers("chat", text=("Hel", "lo.")).rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}) as running,
    ):
        yield running


def sent(viewer: Visitor, action: str, body: JSONObject) -> JSONObject:
    """Return what the script gets."""
    answer = viewer.post_json(f"/playground/{action}", body)
    assert answer.status_code == 200
    return cast("JSONObject", answer.json())


@pytest.mark.parametrize("dialect", TALKING)
def test_a_form_is_a_request_in_each_dialect(gateway: Administered, viewer: Visitor, dialect: str) -> None:
    made = sent(viewer, "write", {"from": "chat", "to": dialect, "text": json.dumps(FORM)})
    assert [loss for loss in made["losses"] if loss["how"] == "dropped"] == []
    url, headers = f"{gateway.url}{made['path']}", {"authorization": f"Bearer {CLIENT}"}
    answer = httpx2.post(url, content=made["body"], headers=headers, timeout=TIMEOUT)
    assert answer.status_code == 200
    found = sent(viewer, "read", {"from": dialect, "to": "chat", "text": answer.text})
    assert '"content":"Hel"' in found["stream"]
    part = answer.text[: answer.text.rindex("\n", 0, len(answer.text) * 2 // 3) + 1]
    assert "stream" in sent(viewer, "read", {"from": dialect, "to": "chat", "text": part})


def test_what_is_no_request_is_reported(viewer: Visitor) -> None:
    made = sent(viewer, "write", {"from": "chat", "to": "messages", "text": '{"messages": 3}'})
    assert (made["path"], "body" in made) == ("$.body", False)
