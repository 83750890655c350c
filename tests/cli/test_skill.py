"""The skill that teaches agents the command line: every command in it is one, and does what it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from kace.cards.store import open_tree
from kace.cli import app
from kace.cli import serve as verb
from tests.command import commands, run_kace

SKILL = verb.SKILL.read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", SKILL, re.DOTALL)


def test_one_command_writes_it_where_agents_look_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(verb, "find_spec", lambda name: None)
    app(["mcp", "--skill", str(tmp_path / "skills")], standalone_mode=False)
    written = tmp_path / "skills" / "kace" / "SKILL.md"
    assert capsys.readouterr().err == f"skill        {written}\n"
    assert written.read_text(encoding="utf-8") == SKILL
    name, told = re.fullmatch(r"---\nname: (\S+)\ndescription: (.*)\n---\n.*", SKILL, re.DOTALL).groups()
    assert name == written.parent.name and len(json.loads(told)) <= 1024


def test_every_option_and_verb_that_it_names_exists():
    known = dict(commands())
    options = {flag for command in known.values() for param in command.params for flag in param.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", SKILL)) <= options | {"--help"}
    for name, more in re.findall(r"`kace ([a-z-]+)(?: ([a-z-]+))?", SKILL):
        grouped = hasattr(known[name], "commands") and name != "learn"
        assert not grouped or f"{name} {more}" in known, (name, more)


KINDS = {
    "products": "What is {0} times {1}?",
    "remainders": "Which remainder is left when {1} is divided by {0}?",
    "minutes": "How many minutes are {0} hours and {1} minutes?",
}
ANSWERS = {"products": lambda a, b: a * b, "remainders": lambda a, b: b % a, "minutes": lambda a, b: 60 * a + b}


def training() -> str:
    """Thirty problems of three kinds."""
    asked = [(kind, n, 2 * n + 3) for n in range(4, 14) for kind in KINDS]
    rows = [{"problem": KINDS[kind].format(a, b), "answer": str(ANSWERS[kind](a, b))} for kind, a, b in asked]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_its_commands_run_in_their_order_and_leave_what_it_says(tmp_path: Path):
    (problems,), (card,) = blocks("json"), blocks("markdown")
    (tmp_path / "problems.jsonl").write_text(problems)
    (tmp_path / "card.md").write_text(card)
    (tmp_path / "train.jsonl").write_text(training())
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(commands) > 15 and all(line.startswith("kace ") for line in commands)
    printed = {}
    for line in commands:
        done = run_kace(tmp_path, *shlex.split(line)[1:], KACE_MODEL="scripted/dice")
        assert done.returncode == 0, f"{line}: {done.stderr}"
        printed[line] = done
        for told in done.stdout.splitlines() if "--json" in line else ():
            json.loads(told)
    solved = next(done for line, done in printed.items() if line.startswith("kace solve --file"))
    told = [json.loads(line) for line in solved.stdout.splitlines()]
    assert [set(each) >= {"answer", "working", "exit", "recalls"} for each in told] == [True] * 3
    assert list(open_tree(tmp_path / "my-tree").cards) == ["RUBRIC_AVERAGE_SPEED_THERE_AND_BACK"]
    compared = json.loads(next(done for line, done in printed.items() if line.startswith("kace report")).stdout)
    assert "identical" in compared["comparisons"][0]["sentence"]
    (request,) = (tmp_path / "letters").glob("*.request.md")
    assert request.name.replace(".request.", ".reply.") in request.read_text()
    assert "Not finished" in printed["kace learn report learned"].stdout + printed["kace learn report learned"].stderr
    assert (tmp_path / "pages" / "index.html").is_file()
