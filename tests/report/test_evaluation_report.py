"""The report of an evaluation: its figures, its page, its Markdown and its plots."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.cli.report import evaluation_record
from kace.config import Price
from kace.ladder.tiers import ExitPath
from kace.report.charts import Picture, exit_bars, scale_over
from kace.report.evaluation import Evaluation, evaluation_of, page, plots_of
from kace.report.render import REPORT_POLICY as POLICY
from kace.report.render import environment
from kace.runs.table import Table
from tests.html_pages import parsed
from tests.runs.few_rows import changed
from tests.runs.sample_arms import an_arm, manifest

WIDE = 880.0
XSS = "<script>alert(1)</script><img src=x onerror=alert(1)>\"' onload=x </style>]]>|*_`[a](javascript:x)"
PRICES = {"openai/solver": Price(0.4, 1.6, 0.1)}
NAMES = ("single", "best-of-5", "tiered", "kace", "kace-no-domain", "kace-monolithic", "kace-router")
NAMES += ("kace-retriever", "kace-placebo", "tiered-gepa", "ace")


def ladders() -> list[Table]:
    return [an_arm("tiered", skill=0.05), an_arm("kace", skill=0.2, tree=True)]


@pytest.fixture(scope="module")
def found() -> Evaluation:
    flats = an_arm("single", fixed=1), an_arm("best-of-5", fixed=5, skill=0.05)
    return evaluation_of([*flats, *ladders()], base="tiered", prices=PRICES)


# The figures


def test_every_arm_is_compared_with_the_base(found: Evaluation):
    assert found.base == "tiered"
    assert [each.other for each in found.comparisons] == ["single", "best-of-5", "kace"]
    assert {each.compared for each in found.comparisons} == {3}
    assert found.title == "starter test"
    assert found.warnings == ()


def test_the_lead_names_the_best_arm_and_admits_doubt(found: Evaluation):
    best = max(found.arms, key=lambda arm: arm.accuracy or 0)
    assert found.best is best
    assert found.lead.startswith(f"Highest is {best.name}: {best.accuracy:.1%} of 40 problems over 3 seeds")
    told = found.against_base(best.name)
    assert told is not None
    assert ("indistinguishable" in found.lead) == (not told.distinguishable)
    better = replace(told, adjusted=0.001)
    others = tuple(better if each is told else each for each in found.comparisons)
    assert "is better than tiered" in replace(found, comparisons=others).lead


def test_one_arm_needs_no_base():
    alone = evaluation_of(ladders()[1:])
    assert (alone.base, alone.comparisons) == ("", ())
    assert alone.lead.startswith("kace answered")
    assert "difference" not in plots_of(alone)
    assert "Compared with" not in page(alone)


def test_arms_that_share_no_problem_are_said_and_not_compared():
    one, two = ladders()
    elsewhere = changed(two, (replace(row, problem=f"f{row.problem}") for row in two))
    found = evaluation_of([one, elsewhere])
    assert found.comparisons == ()
    assert "kace has no problem and seed in common with tiered: the two are not compared." in found.warnings
    assert "Compared with" not in page(found)


def test_what_is_not_alike_or_not_whole_is_said():
    one, two = ladders()
    other = changed(two, [*two][1:], manifest=manifest("kace", model="openai/another"))
    found = evaluation_of([one, other])
    assert ["different solvers" in each or "kace is not complete" in each for each in found.warnings] == [True, True]
    assert all(warning in page(found) for warning in found.warnings)


# The page


def test_the_page_has_a_section_for_everything_there_is(found: Evaluation):
    html = page(found)
    titles = re.findall(r"<h2>(.*?)</h2>", html)
    assert titles == [
        "Accuracy",
        "Compared with tiered",
        "Harm of the cards shown",
        "Where solves leave the ladder",
        "What it cost",
        "How the arms were made",
    ]
    assert len(re.findall(r'class="plot wide"', html)) == len(plots_of(found)) == 3
    parsed(html)


def test_the_harm_of_shown_cards_is_in_every_format(found: Evaluation):
    (told,) = [each for each in found.comparisons if each.other == "kace"]
    harm = told.harm
    assert harm is not None and harm.rate is not None and harm.broken > 0
    html = page(found)
    section = html[html.index("Harm of the cards shown") : html.index("Where solves leave the ladder")]
    assert f"{harm.rate:.1%}" in section
    assert "EXACT_IT_HELPS" in section
    assert ("breaks more than it gains" in section) == (harm.broken > harm.gained)
    swapped = evaluation_of([*reversed(ladders())])
    assert not any(each.harm for each in swapped.comparisons) and "Harm" not in page(swapped)
    (row,) = [each for each in evaluation_record(found)["comparisons"] if each["other"] == "kace"]
    counts = {"shown": harm.shown, "gained": harm.gained, "broken": harm.broken}
    (card,) = row["harm"]["cards"]
    assert card == {
        "card": "EXACT_IT_HELPS",
        **counts,
        "right": card["right"],
        "wrong": harm.shown - card["right"],
        "astray": 0,
    }


def test_problems_without_answers_still_have_exits_and_costs():
    found = evaluation_of([an_arm("tiered", labelled=False), an_arm("kace", labelled=False)], prices=PRICES)
    assert found.best is None and found.comparisons == ()
    assert set(plots_of(found)) == {"exits"}
    assert "no known answer" in found.lead
    parsed(page(found))


def test_an_arm_in_which_nothing_was_solved_yet_breaks_nothing():
    empty = Table.of((), name="empty", manifest=manifest("empty"))
    for arms in ([empty], [empty, *ladders()], [*ladders(), empty]):
        found = evaluation_of(arms)
        parsed(page(found))


def test_text_from_outside_never_becomes_markup():
    one, two = ladders()
    told = {**manifest(f"kace{XSS}", model=f"m{XSS}"), "data": {"name": f"d{XSS}", "split": f"s{XSS}", "hash": XSS}}
    rows = tuple(replace(row, label=f"{row.label}{XSS}") for row in two)
    evil = changed(two, rows, name=f"kace{XSS}", manifest=told, folder=Path(f"runs/{XSS}"))
    found = evaluation_of([one, evil])
    html, clean = page(found), parsed(page(evaluation_of([one, two])))
    attacked = parsed(html)
    assert set(attacked.tags) <= {*clean.tags, "ul", "li"}
    assert not [key for key, _ in attacked.attributes if key.startswith("on")]
    assert html.count("&lt;script&gt;") > 10
    for plot in plots_of(found).values():
        tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(drawn(plot(WIDE))).iter()}
        assert tags <= {"svg", "title", "g", "line", "rect", "circle", "text"}


def test_the_page_may_load_and_run_nothing(found: Evaluation):
    html = page(found)
    seen = parsed(html)
    assert ("content", POLICY) in seen.attributes
    drawn = re.sub(r'url\("data:image/svg[^"]*"\)', "", html)  # marks, whose picture is in the style sheet itself
    assert not re.search(r"https?://|url\(|@import|javascript:", drawn)
    assert {value for key, value in seen.attributes if key in ("src", "href")} == {"data:,"}
    assert not {"script", "img", "iframe", "object", "form", "a"} & set(seen.tags)


# The plots


def drawn(picture: Picture) -> str:
    """The picture as a page has it."""
    charts: Any = environment().get_template("charts.svg").module
    return str(charts.on_a_page(picture, "plot"))


def test_a_bar_is_as_long_as_its_share():
    row = ("EASY", 4, {ExitPath.ES_UNANIMOUS: 6, ExitPath.FALLBACK_LAST_HS: 2})
    picture = ET.fromstring(drawn(exit_bars("t", [("a", [row, ("HARD", 0, {})])], WIDE)))
    bars = {bar[0].text or "": float(bar.get("width", 0)) + 1 for bar in picture.iter("rect") if len(bar)}
    one, five = bars.values()
    assert one / five == pytest.approx(3, rel=1e-3)
    assert any("2 solves of 8 (25%)" in words for words in bars)


@given(st.floats(-1e3, 1e3), st.floats(0, 1e3), st.integers(2, 8))
def test_a_scale_holds_its_ends_and_has_few_ticks(low: float, span: float, about: int):
    scale = scale_over(low, low + span, about=about)
    assert scale.low <= low + 1e-6 * scale.step and scale.high >= low + span - 1e-6 * scale.step
    assert 2 <= len(scale.ticks) <= about + 3
