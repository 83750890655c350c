"""Run the third test: every arm on the same problems, with Tiered's attempts shared.

    python results/study.py WORK --server http://127.0.0.1:8000/v1 [--server ...]

WORK holds `train.jsonl` (the training problems), `families.jsonl` (the same with their families) and the learned
trees `tree-a` and `tree-b`. What is run, and in which order, is fixed here; nothing is chosen from its results. A
command that has finished is not run again.
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
from kace.cards.store import TreeStore, open_tree

SEEDS = 3
SIDE_BY_SIDE = 6
GIVEN = (
    "--preset",
    "starter",
    "--set",
    "max_tokens=2000",
    "--set",
    "max_connections=300",
    "--set",
    "cache=false",
)
SKIP = ("--set", "es_policy=skip")
Arm = tuple[str, ...]
"""The name of a run, its system, and what it reads."""


def arms_of(work: Path) -> Iterator[Arm]:
    """Yield the arms after Tiered, the most wanted first."""
    families = ("--artefact", str(work / "families.jsonl"))
    shots = ("--artefact", str(work / "shots"))
    for tree in ("a", "b"):
        read = ("--tree", str(work / f"tree-{tree}"))
        yield (f"kace-{tree}-skip-es", "kace", *read, *SKIP)
        yield (f"kace-{tree}", "kace", *read)
    for tree in ("a", "b"):
        kept = ("--tree", str(work / f"tree-{tree}"))
        admitted = ("--tree", str(work / f"admitted-{tree}"))
        yield (
            f"oracle-kept-{tree}-skip-es",
            "oracle-card",
            *kept,
            *families,
            *SKIP,
        )
        yield (
            f"oracle-admitted-{tree}-skip-es",
            "oracle-card",
            *admitted,
            *families,
            *SKIP,
        )
        yield (f"admitted-{tree}-skip-es", "kace", *admitted, *SKIP)
    yield ("few-shot", "knn-fewshot", *shots)
    yield ("few-shot-skip-es", "knn-fewshot", *shots, *SKIP)
    yield ("placebo-a", "kace-placebo", "--tree", str(work / "tree-a"))
    yield ("best-of-5", "best-of-5")
    yield ("single", "single")


def write_admitted(tree: Path, out: Path) -> None:
    """Write a tree with every card that the teacher admitted, retired ones too, with the same thresholds."""
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


def run(
    work: Path, command: Sequence[str], servers: Sequence[str], out: Path
) -> None:
    """Run one command, with what it prints beside its folder."""
    done = out.with_name(out.name + ".done")
    if done.exists():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    words = [*command, "--model", "openai/solver"]
    for server in servers:
        words += ["--base-url", server]
    began = time.monotonic()
    with out.with_name(out.name + ".txt").open("a") as printed:
        code = subprocess.run(
            [sys.executable, "-m", "kace", *words, *GIVEN, "--out", str(out)],
            stdout=printed,
            stderr=printed,
        ).returncode
    if code == 0:
        done.touch()
    print(
        f"{time.monotonic() - began:5.0f} s, exit {code}: {out.name}",
        flush=True,
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument(
        "--limit", type=int, help="only so many problems: to try the script"
    )
    given = parser.parse_args()
    work: Path = given.work
    for tree in ("a", "b"):
        write_admitted(work / f"tree-{tree}", work / f"admitted-{tree}")
    data: Arm = (
        "--data",
        "techniques",
        "--split",
        "third",
        "--seeds",
        str(SEEDS),
    )
    if given.limit:
        data = (*data, "--limit", str(given.limit))
    shots = (
        "learn",
        "--method",
        "knn-fewshot",
        "--train",
        str(work / "train.jsonl"),
    )
    tiered = work / "runs" / "tiered"
    first = [
        (shots, work / "shots"),
        (("eval", "--system", "tiered", *data), tiered),
    ]
    rest = []
    for name, system, *read in arms_of(work):
        command = (
            "eval",
            "--system",
            system,
            *data,
            *read,
            "--reuse",
            str(tiered),
        )
        rest.append((command, work / "runs" / name))
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for commands in (first, rest):
            list(
                pool.map(
                    lambda each: run(work, each[0], given.server, each[1]),
                    commands,
                )
            )


if __name__ == "__main__":
    main()
