"""A learner's process opens what it was given, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
from pathlib import Path
from kace.files import (confine_files)
given, secret = Path(sys.argv[1], "train.jsonl"), Path(sys.argv[1], sys.argv[2])
BEFORE = os.open(secret, os.O_RDONLY)
out = Path(sys.argv[1], "out")
confine_files([given, out])
print(given.read_text())
Path(sys.argv[1], "out", "note").write_text("kept")
{attempt}
print("read", secret)
"""


def behind_the_wall(folder: Path, secret: str, attempt: str) -> subprocess.CompletedProcess[str]:
    (folder / "out").mkdir()
    (folder / "train.jsonl").write_text("training")
    (folder / "test.jsonl").write_text("secret")
    (folder / "out" / "link.jsonl").symlink_to(folder / "test.jsonl")
    script = SCRIPT.replace("{attempt}", attempt)
    return subprocess.run([sys.executable, "-c", script, folder, secret], capture_output=True, text=True, check=False)


ATTEMPTS = {
    "a path": "secret.read_text()",
    "a builtin": "open(secret).read()",
    "a descriptor": "import os; os.open(secret, os.O_RDONLY)",
    "a way round": "open(secret.parent / 'out' / '..' / secret.name).read()",
    "a thread": "import threading; e = []\n"
    "def go():\n try: open(secret)\n except PermissionError as x: e.append(x)\n"
    "t = threading.Thread(target=go); t.start(); t.join()\nraise e[0] if e else SystemExit('open')",
    "flags that make nothing": "import os; print(os.read(os.open(secret, os.O_RDONLY | os.O_EXCL), 99))",
    "flags of a directory": "import os; print(os.read(os.open(secret, os.O_RDONLY | os.O_CREAT), 99))",
    "its folder": "import os; at = os.open(secret.parent, 0)\nprint(os.read(os.open(secret.name, 0, dir_fd=at), 99))",
    "a hard link": "import os; os.link(secret, out / 'x'); print((out / 'x').read_text())",
    "a new name": "secret.rename(out / 'x'); print((out / 'x').read_text())",
    "a new name for its folder": "import os\nfolder = secret.parent / 'held'; folder.mkdir()\n"
    "os.rename(secret, folder / secret.name); print((folder / secret.name).read_text())",
    "a folder that is there": "try: secret.parent.mkdir()\nexcept OSError: print(secret.read_text())",
    "a folder in bytes": "try: os.mkdir(os.fsencode(secret.parent))\nexcept OSError: print(secret.read_text())",
    "a name in a folder": "os.chdir(out); at = os.open(out, 0)\n"
    "os.rename('../' + secret.name, 'x', src_dir_fd=at, dst_dir_fd=at); print((out / 'x').read_text())",
    "a link of its own": "(out / 'x').symlink_to(secret); print((out / 'x').read_text())",
    "a link to its folder": "(out / 'x').symlink_to(secret.parent); print((out / 'x' / secret.name).read_text())",
    "a database": "import sqlite3; print(sqlite3.connect(secret).execute('select 1'))",
    "a memory map": "import mmap; print(mmap.mmap(BEFORE, 0, prot=mmap.PROT_READ)[:])",
    "the process table": "open(f'/proc/self/root{secret}').read()",
    "our own loader": "from kace.problems import load_problems; load_problems(secret)",
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_a_file_that_was_not_given_cannot_be_opened(tmp_path: Path, attempt: str):
    done = behind_the_wall(tmp_path, "test.jsonl", attempt)
    assert done.stdout.startswith("training"), done.stderr
    assert "the learner was not given" in done.stderr
    assert "secret" not in done.stdout and done.returncode != 0
    assert (tmp_path / "out" / "note").read_text() == "kept"


PROGRAMS = {
    "a program": "import subprocess; subprocess.run(['cat', secret])",
    "a shell": "import os; os.system(f'cat {secret}')",
    "an interpreter": "import subprocess; subprocess.run([sys.executable, '-c', f'open({str(secret)!r}).read()'])",
    "a module": "import subprocess; subprocess.run([sys.executable, '-m', 'kace', 'data', 'check', secret])",
    "another executable": "import subprocess; subprocess.run([sys.executable, secret], executable='/bin/cat')",
    "a spawn": "import os; os.posix_spawn('/bin/cat', ['cat', secret], {})",
    "an exec": "import os; os.execv('/bin/cat', ['cat', secret])",
}


@pytest.mark.parametrize("attempt", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_no_other_program_is_started(tmp_path: Path, attempt: str):
    done = behind_the_wall(tmp_path, "test.jsonl", attempt)
    assert "the learner starts no other program" in done.stderr
    assert "secret" not in done.stdout and done.returncode != 0


def test_workers_of_ours_are_started(tmp_path: Path):
    judged = """
import asyncio
from kace.answers.extract import Answer
from kace.answers.equal import Judge
async def judged():
    async with Judge(workers=1, seconds=60) as judge:
        return await judge(Answer.of(r"\\sin^2 x + \\cos^2 x + y"), Answer.of("1 + y"))
print("verdict", asyncio.run(judged()))
"""
    done = behind_the_wall(tmp_path, "test.jsonl", judged)
    assert done.returncode == 0 and "verdict same" in done.stdout, done.stderr


def test_scratch_folders_can_be_made_used_and_taken_away(tmp_path: Path):
    scratch = "import tempfile\nwith tempfile.TemporaryDirectory() as at:\n Path(at, 'x').write_text('x')"
    done = behind_the_wall(tmp_path, "test.jsonl", scratch + "\n assert Path(at, 'x').read_text() == 'x'")
    assert done.returncode == 0, done.stderr


SCRATCH = {
    "a file": "import tempfile\nwith tempfile.TemporaryFile() as f, tempfile.NamedTemporaryFile(): f.write(b'x')",
    "a database": "import sqlite3; sqlite3.connect('').execute('CREATE TABLE t (x)')",
    "a database in memory": "import sqlite3; sqlite3.connect(':memory:').execute('CREATE TABLE t (x)')",
}


@pytest.mark.parametrize("made", SCRATCH.values(), ids=SCRATCH.keys())
def test_scratch_files_can_be_made(tmp_path: Path, made: str):
    done = behind_the_wall(tmp_path, "test.jsonl", made)
    assert done.returncode == 0, done.stderr


def test_a_link_inside_the_folder_leads_nowhere_else(tmp_path: Path):
    done = behind_the_wall(tmp_path, "out/link.jsonl", "secret.read_text()")
    assert "the learner was not given" in done.stderr


def test_libraries_on_the_import_path_can_be_loaded_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    library = tmp_path / "libraries"
    library.mkdir()
    (library / "late_library.py").write_text("loaded = True")
    monkeypatch.setenv("PYTHONPATH", str(library))
    done = behind_the_wall(tmp_path, "test.jsonl", "import late_library; assert late_library.loaded")
    assert done.returncode == 0, done.stderr


def test_the_working_folder_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = behind_the_wall(tmp_path, "test.jsonl", "secret.read_text()")
    assert "the learner was not given" in done.stderr
