"""lm-evaluation-harness: tasks of likelihoods and of words, answered by the embedded model through the gateway."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from drive.conftest import CLIENTS, PATIENCE, furnished, gateway

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

TASKS: Final = Path(__file__).parent / "tasks"
OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def evaluated(home: Path, work: Path, url: str, *flags: str) -> None:
    """Have the harness run the tasks in `work`; it must have ended well."""
    model = f"base_url={url}/v1/completions,model=any,tokenizer_backend=remote"
    command: list[str | Path] = [
        CLIENTS / "bin" / "lm_eval",
        "run",
        "--model",
        "local-completions",
        "--model_args",
        model,
    ]
    tasks = ("--tasks", "capitals,counting", "--include_path", ".", "--output_path", "out", "--log_samples")
    done = subprocess.run(
        [*command, *tasks, *flags],
        cwd=work,
        env={"HOME": str(home), "PATH": os.environ["PATH"], **OFFLINE},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def found(work: Path, name: str) -> Path:
    """Return the one file of the results that begins with `name`."""
    (path,) = (work / "out").rglob(f"{name}_*")
    return path


def samples(work: Path, task: str) -> list[JSONObject]:
    """Return what became of each question of a task, in the order of its data."""
    lines = [json.loads(line) for line in found(work, f"samples_{task}").read_text().splitlines()]
    return sorted(lines, key=lambda line: int(line["doc_id"]))


def responses(sample: JSONObject) -> list[JSON]:
    """Return the first response to each request of a question."""
    return [each[0] for each in sample["resps"]]


@pytest.mark.parametrize("batch", ["1", "3"])
def test_findings_d_tasks_of_likelihoods_and_of_words(tmp_path: Path, batch: str) -> None:
    home, work = furnished(tmp_path)
    shutil.copytree(TASKS, work, dirs_exist_ok=True)
    with gateway(tmp_path) as running:
        evaluated(home, work, running.url, "--batch_size", batch)
        lines = running.lines()
    results = json.loads(found(work, "results").read_text())["results"]
    assert (results["capitals"]["acc,none"], results["counting"]["exact_match,none"]) == (1, 1)
    for sample in samples(work, "capitals"):
        weighed = [(float(likelihood), greedy == "True") for likelihood, greedy in responses(sample)]
        right = sample["doc"]["answer"]
        assert [greedy for _, greedy in weighed] == [index == right for index in range(len(weighed))]
        assert max(weighed)[0] == weighed[right][0] < 0
    assert [responses(sample) for sample in samples(work, "counting")] == [[" five"], [" seven"]]
    asked = [line for line in lines if line["method"] == "POST"]
    assert {line["status"] for line in asked} == {200}
    assert {line["route"] for line in asked} == {"/v1/tokenize", "/v1/completions"}
