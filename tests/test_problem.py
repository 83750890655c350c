"""Problems are known by content, and a bad file is refused with file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kace.errors import DataError
from kace.problems import MAX_LINE_BYTES, MAX_PROBLEM_CHARS, Problem, load_problems, problem_rows


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


def test_a_field_map_names_the_rest(tmp_path: Path):
    path = write(tmp_path / "p", {"q": "2+2?", "gold": "4", "key": "k1"})
    (problem,) = load_problems(path, {"problem": "q", "answer": "gold", "id": "key"})
    assert (problem.text, problem.answer, problem.label) == ("2+2?", "4", "k1")


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
        (b"\n \n", "no problems"),
        (b'{"problem": "a?"}\n{"problem": \n', ":2: not JSON"),
        (b'{"problem": "a?"}\n[1]\n', ":2: a list"),
        (b'{"answer": "4"}\n', ":1: no problem text"),
        (b'{"problem": "  "}\n', ":1: no problem text"),
        (b'{"problem": ["a"]}\n', ":1: field 'problem' is a list"),
        (b'{"problem": "a?", "answer": {"x": 1}}\n', ":1: field 'answer' is a dict"),
        (b'{"problem": "a?", "answer": true}\n', ":1: field 'answer' is a bool"),
        (b'{"problem": "a?"}\n{"problem": "a? "}\n', ":2: the same problem text as line 1"),
        ('{"problem": "caf\xe9"}\n'.encode("latin-1"), ":1: not UTF-8"),
        (b'{"problem": "\\ud800"}\n', ":1: the text has a lone surrogate"),
        (b'{"problem": ' + b"[" * 100_000 + b"\n", ":1: not JSON"),
        (b'{"problem": "' + b"a" * (MAX_PROBLEM_CHARS + 1) + b'"}\n', "over the limit"),
        (b'{"problem": "' + b"a" * (MAX_LINE_BYTES + 1) + b'"}\n', "line is longer"),
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


def test_a_missing_file_a_folder_and_a_broken_gzip_are_refused(tmp_path: Path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b'{"problem": "a?"}\n' * 100)[:20])
    for path in (tmp_path / "absent", tmp_path, tmp_path / "cut.gz"):
        with pytest.raises(DataError, match=str(path)):
            load_problems(path)
