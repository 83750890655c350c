"""Problems are known by content, bad files are refused by line, and named sets are the same from every copy."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from itertools import combinations
from pathlib import Path

import pytest

from kace import problems as problems_module
from kace.config import Config, load_config
from kace.errors import DataError, KaceError, UsageError
from kace.problems import (
    DATA,
    MAX_PROBLEM_CHARS,
    NAMES,
    SPLITS,
    Dataset,
    HubFile,
    Problem,
    PublishedSplit,
    fetch,
    fingerprint,
    labelled,
    load_bundled,
    load_dataset,
    load_problems,
    load_published,
    overlaps,
    problem_rows,
    published_sets,
    read_listing,
    set_hash,
    split_problems,
    tidy,
)
from tests.file_server import FileServer, address, as_jsonl, as_parquet, serving


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_identity_is_the_text_alone():
    assert Problem("2+2?", "4", label="a").id == Problem(" 2+2? ", "5", label="b").id
    assert Problem("2+2?").id != Problem("2+3?").id


def test_rows_round_trip(tmp_path: Path):
    problems = (Problem("2+2?", "4", "a", "sums", "add", "count"), Problem("∑ of nothing?", "0"))
    path = tmp_path / "p.jsonl"
    path.write_text("".join(f"{row}\n" for row in problem_rows(problems)), encoding="utf-8")
    assert load_problems(path) == problems


@pytest.mark.parametrize("name", ["problem", "question", "input"])
def test_the_usual_field_names_are_found(tmp_path: Path, name: str):
    assert load_problems(write(tmp_path / "p", {name: "2+2?", "answer": 4}))[0] == Problem("2+2?", "4")


def test_bom_crlf_blank_lines_and_gzip_are_read(tmp_path: Path):
    data = b'\xef\xbb\xbf{"problem": "a?"}\r\n\r\n{"problem": "b?"}'
    (tmp_path / "p.jsonl").write_bytes(data)
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress(data))
    assert [p.text for p in load_problems(tmp_path / "p.jsonl")] == ["a?", "b?"]
    assert load_problems(tmp_path / "p.jsonl.gz") == load_problems(tmp_path / "p.jsonl")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no problems"),
        (b'{"problem": "a?"}\n{"problem": \n', ":2: not JSON"),
        (b'{"answer": "4"}\n', ":1: no problem text"),
        (b'{"problem": "a?"}\n[]\n', ":2: not a JSON object"),
        (b"7\n", ":1: not a JSON object"),
        (b'{"problem": "  "}\n', ":1: no problem text"),
        (b'{"problem": ["a"]}\n', ":1: field 'problem' is a list"),
        (b'{"problem": "a?", "answer": {"x": 1}}\n', ":1: field 'answer' is a dict"),
        (b'{"problem": "a?", "answer": true}\n', ":1: field 'answer' is a bool"),
        (b'{"problem": "a?"}\n{"problem": "a? "}\n', ":2: the same problem text as line 1"),
        (b'{"text_of": "4", "gold": "5"}\n', "(fields: text_of, gold)"),
        (b'[{"problem": "a?"}, 7]', ":2: not a JSON object"),
        (b"[]", "no problems"),
        ('{"problem": "caf\xe9"}\n'.encode("latin-1"), ":1: not UTF-8"),
        (b'{"problem": "\\ud800"}\n', ":1: the text has a lone surrogate"),
        (b'{"problem": ' + b"[" * 100_000 + b"\n", ":1: not JSON"),
        (b'{"problem": "' + b"a" * (MAX_PROBLEM_CHARS + 1) + b'"}\n', "over the limit"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, data: bytes, complaint: str):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        load_problems(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_csv_and_json_lists_are_read_like_lines(tmp_path: Path):
    (tmp_path / "p.csv").write_text('question,answer\n"How much\nis 2+2?",4\n3+3?,6\n')
    (tmp_path / "p.json").write_text(
        '[{"question": "How much\\nis 2+2?", "answer": 4},\n {"question": "3+3?", "answer": 6}]'
    )
    expected = (Problem("How much\nis 2+2?", "4"), Problem("3+3?", "6"))
    assert load_problems(tmp_path / "p.csv") == load_problems(tmp_path / "p.json") == expected


def test_a_missing_answer_says_how_to_name_its_field(tmp_path: Path):
    path = write(tmp_path / "p.jsonl", {"text": "2+2?", "gold": "4"})
    data = load_dataset(path, "test", load_config(env={}))
    with pytest.raises(UsageError, match=r"has no answer.*--set fields.answer=NAME"):
        labelled(data)


def test_a_missing_file_a_folder_and_a_broken_gzip_are_refused(tmp_path: Path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b'{"problem": "a?"}\n' * 100)[:20])
    for path in (tmp_path / "absent", tmp_path, tmp_path / "cut.gz"):
        with pytest.raises(DataError, match=str(path)):
            load_problems(path)


TOLD = "A farmer has 17 hens and 23 ducks, and sells 9 of the hens at the market. How many birds are left?"
AGAIN = "a farmer has 17 hens   and 23 ducks -- and sells 9 of the hens, at the market; how many birds are left"


@pytest.mark.parametrize("text", [AGAIN, TOLD.replace("market", "fair")])
def test_the_same_problem_with_other_spacing_case_signs_or_one_other_word_is_found(text: str):
    ((ours, theirs),) = overlaps([Problem("unrelated 5"), Problem(text)], [Problem(TOLD)])
    assert ours.text == text and theirs.text == TOLD


def test_other_numbers_make_another_problem():
    assert not overlaps([Problem(TOLD.replace("17", "18"))], [Problem(TOLD)])


def test_the_bundled_splits_do_not_overlap():
    splits = {name: load_bundled("starter", name) for name in SPLITS}
    for one, other in combinations(splits, 2):
        assert overlaps(splits[one], splits[other]) == []
    assert len(overlaps(splits["train"], splits["train"])) == len(splits["train"])


TEXTS = [f"What is {n} plus\n one?" for n in range(10)]
NAMED = {"problem": "problem", "answer": "answer", "id": "unique_id", "domain": "subject"}
NOWHERE = "http://127.0.0.1:9"


def listed(split: str, numbers: range) -> str:
    return "".join(f"{split}\t{fingerprint(TEXTS[n])}\tsum-{n}\n" for n in numbers)


def rows(texts: list[str]) -> list[dict[str, object]]:
    return [
        {"unique_id": f"sum-{n}", "problem": text, "answer": str(n + 1), "subject": "Sums & More", "solution": "add"}
        for n, text in enumerate(texts)
    ]


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Load a split from a hub with this content: two problems to train on, one to validate with, seven to test."""
    monkeypatch.setattr(problems_module, "DATA", tmp_path)
    listing = tmp_path / "splits" / "sums.tsv"
    listing.parent.mkdir()
    listing.write_text("# by hand\n" + listed("train", range(2)) + listed("validation", range(2, 3)))

    def load(content: bytes, split: str, path: str = "sums.jsonl") -> Dataset:
        sha256 = "" if path.endswith("parquet") else hashlib.sha256(content).hexdigest()
        file = HubFile("someone/sums", "1" * 40, path, sha256)
        each = dict(zip(SPLITS, (range(2), range(2, 3), range(3, 10)), strict=True))[split]
        part = PublishedSplit(len(each), set_hash(Problem(TEXTS[n]) for n in each), "sums.jsonl", (file,), NAMED)
        with serving(FileServer({address(file): content})) as hub:
            return load_published("sums", split, part, load_config({"cache_dir": tmp_path, "hub": hub.url}, env={}))

    return load


def test_a_listed_split_has_the_problems_of_its_list_in_its_order(copy):
    found = copy(as_jsonl(rows(TEXTS)[::-1]), "train")
    assert [problem.text for problem in found.problems] == TEXTS[:2]
    assert [problem.label for problem in found.problems] == ["sum-0", "sum-1"], "labels are the list's"
    assert {problem.domain for problem in found.problems} == {"sums_and_more"}
    assert found.name == "sums"


def test_a_split_without_a_list_is_what_the_lists_leave(copy):
    found = copy(as_jsonl(rows(TEXTS)), "test")
    assert [problem.text for problem in found.problems] == TEXTS[3:]


def test_only_what_is_learned_from_comes_with_solutions(copy):
    for split in SPLITS:
        found = copy(as_jsonl(rows(TEXTS)), split)
        assert {problem.solution for problem in found.problems} == {"add" if split == "train" else None}


def test_copies_that_differ_in_white_space_are_the_same_set(copy):
    spaced = [f"  {text.replace(' ', '  ')} " for text in TEXTS]
    one, other = (copy(as_jsonl(rows(texts)), "test") for texts in (TEXTS, spaced))
    assert one.hash == other.hash


def test_a_problem_in_another_wording_is_known_by_its_label_and_noted(copy, caplog: pytest.LogCaptureFixture):
    reworded = ["What do you get when you add one to zero?", *TEXTS[1:]]
    assert copy(as_jsonl(rows(TEXTS)), "train") and not caplog.records
    found = copy(as_jsonl(rows(reworded)), "train")
    assert found.problems[0].text == reworded[0] and "not worded as" in caplog.text


@pytest.mark.parametrize(
    ("split", "left", "reason"),
    [
        ("train", lambda found: found[:1] + found[2:], "1 problems with an answer.*not 2"),
        ("test", lambda found: found[:9], "6 problems.*not 7"),
        ("train", lambda found: [{**found[0], "answer": ""}, *found[1:]], "1 problems with an answer"),
    ],
)
def test_a_problem_that_is_missing_or_has_no_answer_is_an_error(copy, split: str, left, reason: str):
    with pytest.raises(DataError, match=reason):
        copy(as_jsonl(left(rows(TEXTS))), split)


def test_parquet_is_read_like_lines_and_a_damaged_file_is_one_line(copy):
    found = copy(as_parquet([{**row, "more": ["x"]} for row in rows(TEXTS)]), "train", "sums.parquet")
    assert [(problem.answer, problem.label) for problem in found.problems] == [("1", "sum-0"), ("2", "sum-1")]
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        copy(b"PAR1 but nothing more PAR1", "train", "broken.parquet")


def test_without_pyarrow_a_parquet_file_names_the_extra(copy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(KaceError, match=r"needs pyarrow.*kace\[data\]"):
        copy(b"PAR1PAR1", "train", "sums.parquet")


def test_a_folder_is_read_instead_of_the_hub_and_says_what_it_lacks(tmp_path: Path):
    with pytest.raises(DataError, match=r"aime_2025\.jsonl: no such file"):
        load_dataset("aime25", "test", load_config({"data_dir": tmp_path, "hub": NOWHERE}, env={}))


def test_the_bundled_sets_need_no_hub(tmp_path: Path):
    config = load_config({"cache_dir": tmp_path, "hub": NOWHERE}, env={})
    found = load_dataset("starter", "validation", config)
    assert found.problems == load_bundled("starter", "validation")
    assert (found.split, found.hash) == ("validation", "6033293db5109451")
    hashes = [load_dataset(*name, config).hash for name in (("starter-1000", "test"), ("techniques", "retest"))]
    assert hashes == ["180370bcd863ca9c", "53fa91242d965e64"], "the samples of the published figures"


def test_any_jsonl_file_is_a_data_set_with_a_field_map(tmp_path: Path):
    path = write(tmp_path / "mine.jsonl", {"q": "1 + 1", "a": "2", "key": "k1"}, {"q": "1 + 2", "a": "3", "key": "k2"})
    fields = {"problem": "q", "answer": "a", "id": "key"}
    found = load_dataset(path, "test", load_config({"fields": fields}, env={}))
    assert [(problem.answer, problem.label) for problem in found.problems] == [("2", "k1"), ("3", "k2")]
    assert (found.name, found.split) == ("mine.jsonl", "all")
    assert found.hash == set_hash([Problem("1+2"), Problem("1+1")]), "neither order nor white space counts"


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("olymath", UsageError, "did you mean 'olymmath'"),
        ("zzz", UsageError, f"known: {', '.join(sorted(NAMES))}"),
        ("folder/aime25", DataError, "no such file"),
        ("aime25", UsageError, "aime25 has no split 'dev'.*train, validation, test"),
        ("techniques", UsageError, "techniques has no split 'dev'.*train, validation, test, retest"),
    ],
)
def test_a_wrong_name_or_split_is_refused_with_the_names_there_are(name: str, kind: type[KaceError], said: str):
    with pytest.raises(kind, match=said):
        load_dataset(name, "dev", load_config(env={}))


def test_the_sizes_are_the_papers():
    sizes = {name: tuple(part.size for part in splits.values()) for name, splits in published_sets().items()}
    assert sizes == {
        "aime25": (45, 45, 30),
        "math-hard": (50, 50, 50),
        "olymmath": (30, 40, 27),
        "gsm8k": (6973, 500, 1319),
    }


@pytest.mark.parametrize(("name", "splits"), published_sets().items(), ids=published_sets())
def test_every_list_fits_its_split_and_holds_no_text_and_every_file_is_fixed(name: str, splits):
    seen: set[str] = set()
    for split, listed in read_listing(name).items():
        assert len(listed) == splits[split].size
        assert not listed.keys() & seen, "no problem is in two splits"
        seen |= listed.keys()
    for line in (DATA / "splits" / f"{name}.tsv").read_text().splitlines():
        assert line.startswith("# ") or (len(line) < 72 and " " not in line)
    for file in {file for part in splits.values() for file in part.files}:
        assert len(file.revision) == 40 and int(file.revision, 16)
        assert not file.sha256 or (len(file.sha256) == 64 and int(file.sha256, 16))


CONTENT = b'{"problem": "1+1?", "answer": "2"}\n' * 5_000
FILE = HubFile("someone/sums", "1" * 40, "data/sums.jsonl", hashlib.sha256(CONTENT).hexdigest())


def at(folder: Path, hub: str) -> Config:
    return load_config({"cache_dir": folder, "hub": hub}, env={})


def test_a_file_is_downloaded_once_without_a_token_and_again_if_it_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    with serving(FileServer({address(FILE): CONTENT})) as hub:
        for _ in range(2):
            path = fetch(FILE, at(tmp_path, hub.url))
            assert path.read_bytes() == CONTENT
        assert len(hub.seen) == 1
        assert "canary" not in str(hub.headers)
        path.write_bytes(CONTENT[:-1])
        assert fetch(FILE, at(tmp_path, hub.url)).read_bytes() == CONTENT


def test_other_bytes_a_page_and_a_file_that_is_too_long_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    parquet = FILE._replace(path="data/sums.parquet", sha256="")
    cases = [
        (FILE, FileServer({address(FILE): CONTENT + b" "}), 64_000_000, "refused: not the published file"),
        (parquet, FileServer(page=b"<html>please log in</html>"), 64_000_000, "refused: not the published file"),
        (FILE, FileServer({address(FILE): CONTENT}), 100_000, "longer than"),
    ]
    for file, server, most, reason in cases:
        monkeypatch.setattr(problems_module, "MAX_FILE_BYTES", most)
        with serving(server) as hub, pytest.raises(KaceError, match=reason):
            fetch(file, at(tmp_path, hub.url))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_hub_without_the_file_or_out_of_reach_is_one_line_that_says_what_to_do(tmp_path: Path):
    with serving(FileServer()) as hub:
        for where, reason in (
            (hub.url, "HTTP 404"),
            (NOWHERE, "refused"),
            ("http://user:hunter2@127.0.0.1:9", "could not get"),
        ):
            with pytest.raises(KaceError) as caught:
                fetch(FILE, at(tmp_path, where))
            message = str(caught.value)
            assert "someone/sums" in message and reason in message and "--set data_dir=DIR" in message
            assert "\n" not in message and "hunter2" not in message


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        (Problem("a?", solution=r"So \boxed{1}, then $\boxed{7}$"), "7"),
        (Problem("a?", solution="no box"), None),
        (Problem("a?", answer="add\n#### 1,007"), "1007"),
    ],
)
def test_the_answer_of_a_published_row_is_found(row: Problem, answer: str | None):
    assert tidy(row).answer == answer


def test_a_split_repeats_and_keeps_families_and_rewordings_together():
    rows = [Problem(f"What is {n} plus {n}?", str(2 * n)) for n in range(60)]
    again = [Problem(f"what IS {n} plus  {n} ?", str(2 * n)) for n in range(5)]
    kin = [Problem(f"A cow eats {n} bales.", "1", family="cows") for n in range(8)]
    problems = [*rows, *again, *kin]
    drawn = split_problems(problems, (0.5, 0.2))
    assert sorted(each.id for part in drawn.values() for each in part) == sorted(each.id for each in problems)
    assert [len(drawn[name]) for name in SPLITS] == pytest.approx([36, 15, 22], abs=9)
    for one, other in combinations(drawn.values(), 2):
        assert overlaps(one, other) == []
        assert not {each.family for each in one if each.family} & {each.family for each in other}
    again = split_problems(problems, (0.5, 0.2))
    assert {name: set(part) for name, part in again.items()} == {name: set(part) for name, part in drawn.items()}
