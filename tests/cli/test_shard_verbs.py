"""`--shard` and `kace report --merge` by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Kace
from tests.learning.world import problems

pytestmark = pytest.mark.usefixtures("p_file")
DICE = ("--model", "scripted/dice?sides=4")


def solves(run: Path) -> int:
    return len((run / "traces.jsonl").read_text().splitlines())


def test_shards_of_an_evaluation_merge_into_the_run_that_the_plain_command_goes_on_with(kace: Kace, tmp_path: Path):
    arguments = ("eval", "--system", "tiered", "--data", "p.jsonl", *DICE, "--seeds", "2")
    for shard in ("1/2", "2/2"):
        done = kace(*arguments, "--shard", shard)
        assert done.returncode == 0, done.stderr
    one, two = sorted((tmp_path / "runs").iterdir())
    assert (one.name[-5:], two.name[-5:]) == ("-1of2", "-2of2")
    whole = one.with_name(one.name.removesuffix("-1of2"))
    merged = kace("report", f"runs/{one.name}", f"runs/{two.name}", "--merge", f"runs/{whole.name}", "--out", "report")
    assert merged.returncode == 0, merged.stderr
    assert f"{len(problems(2))} problems, {2 * len(problems(2))} solves" in merged.stderr
    assert "missing" not in merged.stderr and (tmp_path / "report" / "index.html").is_file()
    before = solves(whole)
    again = kace(*arguments)
    assert again.returncode == 0, again.stderr
    assert f"{before} solves were done before" in again.stderr and solves(whole) == before
    told = json.loads(kace("report", f"runs/{whole.name}", "--json").stdout)
    assert told["arms"][0]["solves"] == before


def test_shards_of_a_file_merge_and_name_what_is_missing(kace: Kace, tmp_path: Path):
    arguments = ("eval", "--data", "p.jsonl", *DICE, "--seeds", "1")
    for shard in ("1/3", "2/3"):
        done = kace(*arguments, "--shard", shard, "--out", f"part{shard[0]}")
        assert done.returncode == 0, done.stderr
    other = kace(*arguments, "--limit", "3", "--shard", "3/3", "--out", "other")
    assert other.returncode == 0, other.stderr
    refused = kace("report", "part1", "other", "--merge", "run")
    assert refused.returncode == 2 and "is a shard with another data" in refused.stderr
    merged = kace("report", "part1", "part2", "--merge", "run")
    assert merged.returncode == 0, merged.stderr
    assert "missing      " in merged.stderr
    done = kace(*arguments, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert solves(tmp_path / "run") == len(problems(2)), "what the merged run lacked, and no more"
