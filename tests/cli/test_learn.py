"""`kace learn` by hand: a teacher who answers files, caps, a forecast, a report, and bad input in one line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kace.cards.store import TreeStore, open_tree
from kace.config import load_config
from kace.learning.report import DOMAINS, LADDER_ATTEMPTS, forecast
from kace.learning.study import Settings
from kace.models.base import AttemptKey, Request, Sampling, chat
from kace.problems import problem_rows
from tests.command import Kace, environment, run_kace
from tests.learning.world import World, problems

pytestmark = pytest.mark.usefixtures("train_file")
TRAIN = problems(2)
TUNED = ("learn", "--train", "train.jsonl", "--profile", "paper", "--set", "impact_runs=1",
         "--set", "router=words")  # fmt: skip
LEARN = (*TUNED, "--out", "tree", "--model", "scripted/dice?sides=9")
BY_FILES = (*LEARN, "--teacher", "exchange/desk", "--set", "wait=false")


def answer_all(desk: Path) -> int:
    """Answer every request that lies on the desk, as a person would: from its text alone."""
    answered = 0
    for request in sorted(desk.glob("*.request.md")):
        reply = request.with_name(request.name.replace(".request.", ".reply."))
        if not reply.exists():
            name = re.sub(r"-\d+-[0-9a-f]{8}$", "", request.name.removesuffix(".request.md")).replace("-", " ")
            key = AttemptKey(name, 0, "TEACHER", 0)
            asked = Request(chat("", request.read_text()), Sampling(0.0, 100, 0), key)
            reply.write_text(World().teach(asked))
            answered += 1
    return answered


def learned(kace: Kace, folder: Path) -> subprocess.CompletedProcess[str]:
    for _ in range(40):
        done = kace(*BY_FILES)
        assert done.returncode == 0, done.stderr
        if not answer_all(folder / "desk"):
            return done
        assert "desk" in done.stderr, "what is outstanding is named"
    raise AssertionError("the learner asks for ever")


def test_a_teacher_by_files_a_report_and_a_replay(kace: Kace, tmp_path: Path):
    done = learned(kace, tmp_path)
    assert TreeStore.open(tmp_path / "tree").read().frozen is not None
    assert "teacher" in done.stdout and "Traceback" not in done.stderr
    told = json.loads(kace("learn", "report", "tree", "--json").stdout)
    assert told["runs"]
    again = kace(*TUNED, "--out", "again", "--model", "replay/tree/learn", "--teacher", "replay/tree/learn")
    assert again.returncode == 0, again.stderr
    cards = [
        [(card.payload, card.status, card.helpfulness_score) for card in open_tree(tmp_path / name)]
        for name in ("tree", "again")
    ]
    assert cards[0] == cards[1] != []


AGENT = """#!{python}
import re, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.cli.test_learn import answer_all
assert Path(re.search(r"desk/\\S+[.]request[.]md", sys.argv[1])[0]).is_file()
answer_all(Path("desk"))
"""


@pytest.mark.slow
def test_a_coding_agent_is_the_teacher_as_the_page_says(tmp_path: Path):
    """The page's own lines, run by a shell, with a program in the place of the agent."""
    root = Path(__file__).resolve().parents[2]
    (script,) = re.findall(
        r"```bash\n(kace learn [^`]*exchange/desk.*?)```", (root / "docs/learning.md").read_text(), re.S
    )
    assert len(script.splitlines()) <= 10
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"agent": AGENT, "kace": "#!{python}\nfrom kace.cli import main\nmain()\n"}.items():
        (programs / name).write_text(text.format(python=sys.executable, root=str(root)))
        (programs / name).chmod(0o755)
    (tmp_path / "train.jsonl").write_text("\n".join(problem_rows(TRAIN)) + "\n")
    (tmp_path / "short.toml").write_text("[learning]\nexamples = 0\nwordings = 0\nmax_harm = 0\n")
    env = environment(tmp_path, KACE_MODEL="scripted/dice?sides=9", KACE_PROFILE="short.toml")
    env["PATH"] = f"{programs}:{env['PATH']}"
    quick = script.replace("sleep 2", "sleep 0.1")
    done = subprocess.run(["bash", "-c", quick], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert TreeStore.open(tmp_path / "tree").read().frozen, done.stderr
    report = json.loads(run_kace(tmp_path, "learn", "report", "tree", "--json").stdout)
    assert report["state"] == "finished" and report["teacher"] == "exchange/desk" and report["funnel"]["proposed"]


def test_a_teachers_replies_are_as_long_as_asked_for(kace: Kace, tmp_path: Path):
    for option, said in (((), "16,000 tokens at most"), (("--set", "teacher_max_tokens=4000"), "4,000 tokens at most")):
        assert kace(*BY_FILES, *option).returncode == 0
        newest = max((tmp_path / "desk").glob("*.request.md"), key=lambda path: path.stat().st_mtime_ns)
        assert said in newest.read_text()


def test_a_cap_stops_it_and_keeps_what_was_paid_for(kace: Kace, tmp_path: Path):
    stopped = kace(*BY_FILES)
    assert stopped.returncode == 0 and answer_all(tmp_path / "desk") == 1
    capped = kace(*BY_FILES, "--max-calls", "30")
    assert capped.returncode == 1 and "cap of 30 calls" in capped.stderr and "same command" in capped.stderr
    kept = sum(len(path.read_text().splitlines()) for path in (tmp_path / "tree" / "learn" / "calls").glob("*"))
    assert kept >= 30
    assert kace("learn", "report", "tree").returncode == 0, "a run that is not finished has a report too"
    learned(kace, tmp_path)
    assert TreeStore.open(tmp_path / "tree").read().frozen


def test_a_dry_run_spends_and_writes_nothing(kace: Kace, tmp_path: Path):
    (tmp_path / "kace.toml").write_text('[prices."openai/big"]\ninput = 3.0\noutput = 15.0\n')
    done = kace(*LEARN, "--teacher", "openai/big", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "nothing was spent" in done.stderr
    solver, teacher = json.loads(kace(*LEARN, "--teacher", "openai/big", "--dry-run", "--json").stdout)
    assert (solver["role"], teacher["role"]) == ("solver", "teacher")
    assert solver["usd"] == 0 < teacher["usd"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kace.toml", "train.jsonl"]


def test_a_dry_run_counts_the_examples_that_are_written_by_default(kace: Kace):
    dry = ("learn", "--train", "train.jsonl", "--out", "tree", "--model", "scripted/dice", "--teacher", "openai/big",
           "--set", "epochs=2", "--set", "add_runs=2", "--set", "wordings=0", "--dry-run", "--json")  # fmt: skip
    options = ((), ("--set", "examples=0"), ("--set", "examples=2"))
    worked, plain, two = (json.loads(kace(*dry, *more).stdout)[-1] for more in options)
    assert worked == two
    assert worked["calls"] - plain["calls"] == 2 * 2 * DOMAINS, "two epochs, two tiers: a request each and domain"
    assert worked["output"] > 2 * plain["output"]


@pytest.mark.parametrize(("settings", "runs"), [({}, 5), ({"refine": 2}, 7), ({"refine": 1}, 6.5)])
def test_the_forecast_counts_a_base_run_only_where_one_is_made(settings: dict[str, int], runs: float):
    solver = forecast(TRAIN, load_config({"model": "scripted/dice"}, env={}), Settings(**settings))[0]
    assert solver.calls == pytest.approx(runs * LADDER_ATTEMPTS * len(TRAIN))


WRONG = {
    "no teacher": (LEARN, "a learner needs a teacher"),
    "no file": (("learn", "--out", "tree"), "--train is missing"),
    "no place": (("learn", "--train", "train.jsonl"), "--out is missing"),
    "few problems": ((*BY_FILES, "--limit", "5"), "too few to learn from"),
    "held out": ((*BY_FILES, "--held-out", "train.jsonl"), "18 training problems appear in train.jsonl too"),
    "unknown method": ((*BY_FILES, "--method", "magic"), "'magic' is not one of"),
    "unknown measure": ((*BY_FILES, "--set", "impact=magic"), "impact cannot be 'magic'"),
    "a sure hiding": ((*BY_FILES, "--set", "keep_above=2"), "keep_above cannot be 2"),
    "unknown setting": ((*BY_FILES, "--set", "impacts=1"), "unknown setting 'impacts'"),
    "no setting": ((*BY_FILES, "--set", "impact"), "--set cannot be read"),
    "money without a price": ((*LEARN, "--teacher", "openai/big", "--max-usd", "1"), "needs a price for 'openai/big'"),
    "no learner's folder": (("learn", "report", "train.jsonl"), "train.jsonl"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG.keys())
def test_bad_input_is_one_clear_line(kace: Kace, arguments: tuple[str, ...], said: str):
    done = kace(*arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


# Without a key


def test_the_demo_runs_the_whole_loop_and_resumes(kace: Kace, tmp_path: Path):
    demo = ("learn", "--demo", "--model", "scripted/dice?sides=9", "--out", "demo")
    first, again = kace(*demo), kace(*demo)
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert "10 problems are few" in first.stdout and "95 % interval" in first.stdout
    assert first.stdout == again.stdout
    assert "calls: none" in again.stderr and "10 solves were done before" in again.stderr
    assert "replies are recorded" in first.stdout
    report = kace("learn", "report", "demo/tree").stdout
    assert "gave 4 cards. 4 passed admission; kept in the tree: 4," in " ".join(report.split())
    assert "scripted/recorded" in (tmp_path / "demo" / "tree" / "cards.jsonl").read_text()
    refused = kace(*demo, "--train", "train.jsonl")
    assert refused.returncode == 2 and "--demo brings its own problems" in refused.stderr


CHATTER = "Here is what I think about these problems, in no form at all."


def test_a_teacher_whose_replies_hold_no_form_ends_in_one_clear_line(kace: Kace, tmp_path: Path):
    assert kace(*BY_FILES).returncode == 0
    for _ in range(2):
        for request in (tmp_path / "desk").glob("*.request.md"):
            request.with_name(request.name.replace(".request.", ".reply.")).write_text(CHATTER)
        done = kace(*BY_FILES)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "the teacher proposed no usable domains, in two tries" in done.stderr
    told = kace("learn", "report", "tree")
    assert told.returncode == 0 and "No card has been proposed yet" in told.stdout
