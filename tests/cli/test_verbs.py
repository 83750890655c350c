"""`kace demo`, `doctor`, `models` and `data`, as a new user types them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from kace.cli import COMMANDS, app
from kace.cli.demo import MEASURED, RECORDED, WITH, WITHOUT, demo_problems
from kace.config import profile_of, tree_path
from kace.models.cache import read_calls
from tests.command import commands, run_kace
from tests.models.chat_server import Answer, ChatServer, error

ROOT = Path(__file__).parents[2]
POINTS = r"([-+]?[\d.]+) \[([-+]?[\d.]+), ([-+]?[\d.]+)\]"  # a difference with its interval


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What `kace demo --replay` prints, and the folder it ran in."""
    folder = tmp_path_factory.mktemp("demo")
    done = run_kace(folder, "demo", "--replay")
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


def test_the_demo_shows_what_cards_change_what_they_do_not_and_what_was_measured(replayed: tuple[str, Path]):
    out = replayed[0]
    assert out.startswith("This is a REPLAY of recorded runs of the real model; no model is running now.")
    assert all(" ".join(problem.text.split()) in " ".join(out.split()) for problem in demo_problems())
    assert out.count("  without cards  ") == len(demo_problems()) == 7
    assert len(re.findall(r"without cards .* wrong .*\n  with \d cards? .* right ", out)) >= 4, "repaired"
    assert re.search(r"with \d cards? .* wrong ", out), "read, and not saved"
    assert "no card fits, so nothing changes" in out
    assert "both ES attempts agree, so no card is read" in out
    assert "EXACT_LARGEST_AMOUNT_NOT_MADE: The two values are a and b." in out
    assert "Chosen to show cards." in out and out.count("\n  kace ") == 2 and "docs/quickstart.md" in out


def test_the_demo_writes_two_runs_over_the_same_problems(replayed: tuple[str, Path]):
    (demo,) = (replayed[1] / "runs").iterdir()
    manifests = [json.loads((demo / name / "run.json").read_text()) for name in (WITHOUT, WITH)]
    assert [each["system"]["name"] for each in manifests] == ["tiered", "kace"]
    assert manifests[0]["data"] == manifests[1]["data"]
    settings, remembered = manifests[1]["config"]["retrieval"], profile_of(None, tree_path("starter"))["retrieval"]
    assert {name: settings[name] for name in remembered} == remembered, "the tree is read as it was calibrated"
    assert manifests[1]["config"]["model"].startswith("replay/")
    done = run_kace(demo, "report", WITHOUT, WITH)
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_the_demo_as_it_is_printed(replayed: tuple[str, Path]):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n\$ kace demo --replay\n(.*?)```", page, re.DOTALL)
    end = 0
    for part in re.split(r"^\.\.\.\n", block, flags=re.MULTILINE):
        assert part in replayed[0][end:], part
        end = replayed[0].index(part, end) + len(part)


def test_the_figures_of_the_demo_are_the_published_ones():
    page = (ROOT / "results" / "more.md").read_text(encoding="utf-8")
    section = page[page.index("**Starter set**") :]

    def points(row: str) -> tuple[str, ...]:
        """The last cell of a row: the 0.5B's gain with its interval."""
        line = next(line for line in section.splitlines() if line.startswith(f"| {row}"))
        return tuple(re.findall(POINTS, line)[-1])

    right, alone = re.findall(r"0\.5B \(([\d.]+) %, ([\d.]+) calls\)", section)[0]
    gain, low, high = points("default ladder")
    calls = re.findall(r"\| default ladder .*, ([\d.]+) calls \|", section)[0]
    shown = " ".join(MEASURED.split())
    using = f"{float(right) + float(gain):.1f} % with the 44 cards that were learned"
    assert f"{right} % right without cards, {using}: {gain} points" in shown
    assert f"at {calls} calls a problem instead of {alone}" in shown
    assert f"95 % interval is {low} to {high}" in shown
    assert "without them {} ({} to {})".format(*points("without the nine invented")) in shown
    assert "training never saw: {} ({} to {})".format(*points("ten families not seen")) in shown


def test_the_recordings_are_of_the_default_model_and_only_those_with_cards_differ():
    recorded = [list(read_calls(RECORDED / name / "calls")) for name in (WITHOUT, WITH)]
    assert {row.problem for row in recorded[0]} == {problem.id for problem in demo_problems()}
    assert all("1d9614638d18024d" in row.model for rows in recorded for row in rows)
    assert "ES" not in {row.tier for row in recorded[1]}, "ES reads no card: its attempts are shared"


def test_a_demo_with_another_model_makes_every_attempt_itself(kace, tmp_path: Path):
    done = kace("demo", "--model", "scripted/steady", "--out", "both", PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 of 2 attempts agree at ES") == 2 * len(demo_problems())
    assert "REPLAY" not in done.stdout
    rows = [json.loads(line) for line in (tmp_path / "both" / WITHOUT / "traces.jsonl").read_text().splitlines()]
    assert not any(attempt["from_cache"] for row in rows for attempt in row["attempts"])


def test_without_weights_and_without_any_source_the_demo_replays(kace):
    # No hub answers and pip may not look anywhere: the weights cannot be had.
    done = kace("demo", HF_ENDPOINT="http://127.0.0.1:9", PIP_NO_INDEX="1", PIP_FIND_LINKS="/nonexistent")
    assert done.returncode == 0, done.stderr
    assert "REPLAY" in done.stdout
    assert "127.0.0.1:9" in done.stderr, "what was tried is named"
    assert "Traceback" not in done.stderr


def test_models_are_listed_with_size_and_state(kace):
    rows = [json.loads(line) for line in kace("models", "list", "--json").stdout.splitlines()]
    assert {row["name"] for row in rows} >= {"local/qwen2.5-coder-0.5b", "local/smollm2-135m"}
    assert not any(row["here"] for row in rows)
    assert "491 MB  not here" in kace("models", "list").stdout


def test_the_doctor_passes_what_works_and_says_the_fix_for_what_does_not(kace):
    good = kace("doctor", "--model", "scripted/steady")
    assert good.returncode == 0, good.stdout
    assert "FAIL" not in good.stdout
    bad = kace("doctor")
    assert bad.returncode == 1
    assert "fix: kace models pull qwen2.5-coder-0.5b" in bad.stdout
    keyless = kace("doctor", "--model", "openai/gpt-4.1-mini", "--json")
    checks = {row["name"]: row for row in map(json.loads, keyless.stdout.splitlines())}
    assert not checks["model"]["ok"]
    assert "OPENAI_API_KEY" in checks["model"]["fix"]


@pytest.mark.parametrize(
    ("reply", "healthy", "said"),
    [
        (Answer(body=b'{"data": [{"id": "m"}]}'), True, "has 'm'"),
        (Answer(body=b'{"data": [{"id": "other"}]}'), False, "choose one of other"),
        (error(401), False, "check the key"),
        (Answer(body=b"<html>hello"), False, "is the server up"),
    ],
)
def test_the_doctor_asks_the_endpoint(kace, reply: Answer, healthy: bool, said: str):
    with ChatServer([reply]) as server:
        done = kace("doctor", "--model", "openai/m", "--base-url", server.url)
    assert (done.returncode == 0) is healthy, done.stdout
    assert said in done.stdout


def test_the_doctor_looks_at_the_teacher_where_one_is_named(kace):
    keyless = kace("doctor", "--model", "scripted/steady", KACE_TEACHER="anthropic/m")
    assert keyless.returncode == 1 and "export ANTHROPIC_API_KEY" in keyless.stdout
    env = {"KACE_TEACHER": "anthropic/m", "KACE_TEACHER_API_KEY": "canary-12345"}
    keyed = kace("doctor", "--model", "scripted/steady", **env)
    assert keyed.returncode == 0, keyed.stdout
    assert "ok    teacher " in keyed.stdout and "canary" not in keyed.stdout


def test_the_doctor_notices_a_cache_that_cannot_be_written(kace, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    done = kace("doctor", "--model", "scripted/steady", KACE_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert done.returncode == 1
    assert "set KACE_CACHE_DIR" in done.stdout


def test_shared_options_are_refused_where_they_do_nothing(kace):
    refused = kace("tree", "freeze", "t", "--json")
    assert refused.returncode == 2 and "no such option '--json'" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_help_fits_one_screen_and_has_a_short_form(kace):
    shown = kace("-h").stdout
    assert shown == kace("--help").stdout and len(shown.splitlines()) <= 30
    assert kace("tree", "show", "-h").returncode == 0


def test_the_list_of_verbs_says_what_each_says_of_itself():
    for verb, row in COMMANDS.items():
        command = app.get_command(None, verb)
        assert " ".join((command.help or "").split("\n\n")[0].split()) == row["help"]


def test_every_verb_has_examples_whose_options_exist():
    known = dict(commands())
    assert all(row["examples"] for row in COMMANDS.values())
    for line in (line for row in COMMANDS.values() for line in row["examples"]):
        verb, *words = shlex.split(line)[1:]
        command = known.get(f"{verb} {words[0]}" if words else verb, known[verb])
        options = {option for each in command.params for option in each.opts}
        assert {word for word in words if word.startswith("-")} <= options, line
