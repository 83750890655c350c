"""The study on the technique set: train what KACE is compared with, choose on validation, then run the test once.

    python experiments/techniques/study.py work/ --server http://127.0.0.1:8000/v1

What is chosen, and how, is fixed here before any test problem is solved:

* the pool of demonstrations: of BM25 and embeddings, over problems and over problems with solutions, the one with which
  `knn-fewshot-skip-es` has the highest accuracy on validation; every few-shot arm uses it;
* the best few-shot, ACE and GEPA arm: the highest accuracy on validation, fewer calls where two tie;
* the KACE arm of the headline: the highest accuracy on validation among those that lose at most half a point there on
  the families that training never saw.

The tree is the one that is published beside this file, calibrated on the training problems for the solver at hand;
`worded` is the same tree with wordings. ACE and GEPA are taught by the solver itself. Tiered, KACE and chosen arms are
run with three seeds, the others with one. A step that has finished is not run again.

The 1.5B solver's test was run before there were wordings, and is why there are: for it, the worded arms are a second
look at the same problems. So there is a retest: 1,000 problems of the same families in new stories with new numbers,
whose writers saw families and no card, when everything that is read was published already:

    python experiments/techniques/study.py work/ --server URL --solver 1.5b --step freeze --step retest

Fixed before one of its problems was solved: the trees, their thresholds, demonstrations, playbooks and prompts of the
test are read again, and nothing is chosen. All arms have three seeds and share Tiered's attempts. The arm of the
headline is `worded-skip-es`, for both solvers. It is compared with Tiered, with the few-shot, ACE and GEPA arms that
validation chose, and with whichever of each kind does best on the retest. `solutions` are trees that
`--teacher solutions` makes of the training problems' own solutions.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from commands import Commands

from kace.datasets.techniques.generate import families, splits_of
from kace.runs.arm import read_arm

HERE = Path(__file__).resolve().parent
FIRST = ("--set", "relevance=tree", "--set", "relevance_threshold=2")  # the first version's score
UNSEEN = {family.name for family in families() if splits_of(family)[0] != "train"}
INDEXED = ("problem", "solution")
POOLS = {f"{ranking}-{index}": (ranking, index) for ranking in ("words", "meaning") for index in INDEXED}
LADDERS = ("", "-skip-es", "-gated", "-gated-skip-es")
FEWSHOT = tuple(f"{kind}-fewshot{ladder}" for kind in ("knn", "bootstrap") for ladder in LADDERS)
ACE = ("tiered-ace", "tiered-ace-from-ms", "tiered-ace-skip-es")
GEPA = ("tiered-gepa", "tiered-gepa-from-ms", "tiered-gepa-skip-es")
KACE = ("kace", "kace-skip-es", "worded", "worded-skip-es", "first-gate", "first-gate-skip-es")
TREES = {"tree": "learn", "worded": "worded-32"}  # the folder here, and whose tree it is
STEPS = ("prepare", "train", "validate", "baseline", "test")
CONTROLS = ("kace-placebo", "kace-monolithic", "oracle-card", "oracle-card-skip-es", "single", "best-of-10")
WORDED = {"1.5b": 0.445, "0.5b": 0.353}  # the thresholds that training gave the worded tree
POOL = "meaning-solution"  # that validation chose for either solver
RETEST = (
    *("worded-skip-es", "worded", "kace-skip-es", "kace", "solutions-skip-es", "solutions"),
    *("knn-fewshot-gated-skip-es", "knn-fewshot-skip-es", "bootstrap-fewshot-gated-skip-es", "oracle-card-skip-es"),
    *("tiered-ace-skip-es", "tiered-ace", "tiered-gepa-skip-es", "tiered-gepa-from-ms", "bootstrap-fewshot-skip-es"),
    *("oracle-card", "knn-fewshot-gated", "bootstrap-fewshot-gated", "kace-placebo", "first-gate-skip-es"),
    *("first-gate", "tiered-ace-from-ms", "knn-fewshot", "bootstrap-fewshot", "tiered-gepa", "single", "best-of-10"),
)
"""Every arm, the most wanted first."""


class Study:
    """One solver's study in one folder."""

    def __init__(self, work: Path, commands: Commands, limit: int | None, solver: str | None) -> None:
        self.work, self.commands, self.limit, self.solver = work, commands, ("--limit", limit) if limit else (), solver
        self.training = work / "techniques_train.jsonl"
        self.learn = ("learn", "--preset", "starter", *self.limit, "--train", self.training)

    def prepare(self) -> None:
        """Calibrate the tree, and gather demonstrations."""
        for name, published in TREES.items():
            if not (self.work / name).exists():
                shutil.copytree(HERE / published / "tree", self.work / name)
        calibrate = ("learn", "calibrate", "--preset", "starter", "--train", self.training)
        out = self.work / "artefacts" / "bootstrap"
        bootstrap = (*self.learn, "--method", "bootstrap-fewshot", "--epochs", 2, "--out", out)
        self.commands.all([*((*calibrate, self.work / name) for name in TREES), bootstrap, *map(self.pool, INDEXED)])

    def pool(self, index: str) -> Sequence[object]:
        """The command that gathers solved training problems, to be found by this part of them."""
        out = self.work / "artefacts" / f"knn-{index}"
        return (*self.learn, "--method", "knn-fewshot", "--set", f"index={index}", "--out", out)

    def train(self) -> None:
        """A playbook and a prompt, taught by the solver itself."""
        learn = (*self.learn, "--teacher", "openai/solver")
        learn += ("--set", f"teacher_base_url={self.commands.servers[0]}", "--set", "teacher_max_tokens=1500")
        third, made = self.work / "third_of_validation.jsonl", self.work / "artefacts"
        lines = (self.work / "techniques_validation.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        third.write_text("".join(lines[::3]), encoding="utf-8")  # by whose scores GEPA keeps a prompt
        gepa = ("--set", "minibatch=4", "--set", "max_metric_calls=1200", "--validation", third)
        self.commands.all(
            [
                (*learn, "--method", "ace", "--set", "batch=24", "--out", made / "ace"),
                (*learn, "--method", "gepa", *gepa, "--out", made / "gepa"),
            ]
        )

    def baseline(self) -> None:
        """Tiered on the test, for which nothing is chosen."""
        self.commands.one(self.arm("test", "tiered", 3))

    def arm(self, split: str, name: str, seeds: int, pool: str = "words-problem", folder: str = "") -> Sequence[object]:
        """The command of one arm."""
        ranking, index = POOLS[pool]
        runs, made, base = self.work / split / "runs", self.work / "artefacts", name.removeprefix("tiered-")
        read: tuple[object, ...] = ()
        if "fewshot" in name:
            source = f"knn-{index}" if name.startswith("knn") else "bootstrap"
            read = ("--artefact", made / source, "--set", f"ranking={ranking}", *self.thresholds())
        elif base.startswith(("ace", "gepa")):
            read = ("--artefact", made / base.split("-")[0])
        elif name.startswith(("kace", "worded", "solutions", "first-gate", "oracle")):
            tree = next((made for made in ("worded", "solutions") if name.startswith(made)), "tree")
            read = ("--tree", self.work / tree, *(FIRST if name.startswith("first") else ()))
            read += gate(WORDED[self.solver]) if tree == "worded" and self.solver else ()
            read += ("--artefact", self.training) if name.startswith("oracle") else ()
            read += () if "skip" in name or name.startswith("oracle") else ("--set", "es_policy=locked")
        system = re.sub("^(first-gate|worded|solutions)", "kace", name)
        reuse = () if name == "tiered" else ("--reuse", runs / "tiered")
        asked = ("--data", "techniques", "--split", split, "--preset", "starter", "--seeds", seeds, *self.limit)
        return ("eval", "--system", system, *asked, *read, *reuse, "--out", runs / (folder or name))

    def thresholds(self) -> tuple[str, ...]:
        """The calibrated thresholds, for the gate of demonstrations."""
        lines = (self.work / "tree" / "profile.toml").read_text(encoding="utf-8").splitlines()
        return gate(dict(line.split(" = ") for line in lines if " = " in line)["relevance_threshold"])

    def validate(self) -> None:
        """Every candidate on validation, and what is chosen of them, in chosen.json."""
        run, split = self.commands, "validation"
        run.one(self.arm(split, "tiered", 2))
        run.all(self.arm(split, "knn-fewshot-skip-es", 1, pool, f"pool-{pool}") for pool in POOLS)
        pool = self.best([f"pool-{pool}" for pool in POOLS]).removeprefix("pool-")
        run.all([self.arm(split, name, 2) for name in KACE] + [self.arm(split, name, 1, pool) for name in FEWSHOT])
        while not all((self.work / "artefacts" / f"{name}.done").exists() for name in ("ace", "gepa")):
            time.sleep(1)  # they may be trained by another process
        run.all(self.arm(split, name, 1) for name in (*ACE, *GEPA))
        harmless = [name for name in KACE if self.unseen(name) >= -0.005]
        chosen = {
            "pool": pool,
            "few-shot": self.best(FEWSHOT),
            "ace": self.best(ACE),
            "gepa": self.best(GEPA),
            "kace": self.best(harmless or ["kace"]),
            "loss on unseen families": {name: round(100 * self.unseen(name), 2) for name in KACE},
        }
        (self.work / "chosen.json").write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(chosen), flush=True)

    def best(self, names: Sequence[str]) -> str:
        """The highest accuracy on validation, over the first seed, fewer calls where two tie."""

        def score(name: str) -> tuple[float, float]:
            folder = self.work / "validation" / "runs" / name
            if not folder.with_name(name + ".done").exists():
                return (-1.0, 0.0)
            rows = [row for row in read_arm(folder).rows if row.seed == 0]
            return sum(bool(row.correct) for row in rows) / len(rows), -sum(row.paper_calls for row in rows) / len(rows)

        return max(names, key=score)

    def unseen(self, name: str) -> float:
        """What an arm adds to Tiered's accuracy on families that training never saw."""
        runs, means = self.work / "validation" / "runs", []
        for each in (name, "tiered"):
            rows = [row for row in read_arm(runs / each).rows if row.family in UNSEEN]
            means.append(sum(bool(row.correct) for row in rows) / len(rows))
        return means[0] - means[1]

    def test(self) -> None:
        """The test, once: chosen arms with three seeds, then every other with one."""
        chosen = json.loads((self.work / "chosen.json").read_text(encoding="utf-8"))
        pool, best = chosen["pool"], [chosen[kind] for kind in ("few-shot", "ace", "gepa")]
        self.baseline()
        self.commands.all(self.arm("test", name, 3, pool) for name in (*KACE, *best))
        rest = [name for name in (*FEWSHOT, *CONTROLS, *ACE, *GEPA) if name not in best]
        self.commands.all(self.arm("test", name, 1, pool) for name in rest)

    def freeze(self) -> None:
        """What a solver's published test read, and a tree of solutions."""
        published = {
            "tree": HERE / f"test-{self.solver}" / "tree",
            "worded": HERE / TREES["worded"] / "tree",
            "artefacts": HERE / f"artefacts-{self.solver}",
        }
        for name, folder in published.items():
            if not (self.work / name).exists():
                shutil.copytree(folder, self.work / name)
        solutions = (*self.learn, "--teacher", "solutions", "--out", self.work / "solutions")
        self.commands.all([solutions, self.pool(POOLS[POOL][1]), self.arm("retest", "tiered", 3)])

    def retest(self) -> None:
        """The second test, once: every arm with three seeds."""
        self.commands.all(self.arm("retest", name, 3, POOL) for name in RETEST)


def gate(threshold: object) -> tuple[str, ...]:
    """The settings of a gate with one threshold for both of its uses."""
    said = ("relevance=background", f"relevance_threshold={threshold}", f"skip_threshold={threshold}")
    return tuple(word for each in said for word in ("--set", each))


def main() -> None:
    """Run the steps named, all unless told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, help="holds techniques_train.jsonl and techniques_validation.jsonl")
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--limit", type=int, help="only so many problems: to try the script")
    parser.add_argument("--step", action="append", choices=(*STEPS, "freeze", "retest"))
    parser.add_argument("--solver", choices=WORDED, help="of the retest: whose published artefacts are read")
    asked = parser.parse_args()
    if not asked.solver and {"freeze", "retest"} & set(asked.step or ()):
        parser.error("the retest reads what was published for a solver: name it with --solver")
    study = Study(asked.work, Commands(asked.server, side_by_side=5, seconds=1500), asked.limit, asked.solver)
    for step in asked.step or STEPS:
        getattr(study, step)()


if __name__ == "__main__":
    main()
