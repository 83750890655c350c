from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command import run_kace
from tests.report.samples import a_run


@contextmanager
def viewing(folder: Path, *arguments: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`kace view` under way, and its address."""
    command = [sys.executable, "-m", "kace", "view", *arguments, "--port", "0"]
    surroundings = {**os.environ, **env}  # noqa: TID251
    process = subprocess.Popen(
        command, cwd=folder, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_what_it_finds_until_it_is_told_to_end(tmp_path, number):
    a_run(tmp_path / "runs" / "first")
    with viewing(tmp_path, "--no-browser") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=600) as answer:
            assert answer.status == 200
        process.send_signal(number)
        assert process.wait(600) == 0


def test_it_opens_the_browser(tmp_path):
    a_run(tmp_path / "first")
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened.part && mv {tmp_path}/opened.part {tmp_path}/opened\n')
    script.chmod(0o755)
    with viewing(tmp_path, "first", BROWSER=f"{script} %s") as (process, address):
        deadline = time.monotonic() + 20
        while not (tmp_path / "opened").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (tmp_path / "opened").read_text().strip() == address
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0


def test_it_writes_files_and_says_where(tmp_path):
    a_run(tmp_path / "runs" / "first")
    done = run_kace(tmp_path, "view", "--export", "out")
    assert done.returncode == 0, done.stderr
    assert "out/index.html" in done.stderr
    assert (tmp_path / "out" / "index.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing-here"], "holds nothing to look at"),
        (["."], "nothing to look at"),
    ],
)
def test_it_says_in_one_line_what_is_wrong(tmp_path, arguments, said):
    (tmp_path / "runs").mkdir()
    done = run_kace(tmp_path, "view", *arguments, "--no-browser")
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1 and "Fix:" in done.stderr
