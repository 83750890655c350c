"""`kace report`: a table, a sentence, the problems that changed, JSON, and bad input in one line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kace.ladder.record import RetrievedContext, Solution
from kace.ladder.tiers import TierName
from tests.command import Kace, run_kace
from tests.learning.solve_records import a_solve, a_try
from tests.report.samples import a_run


def solves(right: Sequence[Sequence[bool]]) -> list[Solution]:
    return [
        a_solve(f"p{number:02}", [a_try(bool(one))], correct=bool(one), seed=seed)
        for number, line in enumerate(right)
        for seed, one in enumerate(line)
    ]


@pytest.fixture
def kace(tmp_path: Path) -> Kace:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_kace(tmp_path, "report", *arguments, COLUMNS="200")

    a_run(tmp_path / "runs" / "tiered-1", solves([[True, True]] * 10 + [[False, False]] * 20))
    better = solves([[True, False]] + [[True, True]] * 21 + [[False, False]] * 8)
    a_run(tmp_path / "runs" / "kace-1", better, system={"name": "kace"})
    same = solves([[True, True]] * 11 + [[False, False]] * 19)
    a_run(tmp_path / "runs" / "same-1", same, system={"name": "same\x1b[31m"})
    return run


def test_a_table_and_a_sentence(kace: Kace, tmp_path: Path):
    done = kace("runs/tiered-1", "runs/kace-1", "runs/same-1")
    assert done.returncode == 0, done.stderr
    head, base, other, same, resampled, _, sentence, *_ = done.stdout.splitlines()
    assert head.split()[:3] == ["arm", "problems", "accuracy"]
    assert base.split()[:5] == ["tiered", "30", "x", "2", "33.3%"]
    assert base.endswith("(base)") and not (tmp_path / "report").exists()
    assert "+38.3" in other
    assert other.endswith("+12 -1")
    assert same.startswith("same ")
    assert resampled == "Intervals resample 30 problems: the seeds of one problem stay together."
    assert sentence.startswith("kace is better than tiered: +38.3 points")
    assert "after Holm's correction for 2 comparisons" in sentence
    assert "same and tiered are indistinguishable at this n" in done.stdout
    assert "\x1b" not in done.stdout, "names come from files and are shown without their escapes"


def test_what_showing_cards_did_is_told_with_a_table_by_card(kace: Kace, tmp_path: Path):
    records = solves([[True, True]] * 8 + [[False, False]] * 2 + [[True, True]] * 20)
    read = {n: (f"EXACT_CARD_{n % 14:02}",) for n in range(28)}  # solves 16 to 19 are broken, those from 20 on gained
    recalls = [RetrievedContext(tier=TierName.MS, cards=read.get(n, ()), eligible=4) for n in range(60)]
    records = [each.model_copy(update={"recalls": (recall,)}) for each, recall in zip(records, recalls, strict=True)]
    a_run(tmp_path / "runs" / "gated-1", records, system={"name": "kace"})
    done = kace("runs/tiered-1", "runs/gated-1", "runs/same-1")
    assert done.returncode == 0, done.stderr
    told, head, *cards, more = [
        line.strip() for line in done.stdout.splitlines() if line.startswith(("  cards", "   "))
    ]
    assert told.startswith(
        "cards  shown on 28 solves, abstained on 32; of those shown 8 gained and 4 broken, harm rate 14.3% of"
    )
    assert head.split() == ["card", "shown", "gained", "broken"]
    assert cards[0].split(maxsplit=4) == ["EXACT_CARD_02", "2", "0", "1", "breaks more than it gains"]
    assert [line.endswith("breaks more than it gains") for line in cards] == [True] * 4 + [False] * 8
    assert more == "and 2 more"


def test_a_page_is_written_where_one_is_asked_for(kace: Kace, tmp_path: Path):
    done = kace("runs/tiered-1", "runs/kace-1", "--out", "report")
    assert done.returncode == 0 and done.stdout == ""
    html = (tmp_path / "report" / "index.html").read_text()
    assert "Compared with tiered" in html and "33.3" in html


def test_json_has_every_figure(kace: Kace):
    done = kace("runs/tiered-1", "runs/kace-1", "--json")
    found = json.loads(done.stdout)
    assert found["base"] == "tiered"
    assert (found["cluster"], found["clusters"]) == ("problem", 30)
    assert found["resampled"].startswith("Intervals resample 30 problems")
    assert [arm["name"] for arm in found["arms"]] == ["tiered", "kace"]
    (comparison,) = found["comparisons"]
    assert (comparison["n"], comparison["pairs"], comparison["lost"]) == (30, 60, ["P00"])
    assert comparison["distinguishable"] is True and comparison["sentence"].startswith("kace is better")
    assert len(comparison["interval"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs/tiered-1", "runs/nothing"], "no such file"),
        (["runs/tiered-1", "runs/kace-1", "--base", "gepa"], "no arm is called 'gepa'. Fix: choose --base from tiered"),
        (["runs/tiered-1", "runs/tiered-1"], "is given twice"),
        (["runs/tiered-1", "runs/kace-1", "--cluster", "book"], "30 of 30 problems have no field 'book'"),
    ],
)
def test_bad_input_is_one_line_with_the_fix(kace: Kace, arguments: list[str], message: str):
    done = kace(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Fix:" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
