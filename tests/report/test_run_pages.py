"""The page of a run: figures, filters in the address, and every state a run can be in."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kace.config import Price
from kace.ladder.record import Solution
from kace.ladder.tiers import ExitPath
from kace.report import pages as run_pages
from kace.report.workspace import Workspace
from tests.report.page_audit import Audit
from tests.report.samples import a_run, a_solve, a_tree
from tests.report.tree_views import Shown, page_of

DATA = {"data": {"name": "made-up", "split": "test", "problems": 4, "hash": "d" * 16}}


def some_solves(*, better: bool = False) -> list[Solution]:
    """Three right and one wrong; or the first wrong and the last right."""
    right = [not better, True, True, better]
    return [
        a_solve(
            f"{number:016x}",
            label=f"P-{number}",
            family="sums" if number < 2 else "circles",
            domain="algebra" if number < 2 else "geometry",
            correct=good,
            answer="4" if good else "5",
            exit=ExitPath.ES_UNANIMOUS if number == 1 else ExitPath.MS_MAJORITY,
            paper_calls=2 if number == 1 else 5,
            seconds=float(number),
        )
        for number, good in enumerate(right)
    ]


@pytest.fixture
def shelf(tmp_path: Path) -> Workspace:
    a_run(tmp_path / "kace", some_solves(), **DATA, system={"name": "kace"})
    a_run(tmp_path / "tiered", some_solves(better=True), **DATA)
    return Workspace([tmp_path])


def ask(shelf: Workspace, run: str = "kace", *, static: bool = False, **query: str) -> Shown:
    return page_of(shelf, f"/run/{run}", static=static, **query)


def read(page: Shown) -> Audit:
    found = Audit(page.body)
    assert found.strange == []
    return found


def names(page: Shown) -> list[str]:
    """The problems in the table, in their order."""
    return re.findall(r">(P-\d+)</a>", page.body)


def test_the_page_says_what_the_run_came_to(shelf: Workspace):
    page = ask(shelf)
    text = read(page).text
    assert (
        "kace answered 75.0 % of 4 problems correctly (19.8 to 97.3 % over 2 families), with 4.25 calls per problem."
        in text
    )
    assert "n = 4" in text
    assert "1 wrong of 4 solves" in text
    assert "made-up test" in text
    assert "Where solves leave the ladder" in text
    assert page.crumbs == ("Home",)
    assert names(page) == ["P-3", "P-0", "P-1", "P-2"], "what was lost, what was gained, then the rest"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"right": "no"}, ["P-3"]),
        ({"right": "failed"}, []),
        ({"right": "no", "text": "seed=0 p-"}, ["P-3"]),
        ({"text": "label=p-2"}, ["P-2"]),
        ({"text": "seed=1"}, []),
        ({"text": "nothing=1"}, []),
        ({"cards": "abstained"}, []),
        ({"exit": "es_unanimous"}, ["P-1"]),
        ({"exit": "none"}, []),
        ({"text": "geometry"}, ["P-3", "P-2"]),
        ({"text": "card=exact_sum_of_squares", "sort": "problem"}, ["P-0", "P-1", "P-2", "P-3"]),
        ({"text": "answer=5"}, ["P-3"]),
        ({"text": "CIRCLES p-3"}, ["P-3"]),
        ({"text": "0000000000000002"}, ["P-2"]),
        ({"sort": "-seconds"}, ["P-3", "P-2", "P-1", "P-0"]),
        ({"sort": "result"}, ["P-3", "P-0", "P-1", "P-2"]),
        ({"sort": "calls", "right": "yes"}, ["P-1", "P-0", "P-2"]),
        ({"against": "tiered", "change": "gained"}, ["P-0"]),
        ({"against": "tiered", "change": "lost"}, ["P-3"]),
        ({"exit": "bogus", "right": "maybe", "sort": "__class__", "page": "-3", "change": "x"}, 4),
    ],
)
def test_every_filter_and_order_is_in_the_address(shelf: Workspace, query: dict[str, str], expected: list[str] | int):
    found = names(ask(shelf, **query))
    assert found == expected or len(found) == expected


def test_against_another_run_counts_what_changed_and_leads_to_the_comparison(shelf: Workspace):
    for query in ({"against": "tiered"}, {}):  # the plain ladder is the base unless another run is asked for
        page = read(ask(shelf, **query))
        assert all(words in page.text for words in ("gained", "lost"))
        assert "/run/kace/against/tiered" in page.links
    assert names(ask(shelf, against="nobody")) == names(ask(shelf)), "an unknown run is passed over"


def test_a_hundred_solves_a_page_and_every_page_is_a_link(tmp_path: Path):
    solves = [a_solve(f"{number:016x}", label=f"P-{number}") for number in range(250)]
    shelf = Workspace([a_run(tmp_path / "many", solves)])
    first, last = ask(shelf, "many"), ask(shelf, "many", page="3")
    assert len(names(first)) == 100
    assert names(last) == [f"P-{number}" for number in range(200, 250)]
    assert names(ask(shelf, "many", page="99")) == names(last)
    links = read(first).links
    assert "/run/many?page=2#solves" in links
    assert "1 to 100 of 250" in read(first).text
    assert 'rel="next"' in first.body
    assert 'rel="prev"' in last.body
    assert 'rel="next"' not in last.body


def test_without_expected_answers_there_is_no_accuracy(tmp_path: Path):
    solve = a_solve(correct=None, expected=None, verdict=None)
    folder = a_run(tmp_path / "open", [solve])
    text = read(ask(Workspace([folder]), "open")).text
    assert "no accuracy" in text
    assert "none with an expected answer" in text
    assert "not checked" in text


def test_lost_calls_damage_and_missing_problems_are_told(tmp_path: Path):
    folder = a_run(tmp_path / "hurt", [a_solve(failed=True, correct=False)], **DATA)
    with (folder / "traces.jsonl").open("a") as file:
        file.write("garbage\n")
    text = read(ask(Workspace([folder]), "hurt")).text
    assert "1 solve lost a call to the provider" in text
    assert "1 line of the trace cannot be read: 2" in text
    assert "going on" in text
    os.utime(folder / "traces.jsonl", (0, 0))
    assert "Unfinished: 3 solves of 4 are missing" in read(ask(Workspace([folder]), "hurt")).text
    assert "call lost" in text
    newer = a_run(tmp_path / "newer")
    (newer / "traces.jsonl").write_text('{"v": 99}\n')
    assert "written by a newer kace" in read(ask(Workspace([newer]), "newer")).text


def test_cost_is_told_where_a_price_is_known(shelf: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert "local model, no cost" in read(ask(shelf)).text
    config = {"config": {"model": "openai/solver"}}
    other = Workspace([a_run(tmp_path / "paid" / "paid", some_solves(), **config)])
    monkeypatch.setattr(run_pages, "known_prices", dict)
    assert "no price is known for openai/solver" in read(ask(other, "paid")).text
    monkeypatch.setattr(run_pages, "known_prices", lambda: {"openai/solver": Price(1_000.0, 10_000.0)})
    # 4 solves of 5 attempts of 100 in and 20 out, and a call of 50 in and 3 out to place each.
    assert "$6.32" in read(ask(other, "paid")).text


def test_the_tree_it_read_is_led_to(tmp_path: Path):
    tree = a_tree(tmp_path / "oak")
    digest = Workspace([tree]).tree("oak").hash
    a_run(tmp_path / "exact", some_solves(), tree={"hash": digest, "cards": 2})
    a_run(tmp_path / "older", some_solves(), tree={"hash": "0" * 64, "cards": 9})
    shelf = Workspace([tmp_path])
    exact, older = read(ask(shelf, "exact")), read(ask(shelf, "older"))
    assert "/tree/oak" in exact.links
    assert "changed since" not in exact.text
    assert "/tree/oak" not in older.links and "9 cards" in older.text
