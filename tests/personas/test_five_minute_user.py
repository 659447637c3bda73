"""Five minutes with the embedded model: ask, serve, and use it from curl and an official SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.personas.new_home import Home

SCRIPT = """
import sys
from openai import OpenAI

client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="none")
stream = client.chat.completions.create(
    model="any", messages=[{"role": "user", "content": "Say hello."}], max_tokens=8, stream=True
)
print(sum(1 for chunk in stream if chunk.choices and chunk.choices[0].delta.content) > 0)
"""
HELLO = '{"model": "any", "max_tokens": 8, "messages": [{"role": "user", "content": "Say hello."}]}'


def test_from_nothing_to_an_answer_in_each_api(home_with_weights: Home) -> None:
    home = home_with_weights
    assert home.run("xenoglot --version").startswith("xenoglot ")
    assert "usage: xenoglot" in home.run("xenoglot --help")
    assert home.run('xenoglot ask "Say hello." --max-tokens 8').strip()

    home.write("hello.py", SCRIPT)
    with home.serving("xenoglot serve --port 0") as server:
        post = f"curl -sS --fail-with-body {server.url}/v1/%s -H 'content-type: application/json' -d '{HELLO}'"
        chat = json.loads(home.run(post % "chat/completions"))
        assert chat["choices"][0]["message"]["content"]
        message = json.loads(home.run(post % "messages"))
        assert message["content"][0]["text"]
        assert home.run(f"python hello.py {server.url}") == "True\n"
        assert home.run(f"xenoglot health {server.url}").endswith('{"status":"ready"}\n')
        assert server.stop() == 0
    assert "Traceback" not in "".join(server.output)


def test_a_mistake_is_one_line_that_helps(home: Home) -> None:
    """What a newcomer mistypes, and what is not there: no traceback, and an exit code that is not 0."""
    for command, code in (("xenoglot sevre", 2), ("xenoglot serve --prot 9000", 2), ("xenoglot health", 1)):
        home.environment["XENOGLOT_URL"] = "http://127.0.0.1:9"
        told = home.run(command, code=code)
        assert "Traceback" not in told
        assert len(told.strip().splitlines()) <= 2
