"""`kace solve --tree`: the tree is read, recorded by content, and a changed one is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Kace
from tests.models.chat_server import ChatServer, says

CARD = {
    "card_id": "ANTI_GUESSING_DICE_RULE",
    "payload": "Useful when:\n- dice are thrown\n\nCount the sides first.",
    "routing_conditions": [],
    "difficulty_tag": "universal",
    "domain_tags": ["universal"],
    "helpfulness_score": 0.0,
    "provenance": {"source": "test"},
}

WORKED = "Example:\nTwo dice are thrown. How many results?\nWorked:\n6 * 6 = 36.\n\\boxed{36}"


@pytest.fixture
def kace(kace: Kace, tmp_path: Path) -> Kace:
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    (tmp_path / "p.jsonl").write_text('{"problem": "Throw dice.", "answer": "3", "id": "t1"}\n')
    assert kace("tree", "init", "tree", "starter").returncode == 0
    assert kace("tree", "add", "tree", "card.json").returncode == 0
    return kace


SOLVE = ["solve", "--file", "p.jsonl", "--model", "scripted/dice?sides=1000", "--tree", "tree", "--out", "run"]


def test_the_audit_line_and_the_record_say_what_was_read(kace, tmp_path: Path):
    done = kace(*SOLVE)
    assert done.returncode == 0, done.stderr
    assert "MS:universal shown 1 of 1 card, HS:universal shown 1 of 1 card " in done.stdout
    record = json.loads((tmp_path / "run" / "traces.jsonl").read_text())
    assert [recall["cards"] for recall in record["recalls"]] == [[CARD["card_id"]]] * 2
    assert all(attempt["prompt"] for attempt in record["attempts"])
    assert json.loads((tmp_path / "run" / "run.json").read_text())["tree"]["cards"] == 1


def test_a_worked_card_that_does_not_fit_is_shown_only_where_the_whole_block_is_asked_for(kace, tmp_path: Path):
    (tmp_path / "p.jsonl").write_text('{"problem": "A coin is thrown.", "answer": "3", "id": "t1"}\n')
    told = {**CARD, "card_id": "EXACT_WORKED_CARD", "payload": f"{CARD['payload']}\n\n{WORKED}"}
    (tmp_path / "card.json").write_text(json.dumps(told))
    assert kace("tree", "edit", "tree", CARD["card_id"], "--deprecate", "--note", "replaced").returncode == 0
    assert kace("tree", "add", "tree", "card.json").returncode == 0
    solved = kace(*SOLVE, "--explain").stdout
    assert "MS:universal abstained from 1 card, HS:universal abstained from 1 card  " in solved
    assert "-- MS abstained from 1 card\n" in solved
    whole = kace(*SOLVE[:-1], "whole", "--set", "placement=instructions", "--set", "relevance_threshold=0").stdout
    assert "MS:universal shown 1 of 1 card, HS:universal shown 1 of 1 card " in whole


def test_a_tree_that_changed_is_refused_by_its_run(kace, tmp_path: Path):
    kace(*SOLVE)
    before = kace("tree", "show", "tree", CARD["card_id"], "--json").stdout
    assert kace("tree", "edit", "tree", CARD["card_id"], "--deprecate", "--note", "no lift").returncode == 0
    done = kace(*SOLVE)
    assert done.returncode == 2
    assert "another tree 'hash'" in done.stderr
    (tmp_path / "before.json").write_text(before)
    assert kace("tree", "edit", "tree", CARD["card_id"], "before.json").returncode == 0
    assert kace(*SOLVE).returncode == 0, "the same content again is the same tree"


def test_skip_es_begins_at_ms_where_a_card_speaks_of_the_problem(kace, tmp_path: Path):
    place = {"difficulty_tag": "medium", "domain_tags": ["combinatorics"]}
    wheel = {**CARD, "card_id": "EXACT_WHEEL_CARD", **place}
    wheel["payload"] = "Useful when:\n- a wheel spins\n\nCount.\n\n" + WORKED.replace(
        "Two dice are thrown", "A wheel spins"
    )
    (tmp_path / "card.json").write_text(json.dumps(wheel))
    assert kace("tree", "add", "tree", "card.json").returncode == 0
    (tmp_path / "p.jsonl").write_text(
        '{"problem": "A wheel spins twice.", "answer": "3", "id": "known"}\n'
        '{"problem": "A coin is thrown.", "answer": "3", "id": "strange"}\n'
    )
    low = ("--set", "relevance_threshold=0.1")  # two words say little
    done = kace(*SOLVE, "--set", "es_policy=skip", *low)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (tmp_path / "run" / "traces.jsonl").read_text().splitlines()]
    first = {record["label"]: record["attempts"][0]["tier"] for record in records}
    assert first == {"known": "MS", "strange": "ES"}
    again = kace(*SOLVE, *low)
    assert again.returncode == 2 and "'es_policy' ('skip', now 'locked')" in again.stderr


def test_explain_prints_what_is_sent_even_if_no_model_answers(kace):
    problem = "Dice are thrown once."
    numbers = iter(range(1_000, 2_000))
    with ChatServer(lambda seen: says(f"\\boxed{{{next(numbers)}}}")) as server:
        solved = kace("solve", problem, "--model", "openai/m", "--base-url", server.url, "--tree", "tree")
        sent = [json.dumps(seen.body["messages"]) for seen in server.requests]
    assert solved.returncode == 0, solved.stderr
    silent = ("--model", "scripted/silent", "--tree", "tree", "--explain")
    planned = json.loads(kace("solve", problem, *silent, "--json").stdout)["messages"]
    assert len(sent) == 10
    assert sorted(map(json.dumps, planned)) == sorted(sent)
    text = kace("solve", problem, *silent).stdout
    assert "-- sent to ES 1\n   -- system\n" in text
    assert f"-- MS {CARD['card_id']}\n" in text
    assert "Count the sides first." in text
