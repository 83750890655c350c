"""The tutorial: what it prints is what the commands print, with the replies of the real model recorded."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.command import run_kace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-card.md").read_text(encoding="utf-8")
CALLS = ROOT / "tests" / "golden" / "first_card.calls.jsonl"


def test_the_commands_of_the_tutorial_print_what_it_shows(tmp_path: Path):
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    steps = [re.split(r"\n", block, maxsplit=1) for block in re.findall(r"```\n\$ (kace .*?)```", PAGE, re.DOTALL)]
    assert len(steps) == 5
    for command, printed in steps:
        done = run_kace(tmp_path, *shlex.split(command)[1:], KACE_MODEL=f"replay/{CALLS}", KACE_PRESET="starter")
        assert done.returncode == 0, done.stderr
        assert done.stdout + done.stderr == printed, command
    first, second, third = (printed for _, printed in steps[2:])
    assert all("  with 1 card " in each and " right " in each for each in (first, second))
    assert "no card fits" in third or "no card is read" in third


def test_the_card_of_the_tutorial_is_its_example():
    card = (ROOT / "docs" / "examples" / "average-speed.md").read_text(encoding="utf-8")
    assert f"```markdown\n{card}```" in PAGE
