"""The page of one solve: the climb tier by tier, texts, cards, and the same problem elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kace.ladder.record import ClassRecord, Outcome, Solution
from kace.ladder.tiers import ExitPath, TierName
from kace.models.base import Confidence, chat
from kace.problems import Problem, problem_rows
from kace.report.pages import climb_of
from kace.report.render import path_of
from kace.report.workspace import Workspace
from tests.report.page_audit import Audit
from tests.report.samples import a_call, a_learner, a_recall, a_run, a_solve, a_tree, an_attempt
from tests.report.tree_views import Shown, page_of

PROBLEM = "b" * 16


def key(place: int) -> str:
    return f"{place:02x}".ljust(64, "7")


def a_climb(answers: dict[TierName, list[str | None]], expected: str = "4", **fields: object) -> Solution:
    """A solve from what each tier's attempts answered; `None` is one that was cut off."""
    attempts, classes = [], {}
    for tier, said in answers.items():
        for index, answer in enumerate(said):
            place = len(attempts)
            outcome = Outcome.ANSWERED if answer else Outcome.TRUNCATED
            good = answer == expected
            attempts.append(
                an_attempt(tier=tier, index=index, answer=answer, outcome=outcome, correct=good, call=key(place))
            )
            if answer:
                classes.setdefault(answer, []).append(place)
    groups = [ClassRecord(answer=answer, positions=tuple(places)) for answer, places in classes.items()]
    usual = {"attempts": attempts, "classes": groups, "recalls": (), "expected": expected}
    return a_solve(**{**usual, **fields})  # type: ignore[arg-type]


def hard(**fields: object) -> Solution:
    answers: dict[TierName, list[str | None]] = {
        TierName.ES: ["4", "5"],
        TierName.MS: ["5", "6", None],
        TierName.HS: ["7", "8", "9", None, "10"],
    }
    return a_climb(answers, **{"exit": ExitPath.FALLBACK_PLURALITY, "answer": "5", "correct": False, **fields})


def shelf_of(folder: Path, *solves: Solution, **manifest: object) -> Workspace:
    return Workspace([a_run(folder / "run", solves, **manifest)])


def ask(shelf: Workspace, problem: str = PROBLEM, seed: str = "0", *, run: str = "run", **query: str) -> Shown:
    return page_of(shelf, path_of("run", run, "problem", problem, seed), **query)


def read(page: Shown) -> Audit:
    found = Audit(page.body)
    assert found.strange == []
    return found


def keep(folder: Path, *texts: str) -> None:
    folder.mkdir(exist_ok=True)
    lines = [a_call(key(place), text) for place, text in enumerate(texts)]
    (folder / "calls.jsonl").write_text("".join(lines), encoding="utf-8")


def test_a_climb_groups_attempts_that_agree_and_says_which_gate_let_it_out(tmp_path: Path):
    record = a_climb({TierName.ES: ["4", "5"], TierName.MS: ["5", "4", "4"]}, exit=ExitPath.MS_MAJORITY)
    es, ms = climb_of(record)
    assert [(g.answer, g.votes) for g in es.groups] == [("4", 1), ("5", 1)]
    assert [(g.answer, g.votes) for g in ms.groups] == [("4", 2), ("5", 1)]
    assert re.findall('class="votes is-([a-z]+) leads"', ask(shelf_of(tmp_path, record)).body) == ["right"]
    assert (es.left, ms.left) == (False, True)
    assert ms.groups[0].mark == "right"
    assert "Fallback" not in ask(shelf_of(tmp_path / "again", record)).body


def test_the_page_draws_every_tier_with_its_gate(tmp_path: Path):
    text = read(ask(shelf_of(tmp_path, hard()))).text
    assert "10 attempts, and no gate opened: the answer given most often is taken." in text
    for tier in ("ES", "MS", "HS", "Fallback"):
        assert f" {tier} " in text
    assert text.count("Gate stays shut") == 3
    assert "both must agree" in text
    assert "2 of 3 must agree" in text
    assert "cut off by the token limit" in text
    assert "2 of 10 agree" in text


def test_attempts_without_a_ladder_are_a_vote(tmp_path: Path):
    solve = a_climb({TierName.FLAT: ["4", "5", "4"]}, exit=None)
    text = read(ask(shelf_of(tmp_path, solve))).text
    assert "3 attempts without a ladder; the answer given most often is taken." in text
    assert "Vote" in text
    assert "FLAT" not in text
    assert "Gate" not in text


def test_each_text_is_rendered_and_folded_under_its_attempt(tmp_path: Path):
    shelf = shelf_of(tmp_path, hard())
    keep(tmp_path / "run" / "calls", "First **bold** and $x^2$.\n\n- one\n- two", "<script>alert(1)</script>")
    page = ask(shelf)
    assert "<strong>bold</strong>" in page.body
    assert '<span class="math">x^2</span>' in page.body
    assert "&lt;script&gt;alert(1)" in page.body
    assert page.body.count('<details class="attempt"') == 10
    assert " open" not in "".join(re.findall(r'<details class="attempt"[^>]*>', page.body))
    assert "The run’s calls do not hold its text." in read(page).text
    opened = ask(shelf, open="all")
    assert opened.body.count('<details class="attempt" open="">') == 10
    for link in re.findall(r'href="#(attempt-\d+)"', page.body):
        assert f'id="{link}"' in page.body


def test_why_an_attempt_failed_and_what_it_did_not_see_is_told(tmp_path: Path):
    bad = an_attempt(outcome=Outcome.PROVIDER_ERROR, answer=None, call="", detail="429 slow down", correct=False)
    blind = an_attempt(index=1, hidden=("MICRO_ONE", "MICRO_TWO"), lens="problem_setup", cached=7, from_cache=True)
    solve = a_solve(attempts=(bad, blind), classes=(ClassRecord(answer="4", positions=(1,)),), recalls=(), failed=True)
    text = read(ask(shelf_of(tmp_path, solve))).text
    assert "429 slow down" in text
    assert "No reply came." in text
    assert "2 cards of the block hidden from this attempt" in text
    assert "problem setup" in text
    assert "100 in (7 cached), 20 out" in text
    assert "failed an attempt for good" in text


def test_cards_lead_to_the_tree_of_that_content_and_to_no_card_it_lacks(tmp_path: Path):
    tree = a_tree(tmp_path / "oak")
    digest = Workspace([tree]).tree("oak").hash
    card = "EXACT_SUM_OF_SQUARES"
    a_run(tmp_path / "run", [a_solve(recalls=(a_recall(cards=(card, "GONE")),))], tree={"hash": digest, "cards": 2})
    page = read(ask(Workspace([tmp_path])))
    assert f"/tree/oak/card/{card}" in page.links
    assert "GONE" in page.text
    assert not any("GONE" in link for link in page.links)
    assert "Routed to algebra ; read 2 cards, about 60 tokens; 1 call to choose" in page.text


def test_a_learners_run_finds_its_tree_and_its_shared_calls(tmp_path: Path):
    folder = a_learner(tmp_path / "oak")
    run = folder / "learn" / "epoch-1-add-MS-run"
    shelf = Workspace([folder])
    card = next(iter(shelf.tree("oak").tree.cards))
    attempts = tuple(
        attempt.model_copy(update={"call": key(place)}) for place, attempt in enumerate(a_solve().attempts)
    )
    solve = a_solve(recalls=(a_recall(cards=(card,)),), attempts=attempts)
    (run / "traces.jsonl").write_text(solve.model_dump_json() + "\n")
    manifest = (run / "run.json").read_text().replace('"v": 1', '"v": 1, "tree": {"hash": "00", "cards": 1}')
    (run / "run.json").write_text(manifest)
    keep(folder / "learn" / "calls", "the shared text")
    page = read(ask(Workspace([folder]), run="oak.epoch-1-add-MS-run"))
    assert f"/tree/oak/card/{card}" in page.links
    assert "the shared text" in page.text


def test_the_problem_is_shown_where_the_run_keeps_it(tmp_path: Path):
    mine, other = Problem("What is $2+2$?", "4"), Problem("What is $3+3$?", "6")
    shelf = shelf_of(tmp_path, a_solve(mine.id))
    kept = tmp_path / "run" / "problems.jsonl"
    lines = [line + "\n" for line in problem_rows([other, mine])]
    kept.write_text("garbage\n" + "".join(lines), encoding="utf-8")
    assert "What is 2+2 ?" in read(ask(shelf, mine.id)).text
    for damaged in ("garbage " + mine.id, json.dumps([mine.id]), json.dumps({"problem": 7}), "\udc80", lines[1][:20]):
        kept.write_text(damaged + "\n", encoding="utf-8", errors="surrogateescape")
        assert "a trace keeps a problem’s hash" in read(ask(shelf, mine.id)).text
    kept.unlink()
    (tmp_path / "secret").write_text(lines[1], encoding="utf-8")
    kept.symlink_to(tmp_path / "secret")
    assert ask(shelf, mine.id).status == 500


def test_the_same_problem_elsewhere_is_listed_and_led_to(tmp_path: Path):
    data = {"data": {"hash": "d" * 16}}
    a_run(tmp_path / "run", [a_solve(), a_solve(seed=1, correct=False, answer="5")], **data)
    a_run(tmp_path / "other", [a_solve(seed=3)], **data)
    a_run(tmp_path / "stranger", [a_solve(seed=4)], data={"hash": "e" * 16})
    shelf = Workspace([tmp_path])
    page = read(ask(shelf))
    assert "Right in 2 of 3 solves in what is open." in page.text
    assert f"/run/run/problem/{PROBLEM}/1" in page.links
    assert f"/run/other/problem/{PROBLEM}/3" in page.links
    assert not any("stranger" in link for link in page.links)


def test_previous_and_next_follow_the_filters_of_the_table(tmp_path: Path):
    solves = [a_solve(f"{number:016x}", correct=number % 2 == 0) for number in range(6)]
    shelf = shelf_of(tmp_path, *solves)
    page = ask(shelf, f"{2:016x}", right="yes")
    assert "2 of 3 of those you chose" in read(page).text
    assert f'href="/run/run/problem/{0:016x}/0?right=yes" rel="prev"' in page.body
    assert f'href="/run/run/problem/{4:016x}/0?right=yes" rel="next"' in page.body
    plain = ask(shelf, f"{2:016x}")
    assert f'href="/run/run/problem/{4:016x}/0" rel="next"' in plain.body


def test_a_solve_that_is_not_there_is_not_here(tmp_path: Path):
    shelf = shelf_of(tmp_path, a_solve())
    for problem, seed in (("c" * 16, "0"), (PROBLEM, "7"), (PROBLEM, "x"), (PROBLEM, "٣"), (PROBLEM, "")):
        assert ask(shelf, problem, seed).status == 404


def test_a_weighted_vote_says_so_and_each_attempt_how_sure_it_was(tmp_path: Path):
    solve = hard(policies=("vote=confidence",), answer="7")
    sure = solve.attempts[5].model_copy(update={"confidence": Confidence(-0.25)})
    solve = solve.model_copy(update={"attempts": (*solve.attempts[:5], sure, *solve.attempts[6:])})
    page = ask(shelf_of(tmp_path, solve))
    read(page)
    assert "vote=confidence" in page.body and "of the greatest weight" in page.body
    assert "mean log-probability" in page.body and "-0.250" in page.body
    plain = ask(shelf_of(tmp_path / "plain", hard()))
    assert "mean log-probability" not in plain.body and "given most often" in plain.body


def test_the_messages_of_an_attempt_are_shown_once_for_those_that_share_them(tmp_path: Path):
    record = a_climb({TierName.ES: ["4", "5"], TierName.MS: ["4", "4", "5"]}, exit=ExitPath.MS_MAJORITY)
    shelf = shelf_of(tmp_path, record)
    calls = tmp_path / "run" / "calls"
    calls.mkdir()
    lines = []
    for place, prompt in enumerate(("lens 1", "lens 2", "cards", "cards", "cards")):
        messages = chat("Solve it.", f"{prompt}: is 1 <b>2?") if place < 3 else ()
        lines.append(a_call(key(place), "a", prompt=prompt, messages=messages))
    (calls / "calls.jsonl").write_text("".join(lines))
    body = ask(shelf).body
    assert body.count("<summary>Sent: 2 messages</summary>") == 3
    assert "<h3>user</h3><pre>cards: is 1 &lt;b&gt;2?</pre>" in body
    assert body.count('Sent: the same messages as to <a href="#attempt-3">MS 1</a>.') == 2
