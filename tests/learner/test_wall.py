"""A learner's process opens what it was given, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path
from kace.learner.wall import raise_wall
given, secret = Path(sys.argv[1], "train.jsonl"), Path(sys.argv[1], sys.argv[2])
raise_wall([given, Path(sys.argv[1], "out")])
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
    "our own loader": "from kace.problem import load_problems; load_problems(secret)",
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_a_file_that_was_not_given_cannot_be_opened(tmp_path: Path, attempt: str):
    done = behind_the_wall(tmp_path, "test.jsonl", attempt)
    assert done.stdout.startswith("training"), done.stderr
    assert "the learner was not given" in done.stderr
    assert "secret" not in done.stdout and done.returncode != 0
    assert (tmp_path / "out" / "note").read_text() == "kept"


def test_scratch_files_can_be_made(tmp_path: Path):
    scratch = "import tempfile\nwith tempfile.TemporaryFile() as f, tempfile.NamedTemporaryFile(): f.write(b'x')"
    done = behind_the_wall(tmp_path, "test.jsonl", scratch)
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
