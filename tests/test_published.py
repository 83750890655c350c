"""The published data sets themselves, where a folder has them: counts, hashes, splits that share nothing.

The folder holds other people's problems and is no part of this project.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from kace.config import load_config
from kace.problems import DATA, SPLITS, HubFile, Problem, load_dataset, load_published, overlaps, published_sets
from problems.splits import draw_all
from tests.file_server import FileServer, address, as_jsonl, as_parquet, serving

FOLDER = Path(__file__).resolve().parents[1].parent / "shared" / "data"
LEVELS = ("easy", "hard")

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no published data in {FOLDER}")
each = pytest.mark.parametrize("name", published_sets())
Row = dict[str, object]


def ours(name: str, split: str) -> tuple[Problem, ...]:
    return load_dataset(name, split, load_config({"data_dir": FOLDER}, env={})).problems


def local(name: str) -> list[Row]:
    return [json.loads(line) for line in (FOLDER / name).read_bytes().splitlines()]


@each
def test_every_split_has_its_size_its_hash_and_an_answer_to_everything(name: str):
    for split, part in published_sets()[name].items():
        found = load_dataset(name, split, load_config({"data_dir": FOLDER}, env={}))
        assert (len(found.problems), found.hash) == (part.size, part.hash)
        assert all(problem.answer and problem.label for problem in found.problems)
        assert split == "train" or not any(problem.solution for problem in found.problems)


def test_the_lists_are_those_the_documented_draw_makes():
    for name, text in draw_all(FOLDER).items():
        assert (DATA / "splits" / f"{name}.tsv").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("names", [("aime25", "math-hard", "olymmath"), ("gsm8k",)])
def test_no_problem_stands_in_two_splits(names: tuple[str, ...]):
    sets = [ours(name, split) for name in names for split in SPLITS]
    assert not any(overlaps(one, other) for one, other in combinations(sets, 2))


def test_math_hard_is_spread_over_the_seven_subjects():
    levels = {row["id"]: row["level"] for name in ("math500.jsonl", "math_l45_train.jsonl") for row in local(name)}
    for split in SPLITS:
        problems = ours("math-hard", split)
        spread = Counter(problem.domain for problem in problems)
        assert len(spread) == 7 and set(spread.values()) == {7, 8}
        assert {levels[problem.label] for problem in problems} == {4, 5}


def aime(row: Row) -> Row:
    return {"id": row["source_row"], **{name: row[name] for name in ("problem", "solution", "answer", "url")}}


def aime_2025(row: Row) -> Row:
    number = int(str(row["number"])) + (15 if row["contest"] == "AIME II" else 0)
    return {"problem_idx": number, "problem": row["problem"], "answer": int(str(row["answer"])), "problem_type": ["?"]}


def math_train(row: Row) -> Row:
    boxed = f"so the answer is $\\boxed{{{row['answer']}}}$."
    return {"problem": row["problem"], "level": f"Level {row['level']}", "type": row["subject"], "solution": boxed}


def math_500(row: Row) -> Row:
    half, subject, number = str(row["id"]).removeprefix("math500-").split("-")
    kept = {name: row[name] for name in ("problem", "answer", "subject", "level")}
    return {**kept, "solution": "...", "unique_id": f"{half}/{subject}/{number}.json"}


def olymmath(row: Row) -> Row:
    return {**{name: row[name] for name in ("problem", "answer", "subject")}, "unique_id": row["id"]}


def gsm8k(row: Row) -> Row:
    return {"question": row["problem"], "answer": f"{row['solution']}\n#### {int(str(row['answer'])):,}"}


FORMS: dict[str, Callable[[Row], Row]] = {
    "aime_2022_2024.jsonl": aime,
    "aime_2025.jsonl": aime_2025,
    "math_l45_train.jsonl": math_train,
    "math500.jsonl": math_500,
    "olymmath_en_integer97.jsonl": olymmath,
    "gsm8k_train.jsonl": gsm8k,
    "gsm8k_test.jsonl": gsm8k,
}
"""How each file is laid out on the hub, as its card describes it."""


@each
def test_the_form_on_the_hub_gives_the_same_problems(name: str, tmp_path: Path):
    files: dict[str, bytes] = {}
    splits = {}
    for split, part in published_sets()[name].items():
        rows = [FORMS[part.local](row) for row in local(part.local)]
        listed = []
        for number, file in enumerate(part.files):
            written = as_parquet if file.path.endswith(".parquet") else as_jsonl
            content = files[address(file)] = written(rows[number :: len(part.files)])
            listed.append(file._replace(sha256=hashlib.sha256(content).hexdigest()))
        splits[split] = part._replace(files=tuple(listed))
    with serving(FileServer(files)) as hub:
        config = load_config({"cache_dir": tmp_path, "hub": hub.url}, env={})
        for split, part in splits.items():
            mine = ours(name, split)
            theirs = load_published(name, split, part, config)
            assert theirs.hash == part.hash
            assert {p.id: (p.answer, p.domain) for p in theirs.problems} == {p.id: (p.answer, p.domain) for p in mine}
            if name != "gsm8k":  # whose published rows have no names
                assert [problem.label for problem in theirs.problems] == [problem.label for problem in mine]
    assert len(hub.seen) == len(set(hub.seen)), "nothing is fetched twice"


def test_olymmath_is_the_published_files_byte_for_byte(tmp_path: Path):
    known = published_sets()["olymmath"]
    rows = {level: [olymmath(row) for row in local("olymmath_en.jsonl") if row["level"] == level] for level in LEVELS}
    files: dict[HubFile, bytes] = {
        file: as_jsonl(rows[level]) for file, level in zip(known["test"].files, LEVELS, strict=True)
    }
    with serving(FileServer({address(file): content for file, content in files.items()})) as hub:
        for split in SPLITS:
            config = load_config({"cache_dir": tmp_path, "hub": hub.url}, env={})
            assert load_dataset("olymmath", split, config).hash == known[split].hash
