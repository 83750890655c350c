"""Data sets by name: fixed splits, the same from every copy, and never silently smaller."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from benchmarks.draw_splits import listing_text
from kace.datasets.catalog import PUBLISHED, ProblemPool, Published, PublishedSplit, named_domain
from kace.datasets.loader import (
    NAMES,
    Dataset,
    ListedProblem,
    canonical,
    fingerprint,
    from_folder,
    from_hub,
    load,
    read_listing,
    set_hash,
)
from kace.datasets.starter import SPLITS, load_split
from kace.errors import DataError, KaceError, UsageError
from kace.models.hub import HubFile
from kace.problems import Problem
from tests.datasets.file_server import FileServer, address, serving

TEXTS = [f"What is {n} plus\n one?" for n in range(10)]
NAMED = {"problem": "problem", "answer": "answer", "id": "unique_id"}
NOWHERE = "http://127.0.0.1:9"


def entries(numbers: range) -> tuple[ListedProblem, ...]:
    return tuple(ListedProblem(fingerprint(TEXTS[n]), f"sum-{n}") for n in numbers)


def rows(texts: list[str]) -> bytes:
    lines = [
        {"unique_id": f"sum-{n}", "problem": text, "answer": n + 1, "subject": "Sums & More", "solution": "add"}
        for n, text in enumerate(texts)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@pytest.fixture
def sums(tmp_path: Path) -> Published:
    """Ten problems: the first two to train on, the next to validate, the rest to test."""
    listing = tmp_path / "sums.tsv"
    listing.write_text(listing_text({"train": entries(range(2)), "validation": entries(range(2, 3))}, ["by hand"]))
    pool = ProblemPool(
        local="sums.jsonl",
        files=(HubFile("someone/sums", "1" * 40, "sums.jsonl"),),
        fields={**NAMED, "domain": "subject"},
        tidy=lambda problem: problem,
    )
    parts = {
        split: PublishedSplit(pool, len(numbers), set_hash(Problem(TEXTS[n]) for n in numbers))
        for split, numbers in zip(SPLITS, (range(2), range(2, 3), range(3, 10)), strict=True)
    }
    return Published("sums", "for tests", "none", MappingProxyType(parts), listing)


def hub_copy(published: Published, content: bytes, split: str, cache: Path) -> Dataset:
    with serving(FileServer({address(published.files[0]): content})) as hub:
        return from_hub(published, split, cache=cache, hub=hub.url)  # type: ignore[arg-type]


def test_a_listed_split_has_the_problems_of_its_list_in_its_order(sums: Published, tmp_path: Path):
    found = hub_copy(sums, rows(TEXTS[::-1]), "train", tmp_path / "cache")
    assert [problem.text for problem in found.problems] == TEXTS[:2]
    assert [problem.label for problem in found.problems] == ["sum-0", "sum-1"], "labels are the list's"
    assert found.name == "sums" and found.source == "someone/sums@111111111111" and found.notes == ()


def test_a_split_without_a_list_is_what_the_lists_leave(sums: Published, tmp_path: Path):
    found = hub_copy(sums, rows(TEXTS), "test", tmp_path / "cache")
    assert [problem.text for problem in found.problems] == TEXTS[3:] and found.notes == ()


def test_only_what_is_learned_from_comes_with_solutions(sums: Published, tmp_path: Path):
    for split in SPLITS:
        found = hub_copy(sums, rows(TEXTS), split, tmp_path / "cache")
        assert {problem.solution for problem in found.problems} == {"add" if split == "train" else None}


def test_copies_that_differ_in_white_space_are_the_same_set(sums: Published, tmp_path: Path):
    copies = [rows(TEXTS), rows([f"  {text.replace(' ', '  ')} " for text in TEXTS])]
    one, other = (hub_copy(sums, copy, "test", tmp_path / str(n)) for n, copy in enumerate(copies))
    assert one.hash == other.hash == sums.parts["test"].hash and other.notes == ()


def test_a_problem_in_another_wording_is_known_by_its_label_and_noted(sums: Published, tmp_path: Path):
    reworded = ["What do you get when you add one to zero?", *TEXTS[1:]]
    found = hub_copy(sums, rows(reworded), "train", tmp_path / "cache")
    assert found.problems[0].text == reworded[0] and found.hash != sums.parts["train"].hash
    (note,) = found.notes
    assert "sum-0 " in note and "sum-1" not in note and found.hash in note


def test_a_rewording_in_a_split_without_a_list_is_noted_too(sums: Published, tmp_path: Path):
    found = hub_copy(sums, rows([*TEXTS[:9], "What is one more than nine?"]), "test", tmp_path / "cache")
    assert len(found.problems) == 7 and "one problem or more" in found.notes[0]


@pytest.mark.parametrize(("split", "reason"), [("train", "1 of 2 problems.*: sum-1"), ("test", "6 problems.*not 7")])
def test_a_missing_problem_is_an_error(sums: Published, tmp_path: Path, split: str, reason: str):
    texts = [TEXTS[0], *TEXTS[2:]] if split == "train" else TEXTS[:9]
    with pytest.raises(DataError, match=reason):
        hub_copy(sums, rows(texts).replace(b'"unique_id": "sum-1"', b'"unique_id": ""'), split, tmp_path / "cache")


def test_a_problem_without_an_answer_is_an_error(sums: Published, tmp_path: Path):
    content = rows(TEXTS).replace(b'"answer": 1,', b'"answer": "",')
    with pytest.raises(DataError, match="no answer to sum-0"):
        hub_copy(sums, content, "train", tmp_path / "cache")


def test_a_folder_is_read_instead_of_the_hub_and_says_what_it_lacks(sums: Published, tmp_path: Path):
    with pytest.raises(DataError, match=r"has no sums\.jsonl"):
        from_folder(sums, "train", tmp_path)
    (tmp_path / "sums.jsonl").write_bytes(rows(TEXTS).replace(b'"unique_id"', b'"id"'))
    found = from_folder(sums, "train", tmp_path)
    assert found.hash == sums.parts["train"].hash and found.source.endswith("sums.jsonl")
    assert {problem.domain for problem in found.problems} == {"sums_and_more"}


def test_parquet_is_read_by_its_columns(sums: Published, tmp_path: Path):
    columns = {"problem": TEXTS, "answer": list(range(10)), "more": [["x"]] * 10}
    named = as_parquet({**columns, "unique_id": [f"sum-{n}" for n in range(10)]})
    found = from_hub_parquet(sums, named, tmp_path)
    assert [(problem.answer, problem.label) for problem in found.problems] == [("0", "sum-0"), ("1", "sum-1")]
    with pytest.raises(DataError, match=r"no column unique_id; it has problem, answer, more"):
        from_hub_parquet(sums, as_parquet(columns), tmp_path / "other")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        from_hub_parquet(sums, b"PAR1 but nothing more PAR1", tmp_path / "broken")


def test_without_pyarrow_a_parquet_file_names_the_extra(sums: Published, tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(KaceError, match=r"needs pyarrow.*kace\[data\]"):
        from_hub_parquet(sums, b"PAR1PAR1", tmp_path)


def as_parquet(columns: Mapping[str, Sequence[object]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra 'data' is not installed")
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(dict(columns)), stream)
    return stream.getvalue()


def from_hub_parquet(published: Published, content: bytes, cache: Path) -> Dataset:
    part = published.parts["train"]
    files = (replace(part.pool.files[0], path="sums.parquet"),)
    pool = replace(part.pool, files=files, fields=NAMED)
    return hub_copy(replace(published, parts={"train": replace(part, pool=pool)}), content, "train", cache / "parquet")


def test_the_starter_set_is_bundled_and_needs_no_hub(tmp_path: Path):
    found = load("starter", "validation", data_dir=None, cache=tmp_path, hub=NOWHERE, fields=None)
    assert found.problems == load_split("validation") and found.split == "validation" and found.source == "bundled"


def test_any_jsonl_file_is_a_data_set_with_a_field_map(tmp_path: Path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"q": "1 + 1", "a": "2"}\n{"q": "1 + 2", "a": "3"}\n')
    found = load(str(path), "test", data_dir=None, cache=tmp_path, hub=NOWHERE, fields={"problem": "q", "answer": "a"})
    assert [problem.answer for problem in found.problems] == ["2", "3"]
    assert (found.name, found.split) == ("mine.jsonl", "all")
    assert found.hash == set_hash([Problem("1+2"), Problem("1+1")]), "neither order nor white space counts"


def test_names_are_known_however_they_are_spelt_and_the_nearest_is_named():
    assert canonical("MATH-Hard") == canonical("math_hard") == "math-hard" and canonical("aime25") == "aime25"
    assert canonical("folder/aime25") is None and canonical("mine.jsonl") is None
    with pytest.raises(UsageError, match="did you mean olymmath"):
        canonical("olymath")
    with pytest.raises(UsageError, match=f"use one of {', '.join(NAMES)}"):
        canonical("zzz")


def test_a_wrong_split_or_a_field_map_for_a_named_set_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="has no split 'dev'"):
        load("aime25", "dev", cache=tmp_path, hub=NOWHERE)
    with pytest.raises(UsageError, match="leave it out"):
        load("aime25", "test", cache=tmp_path, hub=NOWHERE, fields={"problem": "q"})


def test_the_sizes_are_the_papers():
    sizes = {known.name: tuple(part.size for part in known.parts.values()) for known in PUBLISHED}
    assert sizes == {
        "aime25": (45, 45, 30),
        "math-hard": (50, 50, 50),
        "olymmath": (30, 40, 27),
        "gsm8k": (6973, 500, 1319),
    }


@pytest.mark.parametrize("known", PUBLISHED, ids=[known.name for known in PUBLISHED])
def test_every_list_fits_its_split_and_holds_no_text(known: Published):
    listing = read_listing(known.listing)
    seen: set[str] = set()
    for split, listed in listing.items():
        assert len(listed) == known.parts[split].size
        prints = {entry.fingerprint for entry in listed}
        assert len(prints) == len(listed) and not prints & seen, "no problem stands twice"
        seen |= prints
    for line in known.listing.read_text().splitlines():
        assert line.startswith("# ") or (len(line) < 72 and " " not in line)


def test_every_published_file_is_fixed_by_its_commit():
    for known in PUBLISHED:
        for file in known.files:
            assert len(file.revision) == 40 and int(file.revision, 16)
            assert file.sha256 is None or (len(file.sha256) == 64 and int(file.sha256, 16))


def test_subjects_are_domains():
    assert named_domain(Problem("?", domain="Counting & Probability")).domain == "counting_and_probability"
    assert named_domain(Problem("?")).domain is None
