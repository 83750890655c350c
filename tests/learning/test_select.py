"""The epoch is chosen on problems that the learner never saw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kace.cards.card import Difficulty, Status
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import Add, Domain
from kace.ladder.prompt import template
from kace.problems import Problem, problem_rows
from tests.card_examples import a_card
from tests.command import run_kace
from tests.models.chat_server import Answer, ChatServer, Seen, says

DOMAINS = (Domain(name="algebra", description="All of it.", share=1.0),)
VAL = tuple(Problem(f"Problem number {n} asks for {n}.", str(n), f"v{n}") for n in range(12))
SELECT = ("learn", "select", "tree", "--validation", "val.jsonl")
GOOD, BAD = "EXACT_GOOD_CARD", "EXACT_BAD_CARD"
PLAIN = """[retrieval]
router = "words"
relevance_threshold = 0.0
placement = "instructions"
"""


def chat(seen: Seen) -> Answer:
    """Right above 9 without help, below 8 with one card, and not on 11 with another; one lens is always alone."""
    text = "\n".join(message["content"] for message in seen.body["messages"])
    if template("lens_computation_chain") in text:
        return says(f"\\boxed{{-{seen.body['seed'] + 2}}}")
    number = int(text.split("Problem number ")[1].split()[0])
    right = (number >= 10 or (number < 8 and GOOD in text)) and not (number == 11 and BAD in text)
    return says(f"\\boxed{{{number if right else -1}}}")


def learned_tree(folder: Path) -> None:
    """What `kace learn` leaves: a good epoch, and later ones that spoiled it."""
    store = TreeStore.create(folder / "tree", DOMAINS)
    store.apply(Add(a_card(GOOD, difficulty_tag=Difficulty.UNIVERSAL)), author="test")
    store.apply(Add(a_card("EXACT_GONE_CARD", status=Status.DEPRECATED)), author="test")
    store.snapshot("epoch-2")
    store.apply(Add(a_card(BAD, difficulty_tag=Difficulty.UNIVERSAL)), author="test")
    store.snapshot("epoch-10")
    store.freeze()
    (folder / "tree" / "profile.toml").write_text(PLAIN)
    (folder / "val.jsonl").write_text("".join(line + "\n" for line in problem_rows(VAL)))


def test_the_best_epoch_is_chosen_and_a_repeat_costs_nothing(tmp_path: Path):
    learned_tree(tmp_path)
    with ChatServer(chat) as server:
        command = (*SELECT, "--model", "openai/m", "--base-url", server.url, "--out", "best")
        stopped = run_kace(tmp_path, *command, "--max-calls", "40")
        assert stopped.returncode == 1 and "cap of 40 calls" in stopped.stderr
        done = run_kace(tmp_path, *command)
        asked = len(server.requests)
        again = run_kace(tmp_path, *command, "--json")
        assert len(server.requests) == asked
    assert done.returncode == 0, done.stderr
    assert asked == len(VAL) * (2 + 2 * 3), "ES once, MS for each of two"
    assert "best         tree/snapshots/epoch-2.jsonl" in done.stderr
    arms = {arm["name"]: round(arm["accuracy"] * 12) for arm in json.loads(again.stdout)["arms"]}
    assert arms == {"epoch-2": 10, "epoch-10": 9}
    best = TreeStore.open(tmp_path / "best")
    assert best.frozen_hash == open_tree(tmp_path / "tree/snapshots/epoch-2.jsonl").content_hash()
    assert (tmp_path / "best" / "profile.toml").read_text() == PLAIN


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("tree", "--validation", "absent.jsonl"), "no such file"),
        (("nowhere", "--validation", "val.jsonl"), "nowhere"),
        (("tree", "--validation", "val.jsonl", "--model", "nonsense"), "unknown model"),
        (("tree", "--validation", "val.jsonl", "--model", "scripted/steady", "--out", "tree"), "holds another tree"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, arguments: tuple[str, ...], complaint: str):
    learned_tree(tmp_path)
    done = run_kace(tmp_path, "learn", "select", *arguments)
    assert done.returncode == 2, done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
