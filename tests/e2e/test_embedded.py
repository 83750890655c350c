"""The whole way on the real engine: command line, ladder, llama.cpp, trace; with the smallest real model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kace.config import user_cache
from kace.errors import KaceError
from kace.models.local import find_weights, pull

NAME = "smollm2-135m"


@pytest.fixture(scope="session")
def weights() -> Path:
    try:
        return pull(find_weights(NAME), cache=user_cache({}) / "models", hub="https://huggingface.co")
    except KaceError as error:
        pytest.skip(f"THE EMBEDDED MODEL IS NOT TESTED: {error}")


def kace(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "KACE_CACHE_DIR": str(folder / "cache")}  # noqa: TID251
    command = [sys.executable, "-m", "kace", *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=250, stdin=subprocess.DEVNULL
    )


@pytest.mark.model
@pytest.mark.slow
def test_a_file_of_problems_is_solved_by_the_embedded_engine(weights: Path, tmp_path: Path):
    (tmp_path / "p.jsonl").write_text(
        '{"problem": "What is 2+2?", "answer": "4"}\n{"problem": "What is 3+4?", "answer": "7"}\n'
    )
    shared = ["--file", "p.jsonl", "--model", f"local/{weights}", "--set", "max_tokens=48", "--json"]
    done = kace("solve", *shared, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(records) == 2
    attempts = [attempt for record in records for attempt in record["attempts"]]
    assert all(attempt["output"] > 0 for attempt in attempts)
    assert sum(attempt["cached"] for attempt in attempts) > 0, "attempts share their prompt's prefix"
    assert all(len(record["attempts"]) == record["paper_calls"] for record in records)
    again = kace("solve", *shared, folder=tmp_path)
    assert sorted(again.stdout.splitlines()) == sorted(done.stdout.splitlines()), "resumed, not solved again"
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    engines = [line for line in running.splitlines() if "run_engine" in line and str(weights) in line]
    assert not engines, "no engine outlives the command"
