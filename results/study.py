"""Run the third test: every arm on the same problems, with Tiered's attempts shared.

    python results/study.py WORK --server http://127.0.0.1:8000/v1 [--server ...]

WORK holds the training problems with their solutions (`train.jsonl`, and
`families.jsonl` with their families), the learned tree `tree-a` with everything but its measuring done, and
`tree-b`, the published technique tree with a new index, and `families-b.jsonl`. What is
run, and in which order, is fixed here; nothing is chosen from its results. A command that
has finished is not run again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kace.cards.card import Card, Provenance, Status
from kace.cards.store import INDEX_FILE, TreeStore, open_tree
from kace.ladder.relevance import TextTable, best_encoder
from kace.problems import load_problems

SIDE_BY_SIDE = 4
GIVEN = (
    "--preset",
    "starter",
    "--set",
    "max_tokens=2000",
    "--set",
    "max_connections=500",
)
SKIP = ("--set", "es_policy=skip")
DATA = ("--data", "techniques", "--split", "third")
Arm = tuple[str, ...]
"""The name of a run, its system, and what it reads."""


def arms_of(tree: str, work: Path) -> Iterator[Arm]:
    """Yield the arms of a learned tree, the most wanted first."""
    read = ("--tree", str(work / f"tree-{tree}"))
    families = work / ("families.jsonl" if tree == "a" else "families-b.jsonl")
    told = ("--artefact", str(families))
    yield (f"kace-{tree}-skip-es", "kace", *read, *SKIP)
    yield (f"kace-{tree}", "kace", *read)
    yield (f"oracle-kept-{tree}-skip-es", "oracle-card", *read, *told, *SKIP)
    if tree == "a":
        admitted = ("--tree", str(work / "admitted-a"))
        yield ("admitted-a-skip-es", "kace", *admitted, *SKIP)
        yield (
            "oracle-admitted-a-skip-es",
            "oracle-card",
            *admitted,
            *told,
            *SKIP,
        )
        yield ("placebo-a", "kace-placebo", *read)


def other_arms(work: Path) -> Iterator[Arm]:
    """Yield the arms that read no tree."""
    shots = ("--artefact", str(work / "train.jsonl"))
    gate = ("--set", "relevance_threshold=0.3")
    yield ("few-shot-gated-skip-es", "knn-fewshot-gated", *shots, *gate, *SKIP)
    yield ("few-shot-skip-es", "knn-fewshot", *shots, *SKIP)
    yield ("few-shot", "knn-fewshot", *shots)
    yield ("best-of-5", "best-of-5")


def write_admitted(tree: Path, out: Path, train: Path) -> None:
    """Write a tree with every card that the teacher admitted, retired ones too."""
    if out.exists():
        return
    learned = open_tree(tree)
    cards: list[Card] = []
    for card in learned:
        known = {
            **dict(card.provenance),
            "promotion_status": Status.EXPERIMENTAL,
        }
        cards.append(
            card.model_copy(
                update={"provenance": Provenance.model_validate(known)}
            )
        )
    TreeStore.create(
        out, learned.domains, cards, author="study", note="every admitted card"
    )
    TreeStore.open(out).freeze(author="study")
    (out / "profile.toml").write_bytes((tree / "profile.toml").read_bytes())
    table = TextTable(open_tree(out), load_problems(train), best_encoder())
    table.index().save(out / INDEX_FILE)


class Study:
    """The commands of the study, each run once."""

    def __init__(
        self, work: Path, servers: Sequence[str], seeds: int, limit: int | None
    ) -> None:
        self.work = work
        self.servers = servers
        self.seeds = seeds
        self.limit = limit
        self.began = time.monotonic()

    def run(self, command: Sequence[str], out: Path) -> bool:
        """Run one command, with what it prints beside its folder."""
        done = out.with_name(out.name + ".done")
        if done.exists():
            return True
        out.parent.mkdir(parents=True, exist_ok=True)
        words = [*command, "--model", "openai/solver"]
        for server in self.servers:
            words += ["--base-url", server]
        started = time.monotonic()
        with out.with_name(out.name + ".txt").open("a") as printed:
            code = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "kace",
                    *words,
                    *GIVEN,
                    "--out",
                    str(out),
                ],
                stdout=printed,
                stderr=printed,
            ).returncode
        if code == 0:
            done.touch()
        now = time.monotonic()
        print(
            f"{now - self.began:5.0f} s: exit {code} after {now - started:.0f} s: "
            f"{out.name}",
            flush=True,
        )
        return code == 0

    def arm(self, arm: Arm) -> bool:
        """Run one arm; a broken one is tried once more."""
        name, system, *read = arm
        out = self.work / "runs" / name
        command = [
            "eval",
            "--system",
            system,
            *DATA,
            "--seeds",
            str(self.seeds),
            *read,
        ]
        if name != "tiered":
            command += ["--reuse", str(self.work / "runs" / "tiered")]
        if self.limit:
            command += ["--limit", str(self.limit)]
        return self.run(command, out) or self.run(command, out)

    def learn(self) -> bool:
        """Measure the cards of tree a, and set its thresholds."""
        held_out = []
        for split in ("validation", "test", "retest", "third"):
            held_out += [
                "--held-out",
                str(self.work / f"heldout-{split}.jsonl"),
            ]
        command = (
            "learn",
            "--train",
            str(self.work / "train.jsonl"),
            *held_out,
            "--teacher",
            "exchange/letters-a",
            "--set",
            "wait=false",
            "--seed",
            "0",
        )
        done = self.run(command, self.work / "tree-a")
        if done:
            write_admitted(
                self.work / "tree-a",
                self.work / "admitted-a",
                self.work / "train.jsonl",
            )
        return done

    def whole(self) -> None:
        """Run everything, what waits for nothing first."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            learned = pool.submit(self.learn)
            tiered = pool.submit(self.arm, ("tiered", "tiered"))
            tiered.result()
            first, *rest = arms_of("b", self.work)
            gated, *others = other_arms(self.work)
            waiting = [pool.submit(self.arm, arm) for arm in (first, gated)]
            wanted: list[Arm] = []
            if learned.result():
                wanted += arms_of("a", self.work)
            # The controls come last.
            wanted[4:4] = [*rest, *others]
            waiting += [pool.submit(self.arm, arm) for arm in wanted]
            for each in waiting:
                each.result()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--limit", type=int, help="only so many problems: to try the script"
    )
    given = parser.parse_args()
    Study(given.work, given.server, given.seeds, given.limit).whole()
    print("all done", flush=True)


if __name__ == "__main__":
    main()
