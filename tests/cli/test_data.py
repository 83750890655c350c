"""Data sets by their names, as a user meets them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kace.problems import published_sets
from tests.command import run_kace
from tests.file_server import FileServer, address, serving


@pytest.fixture
def evaluate(tmp_path: Path):
    def run(name: str, **env: str) -> subprocess.CompletedProcess[str]:
        told = {"HF_ENDPOINT": "http://127.0.0.1:9", **env}
        return run_kace(tmp_path, "eval", "--data", name, "--model", "scripted/steady", "--dry-run", **told)

    return run


def test_a_set_that_cannot_be_had_is_one_line_with_the_fix(evaluate):
    done = evaluate("olymmath")
    assert done.returncode == 1 and done.stdout == ""
    (error,) = done.stderr.splitlines()
    assert "OlymMATH-EN-EASY.jsonl from http://127.0.0.1:9" in error and "--set data_dir=DIR" in error


def test_other_bytes_than_the_published_ones_are_refused(evaluate):
    parts = published_sets()["olymmath"].values()
    files = {address(file): b"{}\n" for part in parts for file in part.files}
    with serving(FileServer(files)) as hub:
        done = evaluate("olymmath", HF_ENDPOINT=hub.url)
    assert done.returncode == 1 and "refused: not the published file" in done.stderr


def test_a_misspelt_set_is_answered_with_the_nearest(evaluate):
    done = evaluate("aime52")
    assert done.returncode == 2 and "did you mean 'aime25'" in done.stderr
