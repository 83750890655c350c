"""A large evaluation: how long reading, metrics, comparison and report of many recorded solves take, and what memory.

    python benchmarks/bench_evaluate.py [--quick] [--solves N]

The solves are made up: a ladder over problems of every difficulty, three seeds each, with attempts, votes and cards
of a realistic size, written as `kace eval` writes them. Every step runs in a process of its own, so that its peak
memory is its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kace.answers.equal import Verdict
from kace.ladder.record import Attempt, ClassRecord, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import LOCKED, PAPER_CALLS, ExitPath, TierName
from kace.runs.manifest import manifest_of

SEEDS = 3
DOMAINS = ("algebra", "combinatorics", "geometry", "number_theory", "analysis")
STEP = """
import json, resource, sys, time
from pathlib import Path
began = time.perf_counter()
{body}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.perf_counter() - began, time.process_time(), peak, note]))
"""
READ = """
from kace.runs.table import open_tables
arms = open_tables([Path(folder) for folder in sys.argv[1:]])
note = f"{sum(len(arm) for arm in arms):,} rows"
"""
METRICS = """
from kace.runs.metrics import metrics_of
found = metrics_of(arms[0])
note = f"accuracy {found.accuracy:.3f} ({found.interval.low:.3f} to {found.interval.high:.3f})"
"""
COMPARE = """
from kace.runs.compare import compare
note = compare(arms[0], arms[1]).sentence
"""
REPORT = """
from kace.report.evaluation_page import page
from kace.report.evaluation import evaluation_of
html = page(evaluation_of(arms))
note = f"a page of {len(html) / 1e6:.1f} MB"
"""


def tried(chance: random.Random, tier: TierName, index: int, rate: float) -> Attempt:
    """An attempt that is right as often as the problem allows."""
    right = chance.random() < rate
    return Attempt(
        tier=tier,
        index=index,
        lens="domain_patterns",
        prompt="0" * 12,
        outcome=Outcome.ANSWERED,
        answer="1" if right else str(chance.randint(2, 6)),
        call=f"{chance.getrandbits(256):064x}",
        input=900 + chance.randint(0, 4_000),
        cached=512,
        output=chance.randint(200, 6_000),
        seconds=round(chance.uniform(1, 60), 4),
        from_cache=False,
        detail="",
        correct=right,
    )


def climbed(chance: random.Random, rate: float) -> tuple[list[Attempt], ExitPath]:
    """Attempts until some gate opens."""
    attempts: list[Attempt] = []
    for tier in LOCKED:
        here = [tried(chance, tier.name, index, rate) for index in range(tier.attempts)]
        attempts += here
        answers = [attempt.answer for attempt in here]
        if tier.exit and max(map(answers.count, answers)) >= tier.gate.votes:
            return attempts, tier.exit
    return attempts, ExitPath.FALLBACK_PLURALITY


def solved(chance: random.Random, number: int, seed: int, rate: float) -> Solution:
    """One solve of a made-up problem."""
    attempts, path = climbed(chance, rate)
    said = [attempt.answer or "" for attempt in attempts]
    answer = max(dict.fromkeys(said), key=said.count)
    tiers = list(dict.fromkeys(attempt.tier for attempt in attempts if attempt.tier is not TierName.ES))
    domain = DOMAINS[number % len(DOMAINS)]
    return Solution(
        problem=hashlib.sha256(str(number).encode()).hexdigest()[:16],
        label=f"made-up-{number:06}",
        family=None,
        domain=domain,
        seed=seed,
        exit=path,
        answer=answer,
        expected="1",
        verdict=Verdict.SAME if answer == "1" else Verdict.DIFFERENT,
        correct=answer == "1",
        paper_calls=PAPER_CALLS[path],
        real_calls=len(attempts),
        seconds=round(chance.uniform(2, 200), 4),
        failed=False,
        recalls=tuple(recalled(tier, domain, place) for place, tier in enumerate(tiers)),
        classes=tuple(
            ClassRecord(answer=one, positions=tuple(i for i, other in enumerate(said) if other == one))
            for one in dict.fromkeys(said)
        ),
        attempts=tuple(attempts),
    )


def recalled(tier: TierName, domain: str, place: int) -> RetrievedContext:
    """A block of twelve cards."""
    return RetrievedContext(
        tier=tier,
        domains=(domain,),
        cards=tuple(f"RUBRIC_{domain.upper()}_{tier}_{number}" for number in range(12)),
        eligible=12,
        tokens=3_000,
        estimated=True,
        classifier_calls=0 if place else 1,
        classifier_input=0 if place else 700,
        classifier_output=0 if place else 5,
    )


def lines(solves: int, lift: float) -> Iterator[str]:
    """The trace of a made-up run."""
    chance = random.Random(11)
    problems = -(-solves // SEEDS)
    rates = [chance.betavariate(0.6, 0.6) for _ in range(problems)]
    for place in range(solves):
        seed, number = divmod(place, problems)
        yield solved(chance, number, seed, min(1.0, rates[number] + lift)).model_dump_json() + "\n"


def write_run(folder: Path, system: str, solves: int, lift: float) -> None:
    """A run directory as `kace eval` leaves it, without the calls."""
    from kace.config import load_config

    folder.mkdir(parents=True)
    manifest = {**manifest_of(load_config({"model": "scripted/made-up"})), "system": {"name": system, "artefact": None}}
    (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    with (folder / "traces.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(lines(solves, lift))


def step(name: str, body: str, folders: list[Path]) -> None:
    """Run a step in a process of its own and print what it took."""
    script = STEP.format(body=body)
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, folders)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{name:28} {done.stderr.strip().splitlines()[-1]}")
        return
    seconds, cpu, peak, said = json.loads(done.stdout)
    print(f"{name:28} {seconds:6.1f} s   CPU {cpu:6.1f} s   peak {peak:5.0f} MB   {said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5,000 solves")
    parser.add_argument("--solves", type=int, default=100_000)
    options = parser.parse_args()
    solves = 5_000 if options.quick else options.solves
    with tempfile.TemporaryDirectory() as place:
        base, other = Path(place) / "base", Path(place) / "other"
        write_run(base, "tiered", solves, 0.0)
        write_run(other, "kace", solves, 0.05)
        size = (base / "traces.jsonl").stat().st_size / 1e6
        print(f"{solves:,} solves a run, {SEEDS} seeds, {size:,.0f} MB of traces each")
        step("read one", READ, [base])
        step("metrics of one", READ + METRICS, [base])
        step("read and compare two", READ + COMPARE, [base, other])
        step("read and report one", READ + REPORT, [base])
        step("read and report two", READ + REPORT, [base, other])


if __name__ == "__main__":
    main()
