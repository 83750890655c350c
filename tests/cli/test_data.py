"""`kace data`: what a user sees of the data sets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kace.problems import published_sets
from tests.command import run_kace
from tests.file_server import FileServer, address, serving


@pytest.fixture
def kace(tmp_path: Path):
    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run_kace(tmp_path, "data", *arguments, **{"HF_ENDPOINT": "http://127.0.0.1:9", **env})

    return run


@pytest.fixture
def evaluate(tmp_path: Path):
    def run(name: str, **env: str) -> subprocess.CompletedProcess[str]:
        told = {"HF_ENDPOINT": "http://127.0.0.1:9", **env}
        return run_kace(tmp_path, "eval", "--data", name, "--model", "scripted/steady", "--dry-run", **told)

    return run


def test_the_list_names_every_set_its_splits_and_that_nothing_is_here_yet(kace):
    rows = [json.loads(line) for line in kace("list", "--json").stdout.splitlines()]
    assert [(row["name"], row["here"]) for row in rows] == [
        ("starter", True),
        ("starter-1000", True),
        ("techniques", True),
        *((known.name, False) for known in published_sets().values()),
    ]
    assert rows[3]["splits"] == {"train": 45, "validation": 45, "test": 30}
    shown = kace("list").stdout
    assert "45 / 45 / 30" in shown and "RUC-AIBOX/OlymMATH" in shown


def test_a_set_that_cannot_be_had_is_one_line_with_the_fix(evaluate):
    done = evaluate("olymmath")
    assert done.returncode == 1 and done.stdout == ""
    said, error = done.stderr.splitlines()
    assert said == "fetching RUC-AIBOX/OlymMATH data/OlymMATH-EN-EASY.jsonl"
    assert "OlymMATH-EN-EASY.jsonl from http://127.0.0.1:9" in error and "--set data_dir=DIR" in error


def test_other_bytes_than_the_published_ones_are_refused(evaluate):
    known = published_sets()["olymmath"]
    with serving(FileServer({address(file): b"{}\n" for file in known.files})) as hub:
        done = evaluate("olymmath", HF_ENDPOINT=hub.url)
    assert done.returncode == 1 and "refused: not the published file" in done.stderr


def test_a_misspelt_set_is_answered_with_the_nearest(evaluate):
    done = evaluate("aime52")
    assert done.returncode == 2 and "did you mean 'aime25'" in done.stderr
