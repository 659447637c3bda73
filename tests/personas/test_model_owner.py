"""An own model in ten minutes: a Python function, served in every API, and what happens when it fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.personas.new_home import Home

MODEL = '''
def shout(prompt: str):
    """Answer in capital letters."""
    if "crash" in prompt:
        raise RuntimeError("the model has no weights")
    for word in prompt.split():
        yield word.upper() + " "
'''
SCRIPT = """
import sys
from anthropic import Anthropic

client = Anthropic(base_url=sys.argv[1], api_key="none")
with client.messages.stream(
    model="shout", max_tokens=20, messages=[{"role": "user", "content": "can you hear me"}]
) as stream:
    print("|".join(stream.text_stream))
"""


def test_a_function_is_served_in_every_api(home: Home) -> None:
    home.write("models.py", MODEL)
    assert home.run('xenoglot ask "can you hear me" --python models:shout 2> log.txt').strip() == "CAN YOU HEAR ME"

    home.write("stream.py", SCRIPT)
    with home.serving("xenoglot serve --python models:shout --port 0") as server:
        body = {"model": "shout", "messages": [{"role": "user", "content": "hi there"}]}
        post = f"curl -sS --fail-with-body {server.url}/%s -H 'content-type: application/json' -d '%s'"
        chat = json.loads(home.run(post % ("v1/chat/completions", json.dumps(body))))
        assert chat["choices"][0]["message"]["content"] == "HI THERE "
        gemini = {"contents": [{"role": "user", "parts": [{"text": "hi there"}]}]}
        answer = json.loads(home.run(post % ("v1beta/models/shout:generateContent", json.dumps(gemini))))
        assert answer["candidates"][0]["content"]["parts"] == [{"text": "HI THERE "}]
        assert "".join(home.run(f"python stream.py {server.url}").split("|")) == "CAN YOU HEAR ME \n"
        assert '"shout"' in home.run(f"curl -sS {server.url}/v1/models")


def test_an_error_in_the_model_is_the_owner_s_to_see(home: Home) -> None:
    """The client learns that it failed; the owner, on the terminal, learns where."""
    home.write("models.py", MODEL)
    with home.serving("xenoglot serve --python models:shout --port 0") as server:
        body = json.dumps({"model": "shout", "messages": [{"role": "user", "content": "crash"}]})
        post = f"curl -sS {server.url}/v1/chat/completions -H 'content-type: application/json' -d '{body}'"
        told = home.run(post)
        assert json.loads(told)["error"]["message"]
        assert "no weights" not in told
        assert server.stop() == 0
    assert "the model has no weights" in "".join(server.output)
