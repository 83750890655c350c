"""`kace reproduce` against a fake endpoint: the whole table, killed and resumed, with nothing learned, within a cap."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kace.baselines.systems import spec_of
from kace.cards.store import TreeStore
from kace.cli.reproduce import REFLECTIONS, TITLES, Recipe, check_recipe, default_arms
from kace.config import load_config
from kace.errors import UsageError
from kace.learning.study import bill_of
from kace.models.cache import read_calls
from kace.report.evaluation import Evaluation, evaluation_of
from kace.runs.metrics import NO_CARDS
from kace.runs.scores import ScoreReader
from tests.baselines.arena import TREE
from tests.baselines.paper_tree import paper_tree
from tests.cli.chat_world import SOLVER, TEACHER, ChatWorld, write_aime
from tests.command import environment, run_kace
from tests.learning.world import DOMAINS
from tests.models.chat_server import Answer, ChatServer, Seen

PROBLEMS = 12
TABLE = default_arms("aime25")
PLAIN = 0.25  # problems that need no rule
USEFUL = {"ace", "domain-ace", "tiered-ace", "gepa", "tiered-gepa", "kace", "kace-no-domain", "kace-monolithic"}
USEFUL |= {"kace-router", "kace-retriever"}
"""Arms that are shown what the teacher knows."""
FROM_TREE = {"kace", "kace-no-domain", "kace-monolithic", "kace-router", "kace-retriever", "kace-random"}
FROM_TREE |= {"kace-placebo", "kace-reflections"}


def words(folder: Path, url: str, *more: str) -> tuple[str, ...]:
    models = ("--model", SOLVER, "--teacher", TEACHER, "--base-url", url)
    size = ("--set", f"data_dir={folder / 'data'}", "--limit", str(PROBLEMS), "--seeds", "1")
    return ("reproduce", "aime25", *models, *size, "--out", "r", *more)


def started(folder: Path, arguments: tuple[str, ...]) -> subprocess.Popen[str]:
    """The command in a group of its own, whatever it starts included."""
    with (folder / "log").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "kace", *arguments],
            cwd=folder,
            env=environment(folder),
            stdout=log,
            stderr=log,
            text=True,
            start_new_session=True,
        )


@dataclass
class Deadly:
    """The world, which kills whoever asks it the n-th question for the teacher."""

    world: ChatWorld
    after: int
    victim: subprocess.Popen[str] | None = None
    asked: list[str] = field(default_factory=list)

    def __call__(self, seen: Seen) -> Answer:
        self.asked += ["teacher"] if seen.body["model"] == "teacher" else []
        if self.victim and len(self.asked) >= self.after:
            os.killpg(self.victim.pid, signal.SIGKILL)
            self.victim = None
        return self.world(seen)


def reproduced(folder: Path, arms: tuple[str, ...], *more: str, known: bool, killed_after: int) -> Evaluation:
    """What the table says after a kill at that question to the teacher, and the same command again."""
    write_aime(folder / "data")
    world = Deadly(ChatWorld(known), killed_after)
    with ChatServer(world) as server:
        arguments = words(folder, server.url, "--arms", ",".join(arms), "--yes", *more)
        world.victim = child = started(folder, arguments)
        assert child.wait() == -signal.SIGKILL, (folder / "log").read_text()[-2000:]
        assert not (folder / "r" / "report").exists()
        assert started(folder, arguments).wait() == 0, (folder / "log").read_text()[-2000:]
    page = (folder / "r" / "report" / "index.html").read_text()
    found = evaluation_of(ScoreReader().open([folder / "r" / "runs" / arm for arm in arms]))
    assert tuple(arm.name for arm in found.arms) == arms
    assert all(arm.complete and arm.solves == PROBLEMS and not arm.failed for arm in found.arms)
    assert all(f">{arm}<" in page for arm in arms)
    noted = [arm.name for arm in found.arms if arm.note == NO_CARDS]
    assert noted == ([] if known else [arm for arm in arms if arm in FROM_TREE])
    assert page.count(f"; {NO_CARDS}") == len(noted)
    costs = json.loads((folder / "r" / "paper.json").read_text())["costs"]
    assert {"epoch 1 add: teacher", "epoch 1 add: solver"} <= {row["role"] for row in costs}
    assert TITLES["costs"] in page
    return found


def check(found: Evaluation, *, known: bool) -> None:
    by_name = {arm.name: arm for arm in found.arms}
    for name, arm in by_name.items():
        if name == "kace-random":  # a drawn domain may be the problem's own
            assert PLAIN <= arm.accuracy < 1 if known else arm.accuracy == PLAIN
        else:
            assert arm.accuracy == (1.0 if known and name in USEFUL else PLAIN), name
        if not known and name in FROM_TREE:
            assert (arm.paper_calls, arm.classifier_calls) == (by_name["tiered"].paper_calls, 0), "it is the ladder"


@pytest.mark.slow
def test_a_small_table_is_killed_while_it_learns_and_resumed(tmp_path: Path):
    names = (SOLVER, TEACHER)
    (tmp_path / "my.toml").write_text("".join(f'[prices."{name}"]\ninput = 1\noutput = 1\n' for name in names))
    capped = ("--config", "my.toml", "--max-usd", "100")  # a price that one command does not hear of would end it
    check(reproduced(tmp_path, ("tiered", "kace"), *capped, known=True, killed_after=8), known=True)


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False], ids=["a teacher who knows", "a teacher who knows nothing"])
def test_the_whole_table_is_killed_and_resumed(tmp_path: Path, known: bool):
    pytest.importorskip("gepa", reason="the extra gepa is not installed")
    check(reproduced(tmp_path, TABLE, known=known, killed_after=25), known=known)


@pytest.mark.slow
def test_one_cap_holds_for_all_commands_and_a_higher_one_goes_on(tmp_path: Path):
    write_aime(tmp_path / "data")
    price, each = "input = 0\noutput = 1000\n", 0.007  # seven tokens a call
    (tmp_path / "kace.toml").write_text(f'max_tokens = 10\n[prices."{SOLVER}"]\n{price}')
    with ChatServer(ChatWorld()) as server:
        arguments = words(tmp_path, server.url, "--arms", "tiered,kace-empty-prompt", "--yes", "--max-usd")
        stopped, asked = started(tmp_path, (*arguments, "1")).wait(), len(server.requests)
        log = (tmp_path / "log").read_text().strip()
        done, total = started(tmp_path, (*arguments, "2")).wait(), len(server.requests)
        again = started(tmp_path, (*arguments, "1")).wait()
    assert stopped == 1
    assert "kace: eval --system kace-empty-prompt" in log and "cap" in log.splitlines()[-1]
    assert 0.9 < asked * each <= 1.0
    assert done == 0 and (tmp_path / "r" / "report" / "index.html").exists()
    config = load_config({"model": SOLVER}, file=tmp_path / "kace.toml", env={})
    calls = [call for place in (tmp_path / "r").rglob("calls") for call in read_calls(place)]
    spent = bill_of(calls, config).usd
    assert spent == pytest.approx(total * each), "what arms share is paid once, and counted once"
    assert again == 0, "what is done costs nothing, whatever is left of the cap"
    assert len(server.requests) == total


def test_a_frozen_tree_is_read_and_nothing_is_learned(tmp_path: Path):
    write_aime(tmp_path / "data")
    TreeStore.create(tmp_path / "tree", TREE.domains, TREE, author="somebody")
    dice = ("reproduce", "aime25", "--model", "scripted/dice?sides=4", "--set", f"data_dir={tmp_path / 'data'}")
    arguments = (*dice, "--limit", "2", "--seeds", "1", "--arms", "tiered,kace", "--tree", "tree", "--out", "r")
    refused = run_kace(tmp_path, *arguments, "--yes")
    assert refused.returncode == 2 and "tree is not frozen. Fix: kace tree freeze tree" in refused.stderr
    assert run_kace(tmp_path, "tree", "freeze", "tree").returncode == 0
    assert "kace eval --system tiered" in run_kace(tmp_path, *arguments).stdout
    assert not (tmp_path / "r" / "runs").exists(), "nothing is run unasked"
    done = run_kace(tmp_path, *arguments, "--yes")
    assert done.returncode == 0, done.stderr
    assert "kace learn" not in done.stdout and "--tree tree" in done.stdout
    found = evaluation_of(ScoreReader().open([tmp_path / "r" / "runs" / name for name in ("tiered", "kace")]))
    assert found.arms[1].tree["cards"] == len(TREE)
    table = json.loads((tmp_path / "r" / "paper.json").read_text())
    assert [(row["arm"], row["paper"]) for row in table["arms"]] == [("tiered", 52.2), ("kace", 62.2)]
    ours, papers = table["tree"][-2:]
    assert ours["cards"] == len(TREE.shown) and papers["tokens per card"] == 254
    assert table["costs"] == [], "nothing was learned"
    page = (tmp_path / "r" / "report" / "index.html").read_text()
    for title in ("arms", "tree"):
        assert TITLES[title] in done.stdout and html.escape(TITLES[title]) in html.unescape(page).replace("'", "&#x27;")
    assert "Compared with kace" in page, "kace is what the others are compared with"


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)], ids=["untrained", "all"])
def test_a_frozen_tree_of_the_papers_size_runs_whole(tmp_path: Path, whole: bool):
    """132 cards by a script, so that none names a training problem, and there is nothing to reflect on."""
    write_aime(tmp_path / "data")
    tree = paper_tree(tuple(DOMAINS))
    TreeStore.create(tmp_path / "tree", tree.domains, tree, author="a script")
    assert run_kace(tmp_path, "tree", "freeze", "tree").returncode == 0
    arms = [arm for arm in default_arms("aime25", Path("tree")) if whole or not spec_of(arm).trainer]
    assert REFLECTIONS not in arms
    more = () if whole else ("--arms", ",".join(arms))
    with ChatServer(ChatWorld()) as server:
        done = run_kace(tmp_path, *words(tmp_path, server.url, *more, "--tree", "tree", "--yes"))
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "r" / "paper.json").read_text()
    assert "-0.0" not in written
    table = json.loads(written)
    assert [row["arm"] for row in table["arms"]] == arms
    assert table["tree"][-2]["cards"] == 132
    block = 132 // 2 // len(DOMAINS)
    most = {"kace": block, "kace-no-domain": 66, "kace-monolithic": 132, "kace-router": 8, "kace-retriever": 8}
    for arm, cards in most.items():
        (found,) = ScoreReader().open([tmp_path / "r" / "runs" / arm])
        shown = {len(recall.cards) for solution in found.solutions() for recall in solution.recalls}
        assert max(shown) == cards or arm == "kace-router", arm
        assert max(shown) <= cards


def recipe(*arms: str, benchmark: str = "aime25", tree: Path | None = None) -> Recipe:
    return Recipe(benchmark, arms or TABLE, Path("r"), 3, tree)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--set", "data_dir=nowhere"), "nowhere/aime_2022_2024.jsonl: no such file"),
        (("--limit", "5"), "5 training problems are too few to learn from"),
        (("--max-usd", "1"), "needs a price for 'openai/"),
        (("--tree", "absent"), "absent"),
    ],
)
def test_what_is_missing_is_one_line_before_anything_is_paid_for(tmp_path: Path, more, message: str):
    write_aime(tmp_path / "data")
    done = run_kace(tmp_path, *words(tmp_path, "http://127.0.0.1:9"), *more, "--yes")
    assert done.returncode == 2
    assert message in done.stderr.strip().splitlines()[-1]


def test_an_extra_is_missed_before_the_first_call(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "gepa", None)
    with pytest.raises(UsageError) as caught:
        check_recipe(recipe("tiered-gepa"))
    assert caught.value.fix == "pip install 'kace[gepa]'"
    check_recipe(recipe("tiered"))


@pytest.mark.parametrize(("benchmark", "tree"), [("aime25", "2"), ("math-hard", "4")])
def test_each_arm_reads_what_was_trained_for_the_papers_epochs(benchmark: str, tree: str):
    lines = recipe(benchmark=benchmark).commands()
    made = {}
    for line in lines:
        if "--method" in line:
            assert "--profile" in line, "trained as it is read"
            made[option(line, "--out")] = (option(line, "--method"), option(line, "--epochs"))
    reads = {}
    for line in lines:
        if line[0] == "eval":
            artefact = option(line, "--artefact") or option(line, "--tree")
            reads[line[2]] = made.get(artefact)
    assert reads["ace"] == ("ace", "2") and reads["domain-ace"] == ("domain-ace", "2")
    assert reads["gepa"] == ("gepa", "1")
    assert reads["tiered-ace"] == ("ace", "1") and reads["tiered-gepa"] == ("gepa", "2")
    assert reads["kace-reflections"] == ("reflections", tree)
    (reflects,) = [line for line in lines if option(line, "--method") == "reflections"]
    assert option(reflects, "--tree") == "r/tree", "the cards of the learned tree are replaced"
    assert reads["kace"] is None


def option(line: list[str], name: str) -> str:
    return line[line.index(name) + 1] if name in line else ""


def test_arms_read_what_was_made_for_them_and_ladders_share_their_es_attempts():
    arms = ("tiered", "kace", "knn-fewshot", "oracle-card")
    lines = {line[2]: line for line in recipe(*arms, tree=Path("tree")).commands() if line[0] == "eval"}
    assert option(lines["knn-fewshot"], "--artefact") == "r/data/train.jsonl"
    assert option(lines["oracle-card"], "--tree") == "tree"
    assert option(lines["oracle-card"], "--artefact") == "r/data/train.jsonl"
    assert all("--reuse" in lines[name] for name in arms[1:])
