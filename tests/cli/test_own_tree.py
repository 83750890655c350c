"""A tree of one's own: begun without domains, a card written by hand, tried on a problem; and the tree that ships."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kace.cards.store import open_tree
from kace.config import load_config, tree_path

ROOT = Path(__file__).parents[2]
CARD = ROOT / "docs" / "examples" / "average-speed.md"
NAME = "RUBRIC_AVERAGE_SPEED_THERE_AND_BACK"
VAN = "A van drives to a market at 20 km/h and back at 60 km/h. What is its average speed for the round trip, in km/h?"


@pytest.fixture
def mine(kace, tmp_path: Path) -> Path:
    """An empty tree without domains."""
    assert kace("tree", "init", "mine").returncode == 0
    return tmp_path / "mine"


def test_a_small_tree_needs_no_domains_and_its_card_is_read_by_every_problem_it_fits(kace, mine: Path):
    done = kace("tree", "new-card", "mine", "--file", str(CARD))
    assert (done.returncode, done.stdout) == (0, f"{NAME}\n"), done.stderr
    assert open_tree(mine).domains == ()
    solved = kace("solve", VAN, "--tree", "mine", "--model", "scripted/dice?sides=40", "--json")
    recalls = json.loads(solved.stdout)["recalls"]
    assert [(each["tier"], each["cards"]) for each in recalls] == [("MS", [NAME]), ("HS", [NAME])]


def test_a_card_comes_from_a_pipe_too_and_its_fault_is_named(kace, mine: Path):
    broken = CARD.read_text(encoding="utf-8").replace("# Average speed there and back", "# Speed")
    done = kace("tree", "new-card", "mine", stdin=broken)
    assert done.returncode == 2 and "3 or more words" in done.stderr
    assert len(open_tree(mine)) == 0
    assert kace("tree", "new-card", "mine", stdin=CARD.read_text(encoding="utf-8")).returncode == 0
    again = kace("tree", "new-card", "mine", "--file", str(CARD))
    assert again.returncode == 0 and "0 added, 1 already there" in again.stderr


def test_a_file_that_is_not_there_becomes_a_template_to_fill_in(kace, mine: Path, tmp_path: Path):
    begun = kace("tree", "new-card", "mine", "--file", "my.md")
    assert begun.returncode == 0 and "my.md is a template" in begun.stderr
    again = kace("tree", "new-card", "mine", "--file", "my.md")
    assert again.returncode == 2 and "the card still has <" in again.stderr
    (tmp_path / "my.md").write_text(CARD.read_text(encoding="utf-8"))
    assert kace("tree", "new-card", "mine", "--file", "my.md").stdout.strip() == NAME
    assert NAME in open_tree(mine)


def test_a_card_is_tried_without_and_with_the_tree_side_by_side(kace, mine: Path):
    kace("tree", "new-card", "mine", "--file", str(CARD))
    dice = ("--model", "scripted/dice?sides=40")
    lines = kace("tree", "try", "mine", VAN, "--answer", "38", *dice).stdout.splitlines()
    assert " ".join(lines[:2]) == f"{VAN}  Expected: 38"
    assert lines[2:4] == [
        "  without cards  38  right  no agreement in 10 attempts",
        "  with 1 card    38  right  no agreement in 10 attempts",
    ]
    assert lines[4].startswith(f"    {NAME}: Average speed = whole way")
    apples = kace("tree", "try", "mine", "How many apples are 5 apples?", *dice).stdout
    assert "no card fits, so nothing changes" in apples
    assert "right" not in apples and "wrong" not in apples, "nothing is expected"
    agreed = kace("tree", "try", "mine", VAN, "--model", "scripted/steady").stdout
    assert "both ES attempts agree, so no card is read" in agreed
    skipped = kace("tree", "try", "mine", VAN, "--model", "scripted/steady", "--set", "es_policy=skip").stdout
    assert "with 1 card    42" in skipped


def test_the_tree_that_ships_works_by_its_name(kace, tmp_path: Path):
    published = open_tree(tree_path("starter"))
    figures = json.loads(kace("tree", "show", "starter", "--json").stdout)
    assert (figures["name"], figures["cards"], figures["frozen"]) == ("starter", 38, published.content_hash())
    refused = kace("tree", "new-card", "starter", "--file", str(CARD))
    assert refused.returncode == 2
    assert "no tree in " in refused.stderr
    dice = ("--model", "scripted/dice?sides=40")
    solved = kace("solve", VAN, "--tree", "starter", *dice)
    assert "EXACT_AVERAGE_SPEED_ROUND_TRIP" in kace("solve", VAN, "--tree", "starter", *dice, "--explain").stdout
    assert solved.returncode == 0
    run = kace("eval", "--system", "kace", "--tree", "starter", "--limit", "60", "--seeds", "1", "--out", "run", *dice)
    assert run.returncode == 0, run.stderr
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["tree"]["hash"] == published.content_hash()


def test_the_tree_that_ships_is_viewed_by_its_name_and_nothing_is_written_beside_it(kace, tmp_path: Path):
    before = sorted(tree_path("starter").parent.iterdir())
    done = kace("view", "starter", "--export", "pages")
    assert done.returncode == 0, done.stderr
    assert "EXACT_AVERAGE_SPEED_ROUND_TRIP" in "".join(
        path.read_text() for path in (tmp_path / "pages").rglob("*.html")
    )
    assert sorted(tree_path("starter").parent.iterdir()) == before
    assert load_config({"tree": "starter"}).tree == tree_path("starter"), "in Python and in files, too"
