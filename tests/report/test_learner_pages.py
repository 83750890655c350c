"""A learner's pages: where it is, what it learned, what was refused and why, at every moment of its life."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.cards.card import Status
from kace.cards.store import TreeStore
from kace.files import lock_folder
from kace.learning.report import report_of
from kace.learning.study import StepName
from tests.card_samples import DOMAINS, a_card
from tests.recorded import recorded
from tests.report.hostile import CORPUS
from tests.report.opened import opened
from tests.report.page_audit import Audit, body_of
from tests.report.tree_views import Shown, page_of, workspace_of

REAL = recorded("learning_run") / "tree"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A finished learner, to be changed."""
    shutil.copytree(REAL, tmp_path / "oak")
    return tmp_path / "oak"


def served(folder: Path, path: str = "", **query: str) -> Shown:
    """A page of the learner as it is served."""
    return page_of(workspace_of(folder), f"/learner/{folder.name}{path}", **query)


def text_of(page: Shown) -> str:
    return Audit(page.body).text


def cut(tree: Path, keep: Callable[[dict[str, object]], bool]) -> list[str]:
    """Keep the steps up to the first that is not wanted; the lines that are left."""
    path = tree / "learn" / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    end = next((n for n, line in enumerate(lines) if not keep(json.loads(line))), len(lines))
    path.write_text("".join(lines[:end]))
    return lines[:end]


def before_hard_cards(step: dict[str, object]) -> bool:
    return not (step["epoch"] == 2 and step["place"] == "HS")


# Finished and under way


def test_a_finished_run_tells_what_was_learned_and_rests(tree: Path):
    page = served(tree)
    said = text_of(page)
    assert page.refresh is None
    assert "Finished. The tree is frozen under f90672fd8a70" in said
    assert "56.2% without cards: 9 of 16 right, 33% to 77%" in said
    assert "exchange/exchange" in said, "the teacher is named"
    assert "RUBRIC_ HOLLOW_ RUN_ COST" in said and "too few problems" in said and "−100.0" not in said


def test_a_learner_that_holds_the_lock_is_at_work_and_looking_takes_no_lock(tree: Path):
    cut(tree, before_hard_cards)
    for path in (tree / "learn").rglob("*"):
        os.utime(path, (1, 1))
    assert "stopped" in text_of(served(tree)) and "The same command resumes it" in text_of(served(tree))
    lock = lock_folder(tree / "learn")
    working = served(tree)
    assert "at work" in text_of(working) and working.refresh is not None and working.refresh <= 5
    os.close(lock)
    os.close(lock_folder(tree / "learn"))  # would be refused if a page held it


def test_requests_that_wait_are_led_to(tree: Path, tmp_path: Path):
    cut(tree, before_hard_cards)
    letters = tmp_path / "exchange"
    letters.mkdir()
    (letters / "epoch-2-add-hs-x-propose-0-00000000.request.md").write_text("please")
    lock = lock_folder(tree / "learn")
    with opened(tree, letters) as client:
        page = Audit(body_of(client.get("/learner/oak").text))
    os.close(lock)
    assert "waiting for the teacher" in page.text and "1 request to answer" in page.text
    assert "/inbox/exchange" in page.links


# Half-written


def test_a_page_can_be_made_after_every_step_and_within_every_line(tree: Path):
    path = tree / "learn" / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for count in range(0, len(lines), 4):
        path.write_text("".join(lines[:count]) + lines[count][: len(lines[count]) // 2])
        for part in ("", "/proposals"):
            page = served(tree, part)
            assert page.status == 200 and Audit(page.body).strange == []


@pytest.mark.parametrize("name", ["learn.json", "steps.jsonl", "bill.json"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe", b'{"settings": {"epochs": "x"}}', b"[1]"])
def test_a_missing_or_torn_file_costs_itself_only(tree: Path, name: str, content: bytes | None):
    path = tree / "learn" / name
    path.unlink() if content is None else path.write_bytes(content)
    page = served(tree)
    if (name, content) == ("learn.json", None):
        assert page.status == 404, "then it is no learner"
    else:
        assert page.status == 200 and "<h1>oak</h1>" in page.body


def test_a_step_that_is_none_is_named_with_the_way_out(tree: Path):
    path = tree / "learn" / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:5], "garbage\n", *lines[5:]]))
    said = text_of(served(tree))
    assert "steps.jsonl:6: not a step of the learner" in said and "Cut the file before that line" in said


def test_a_step_of_another_version_is_one_clear_error(tree: Path):
    path = tree / "learn" / "steps.jsonl"
    text = path.read_text()
    admit = text.index('"what":"admit"')
    path.write_text(text[:admit] + text[admit:].replace('"cards":', '"let_in":', 1))
    said = text_of(served(tree))
    assert "'epoch 1 add MS canal_customs admit' was written by another version of kace" in said


def test_a_learner_that_has_only_begun_has_a_page(tmp_path: Path):
    tree = tmp_path / "oak"
    TreeStore.create(tree, DOMAINS, ())
    (tree / "learn").mkdir()
    (tree / "learn" / "learn.json").write_text('{"teacher": "anthropic/x", "train": {"problems": 9}}')
    said = text_of(served(tree))
    assert "No card has been proposed yet." in said and "No card is in the tree yet." in said
    assert "The teacher has proposed no card yet." in said and "No call has been made yet." in said
    assert "No card has been proposed yet." in text_of(served(tree, "/proposals"))


# Proposals


def every_verdict(tree: Path) -> Path:
    """A learner whose teacher proposed a card for every end that one can come to."""
    ends = ("IN_TREE", "RETIRED_NOW", "SAME_AGAIN", "WRONG_ALAS", "NOT_YET")
    kept, retired, same, wrong, late = (a_card(f"EXACT_IS_{end}") for end in ends)
    TreeStore.create(tree, DOMAINS, (kept, a_card(retired.card_id, status=Status.DEPRECATED), a_card()))
    cards = [card.model_dump(mode="json") for card in (kept, retired, same, wrong)]
    unread = {"card_id": "", "by": "parser", "rule": "bad_block", "reason": "no end tag"}
    false = {"card_id": wrong.card_id, "by": "teacher", "rule": "wrong", "reason": "2 + 2 is 4"}
    waiting = {"cards": [late.model_dump(mode="json")], "refused": []}
    steps = {
        StepName("add", "propose", 1, "MS algebra"): {"cards": cards, "refused": [unread]},
        StepName("add", "admit", 1, "MS algebra"): {"cards": cards[:3], "refused": [false]},
        StepName("add", "merge", 1, "MS"): {"merged": [(same.card_id, "EXACT_SUM_OF_SQUARES")]},
        StepName("add", "propose", 1, "HS geometry"): waiting,
    }
    (tree / "learn").mkdir()
    (tree / "learn" / "learn.json").write_text('{"train": {"problems": 9}, "config": {"model": "scripted/x"}}')
    lines = [json.dumps({"v": 1, **step._asdict(), "value": value}) + "\n" for step, value in steps.items()]
    (tree / "learn" / "steps.jsonl").write_text("".join(lines))
    return tree


def test_every_proposal_is_listed_with_what_became_of_it(tmp_path: Path):
    tree = every_verdict(tmp_path / "oak")
    found = {proposal.card_id or "unnamed": proposal for proposal in report_of(tree).proposals}
    assert {name: proposal.fate for name, proposal in found.items()} == {
        "EXACT_IS_IN_TREE": "kept",
        "EXACT_IS_RETIRED_NOW": "retired",
        "EXACT_IS_SAME_AGAIN": "merged",
        "EXACT_IS_WRONG_ALAS": "refused",
        "unnamed": "refused",
        "EXACT_IS_NOT_YET": "waiting",
    }
    page = Audit(served(tree, "/proposals").body)
    assert "Refused by the teacher for wrong : 2 + 2 is 4" in page.text
    assert "Refused by the reader of replies for bad_block : no end tag" in page.text
    assert "Merged into EXACT_ SUM_ OF_ SQUARES" in page.text
    assert "/tree/oak/card/EXACT_IS_IN_TREE" in page.links


@pytest.mark.parametrize("text", CORPUS)
def test_nothing_that_a_teacher_or_a_file_says_becomes_markup(tmp_path: Path, text: str):
    tree = every_verdict(tmp_path / "oak")
    path = tree / "learn" / "steps.jsonl"
    for old in ("because", "no end tag", "2 + 2 is 4", "Merged into", "bad_block", "MS algebra"):
        path.write_text(path.read_text().replace(json.dumps(old), json.dumps(f"{old} {text}")))
    manifest = {
        "teacher": text,
        "config": {"model": text},
        "settings": {text: text, "epochs": 2},
        "train": {"problems": 1},
    }
    (tree / "learn" / "learn.json").write_text(json.dumps(manifest))
    bill = {"roles": [{"role": text, "calls": 1, "usd": 1.0}]}
    (tree / "learn" / "bill.json").write_text(json.dumps(bill))
    for page in (served(tree), served(tree, "/proposals"), served(tree, "/proposals", fate=text)):
        found = Audit(page.body)
        assert found.strange == [] and "could not be read" not in found.text
