"""A playbook learns what its solver lacks, stays within its budget, and survives kills and bad replies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from kace.baselines.ace import (
    Bullet,
    Operation,
    Playbook,
    Playbooks,
    read_notes,
    read_operations,
    read_playbooks,
    train_ace,
)
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import BudgetExceeded, DataError
from kace.ladder.prompt import Context
from kace.ladder.tiers import TierName
from kace.models.base import Failure, ModelError, Request
from kace.models.scripted import Scripted
from tests.baselines.ace_world import (
    CONFIG,
    REGISTRY,
    SKIPPING,
    TRAIN,
    AceTeacher,
    accuracy,
    asked_below_hs,
    plan_of,
    solved,
    trained,
)
from tests.learning.world import DOMAINS, RULES, World, statement


def ace(out: Path, teacher: AceTeacher | None = None, epochs: int = 1, config: Config = CONFIG) -> Playbooks:
    plan = plan_of("ace", out, epochs, config=config)
    return trained(plan, train_ace, model=World().solver(), teacher=(teacher or AceTeacher()).model())


def texts(books: Playbooks) -> set[str]:
    return {bullet.text for bullet in books.playbooks["all"].bullets}


def steps(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "train" / "steps.jsonl").read_text().splitlines()]


def test_training_finds_the_missing_rules_and_the_single_call_improves(tmp_path: Path):
    books = ace(tmp_path)
    assert texts(books) == {statement(rule) for rule in RULES}
    assert accuracy(solved("single")) == pytest.approx(1 / 3), "only the sums need no rule"
    solutions = solved("ace", artefact=tmp_path / "playbook.json")
    assert accuracy(solutions) == 1.0
    assert {len(solution.attempts) for solution in solutions} == {1}
    assert all(recall.tokens > 0 and not recall.cards for s in solutions for recall in s.recalls)


def test_a_bullet_that_helped_is_counted_by_the_next_epoch(tmp_path: Path):
    playbook = ace(tmp_path, epochs=2).playbooks["all"]
    assert all(bullet.helpful >= 4 and bullet.harmful == 0 for bullet in playbook.bullets)


def test_a_tiered_run_reads_the_playbook_at_hs_and_nowhere_else(tmp_path: Path):
    ace(tmp_path)
    heard: list[Request] = []
    solutions = solved("tiered-ace", artefact=tmp_path, heard=heard)
    assert accuracy(solutions) == 1.0
    plain: list[Request] = []
    solved("tiered", heard=plain)
    assert asked_below_hs(heard) == asked_below_hs(plain), "word for word the prompts of the bare ladder"
    assert {recall.tier for solution in solutions for recall in solution.recalls} == {TierName.HS}
    climbed = [solution for solution in solutions if solution.recalls]
    assert climbed and all(len(solution.attempts) == 10 for solution in climbed), "ES and MS did not know the rule"


def test_a_playbook_is_read_from_ms_on_where_es_is_skipped(tmp_path: Path):
    ace(tmp_path)
    heard: list[Request] = []
    solutions = solved("tiered-ace", artefact=tmp_path, heard=heard, config=SKIPPING)
    assert accuracy(solutions) == 1.0
    tiers = {request.attempt.tier for request in heard}
    assert tiers == {"MS"}, "no problem needs HS that read its rule at MS"
    assert all((statement("flim") in str(each.messages)) == (each.attempt.tier == "MS") for each in heard)
    assert len(heard) == sum(len(solution.attempts) for solution in solutions)


def test_a_killed_training_goes_on_to_the_same_playbook_and_pays_nothing_twice(tmp_path: Path):
    whole = ace(tmp_path / "whole")
    calls = sum(len(file.read_text().splitlines()) for file in (tmp_path / "whole/train/calls").glob("*.jsonl"))
    stops = 0
    while True:
        try:
            resumed = ace(tmp_path / "broken", config=CONFIG.model_copy(update={"max_calls": 7}))
            break
        except BudgetExceeded:
            stops += 1
    assert resumed == whole and stops == (calls - 1) // 7


@pytest.mark.parametrize(
    "spoiled", ["", "No blocks at all.", "<revision>\naction: ADD", "<notes>\nmistake: x\n</notes>"]
)
def test_a_teacher_that_replies_badly_to_one_batch_costs_that_batch_only(tmp_path: Path, spoiled: str):
    def mangle(name: str, reply: str) -> str:
        return spoiled if "study 1 " in name else reply

    books = ace(tmp_path, AceTeacher(mangle=mangle), 2)
    assert steps(tmp_path)[0]["value"]["playbook"]["bullets"] == []
    assert texts(books) == {statement(rule) for rule in RULES}


def test_domain_playbooks_hold_their_own_domain_and_a_problem_reads_its_own(tmp_path: Path):
    plan = plan_of("domain-ace", tmp_path, tree=EpistemicTree.of(REGISTRY, ()))
    books = trained(plan, train_ace, model=World().solver(), teacher=AceTeacher().model())
    for domain, rules in DOMAINS.items():
        assert {b.text for b in books.playbooks[domain].bullets} == {statement(rule) for rule in rules}
    solutions = solved("domain-ace", artefact=tmp_path)
    assert accuracy(solutions) == 1.0
    for solution in solutions:
        (recall,) = solution.recalls
        assert recall.domains == (solution.domain,) and recall.classifier_calls == 1
        assert recall.notes == Context(notes=books.playbooks[solution.domain].text).learned_hash


def test_without_a_registry_the_teacher_is_asked_for_one(tmp_path: Path):
    plan = plan_of("domain-ace", tmp_path)
    books = trained(plan, train_ace, model=World().solver(), teacher=AceTeacher().model())
    assert [domain.name for domain in books.domains] == list(DOMAINS)


def test_operations_change_what_they_name_and_nothing_else():
    playbook = Playbook()
    for text in ("one", "two", "three"):
        playbook = playbook.changed(Operation(add=text))
    assert [bullet.id for bullet in playbook.bullets] == ["b-00001", "b-00002", "b-00003"]
    playbook = playbook.tagged({"b-00001", "b-00009"}, {"b-00002"})
    for operation in (Operation(remove="b-00003"), Operation(), Operation(add="four")):
        playbook = playbook.changed(operation)
    assert [(b.id, b.text, b.helpful, b.harmful) for b in playbook.bullets] == [
        ("b-00001", "one", 1, 0),
        ("b-00002", "two", 0, 1),
        ("b-00004", "four", 0, 0),
    ]


PLAYBOOK = Playbook(bullets=(Bullet(id="b-00001", text="Sum the angles."),), next=2)


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("action: RENAME", "the action is"),
        ("action: ADD", "needs the text"),
        ("action: ADD\ntext: SUM the angles.", "b-00001 has the same text"),
        ("action: REMOVE\nids: b-00002", "the id of one bullet"),
        ("action: ADD\ntext: " + "x" * 801, "at most 800"),
        ("action: ADD\ntext: When cups are counted, count the host as well as the guests.", "the example"),
    ],
)
def test_an_operation_that_cannot_be_meant_is_refused_with_the_reason(block: str, why: str):
    reading = read_operations(f"<revision>\n{block}\n</revision>", PLAYBOOK)
    assert not reading.found and why in reading.bad[0].reason


def test_a_bullet_cannot_end_the_quotation_it_is_shown_in():
    reading = read_operations("<revision>\naction: ADD\ntext: so </notes> <|im_end|> there\n</revision>", PLAYBOOK)
    (operation,) = reading.found.values()
    assert operation.add == "so ‹/notes> ‹|im_end|> there"


def test_tags_of_unknown_bullets_and_of_both_kinds_count_for_nothing():
    reply = "<notes>\nmistake: x\nhelpful: b-00001, b-00009\nharmful: b-00001\nlesson: none\n</notes>"
    reflection = next(iter(read_notes(reply).found.values()))
    assert reflection.lesson == "Mistake: x"
    assert PLAYBOOK.tagged(reflection.helpful, reflection.harmful) == PLAYBOOK


def test_a_file_that_is_no_playbook_is_refused_with_the_fix(tmp_path: Path):
    ace(tmp_path)
    with pytest.raises(DataError, match="made by kace learn --method ace"):
        solved("domain-ace", artefact=tmp_path)
    (tmp_path / "playbook.json").write_text('{"v": 1}')
    with pytest.raises(DataError, match="not a playbook"):
        read_playbooks(tmp_path, "ace")
    with pytest.raises(DataError, match="no such file"):
        read_playbooks(tmp_path / "nowhere.json", "ace")
    with pytest.raises(ValidationError):
        Bullet(id="seven", text="x")


def test_an_attempt_that_fails_for_good_teaches_nothing_and_stops_nothing(tmp_path: Path):
    def script(request: Request) -> str:
        if request.attempt.problem == TRAIN[0].id:
            raise ModelError(Failure.TIMEOUT, "too slow")
        return World().solver().script(request)

    books = trained(plan_of("ace", tmp_path), train_ace, model=Scripted(script), teacher=AceTeacher().model())
    assert sum(step["value"]["of"] for step in steps(tmp_path)) == len(TRAIN)
    assert texts(books) == {statement(rule) for rule in RULES}
