"""Run the fourth test: every arm on the same problems, with Tiered's attempts shared.

    python results/study.py WORK --server http://127.0.0.1:8000/v1 [--server ...]
        [--small http://127.0.0.1:8003/v1 ...]

WORK is a folder for the runs; trees and problems come from this repository. The servers
serve the 1.5B as `solver`, the small ones the 0.5B. What is run, and in which order, is
fixed here, and nothing is chosen from its results. A command that has finished is not run
again, so the same command resumes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from kace.problems import load_bundled, problem_rows

HERE = Path(__file__).resolve().parent
SIDE_BY_SIDE = 5
TREES = {"a": "third-a", "b": "techniques"}
"""The published trees of the third test, as they were learned."""
GIVEN = (
    "--preset",
    "starter",
    "--set",
    "max_tokens=2000",
    "--set",
    "max_connections=500",
)
SKIP = ("--set", "es_policy=skip")
DATA = ("--data", "techniques", "--split", "fourth")


@dataclass(frozen=True)
class Arm:
    """A run: its name, its system, and the options that say what it reads."""

    name: str
    system: str
    options: tuple[str, ...] = ()
    small: bool = False  # whether the 0.5B solves


def first_card(threshold: float) -> tuple[str, ...]:
    """Return the options that try the best card from a relevance on."""
    policy = ("--set", "es_policy=try")
    return (*policy, "--set", f"try_threshold={threshold}")


def arms_of(tree: str, work: Path) -> Iterator[Arm]:
    """Yield the arms of a tree, the most wanted first."""
    read = ("--tree", str(work / TREES[tree]))
    families = ("--artefact", str(work / f"families-{tree}.jsonl"))
    yield Arm(f"kace-{tree}-try", "kace", (*read, *first_card(0.2)))
    yield Arm(f"kace-{tree}-try-0.1", "kace", (*read, *first_card(0.1)))
    yield Arm(f"kace-{tree}-skip-es", "kace", (*read, *SKIP))
    yield Arm(f"kace-{tree}", "kace", read)
    yield Arm(
        f"oracle-{tree}-skip-es", "oracle-card", (*read, *families, *SKIP)
    )


def other_arms(work: Path) -> Iterator[Arm]:
    """Yield the controls, and what KACE is compared with."""
    tree = ("--tree", str(work / TREES["b"]))
    shots = ("--artefact", str(work / "train.jsonl"))
    yield Arm("few-shot-skip-es", "knn-fewshot", (*shots, *SKIP))
    yield Arm("few-shot-try", "knn-fewshot-gated", (*shots, *first_card(0.2)))
    yield Arm("paper-b", "kace", (*tree, "--profile", "paper"))
    yield Arm("placebo-b-try", "kace-placebo", (*tree, *first_card(0.2)))
    yield Arm("best-of-5", "best-of-5")


def small_arms(work: Path) -> Iterator[Arm]:
    """Yield the arms of the 0.5B, which reads the 1.5B's tree."""
    for arm in arms_of("b", work):
        if arm.system == "kace":
            yield replace(arm, name=f"{arm.name}-0.5b", small=True)


def prepare(work: Path) -> None:
    """Write the trees, the training problems, and their families for the oracle."""
    work.mkdir(parents=True, exist_ok=True)
    for tree in TREES.values():
        with tarfile.open(HERE / "trees" / f"{tree}.tar.xz") as packed:
            packed.extractall(work, filter="data")
    train = load_bundled("techniques", "train")
    numbered = []
    for number, problem in enumerate(train, 1):
        # Tree A was learned from the same problems without their names.
        numbered.append(replace(problem, label=f"p{number:03d}"))
    files = {"train": train, "families-a": numbered, "families-b": train}
    for name, problems in files.items():
        rows = "".join(f"{row}\n" for row in problem_rows(problems))
        (work / f"{name}.jsonl").write_text(rows, encoding="utf-8")


@dataclass(frozen=True)
class Study:
    """The commands of the study, each run once."""

    work: Path
    servers: Sequence[str]
    small: Sequence[str]
    seeds: int
    limit: int | None
    began: float

    def run(self, arm: Arm) -> bool:
        """Run one arm; a broken one is tried once more."""
        return self.evaluate(arm) or self.evaluate(arm)

    def evaluate(self, arm: Arm) -> bool:
        """Run the command of an arm, with what it prints beside its folder."""
        out = self.work / "runs" / arm.name
        done = out.with_name(out.name + ".done")
        if done.exists():
            return True
        out.parent.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "kace", "eval", "--system", arm.system]
        words += [*DATA, "--seeds", str(self.seeds), *GIVEN, *arm.options]
        words += ["--model", "openai/solver", "--out", str(out)]
        for server in self.small if arm.small else self.servers:
            words += ["--base-url", server]
        tiered = "tiered-0.5b" if arm.small else "tiered"
        if arm.name != tiered:
            words += ["--reuse", str(self.work / "runs" / tiered)]
        if self.limit:
            words += ["--limit", str(self.limit)]
        started = time.monotonic()
        with out.with_name(out.name + ".txt").open("a") as printed:
            code = subprocess.run(
                words, stdout=printed, stderr=printed
            ).returncode
        if code == 0:
            done.touch()
        now = time.monotonic()
        print(
            f"{now - self.began:5.0f} s: exit {code} after "
            f"{now - started:.0f} s: {out.name}",
            flush=True,
        )
        return code == 0

    def whole(self) -> None:
        """Run everything; the arms of a solver wait for its Tiered."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            first = [pool.submit(self.run, Arm("tiered", "tiered"))]
            if self.small:
                alone = Arm("tiered-0.5b", "tiered", small=True)
                first.append(pool.submit(self.run, alone))
            for each in first:
                each.result()
            wanted = [*arms_of("b", self.work), *arms_of("a", self.work)]
            wanted += other_arms(self.work)
            if self.small:
                wanted += small_arms(self.work)
            waiting = [pool.submit(self.run, arm) for arm in wanted]
            for each in waiting:
                each.result()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--small", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--limit", type=int, help="only so many problems: to try the script"
    )
    given = parser.parse_args()
    prepare(given.work)
    study = Study(
        given.work,
        given.server,
        given.small,
        given.seeds,
        given.limit,
        time.monotonic(),
    )
    study.whole()
    print("all done", flush=True)


if __name__ == "__main__":
    main()
