"""Lines of a growing file, read in order and at offsets, compressed or not."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kace.view import line_source as module
from kace.view.line_source import LineSource, line_source

LINES = [f"line {number} {'x' * (number * 37 % 5_000)}".encode() for number in range(2_000)]


def write(path: Path, lines: list[bytes], mode: str = "wb") -> None:
    whole = b"".join(line + b"\n" for line in lines)
    with gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode) as file:
        file.write(whole)


def all_of(source: LineSource) -> list[tuple[int, bytes]]:
    found = []
    while lines := source.more():
        found += lines
    return found


@pytest.fixture(params=["lines.jsonl", "lines.jsonl.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_every_line_comes_once_and_is_found_again_at_its_offset(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "STRIDE", 100_000)
    write(path, LINES)
    source = line_source(path)
    found = all_of(source)
    assert [line for _, line in found] == LINES
    assert source.taken == source.size
    for offset, line in (*found[::-97], *found[:3], found[-1]):
        assert source.line_at(offset) == line


def test_a_line_larger_than_what_is_read_at_a_time_is_whole(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CHUNK", 1_024)
    monkeypatch.setattr(module, "STRIDE", 2_048)
    lines = [b"short", b"y" * 50_000, b"z" * 3_000, b"", b"end"]
    write(path, lines)
    source = line_source(path)
    found = all_of(source)
    assert [line for _, line in found] == lines
    assert [source.line_at(offset) for offset, _ in found] == lines


def test_what_is_appended_later_is_read_on_from_there(path: Path):
    write(path, LINES[:3])
    source = line_source(path)
    assert [line for _, line in all_of(source)] == LINES[:3]
    assert all_of(source) == []
    write(path, LINES[3:6], "ab")
    later = all_of(source)
    assert [line for _, line in later] == LINES[3:6]
    assert source.line_at(later[1].offset) == LINES[4]  # type: ignore[attr-defined]
    assert not source.replaced


def test_a_line_that_is_still_being_written_waits_for_its_end(tmp_path: Path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntw")
    source = line_source(path)
    assert [line for _, line in all_of(source)] == [b"one"]
    path.write_bytes(b"one\ntwo\n")
    assert [line for _, line in all_of(source)] == [b"two"]


def test_another_file_of_the_same_name_is_noticed(tmp_path: Path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    source = line_source(path)
    all_of(source)
    path.write_bytes(b"x\n")
    assert source.replaced


def test_a_damaged_compressed_file_gives_what_comes_before_the_damage(tmp_path: Path):
    path = tmp_path / "lines.gz"
    write(path, LINES)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + b"\x00" * 200)
    found = all_of(line_source(path))
    assert 0 < len(found) < len(LINES)
    assert [line for _, line in found] == LINES[: len(found)]


def test_a_file_that_is_gone_is_empty(tmp_path: Path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\n")
    source = line_source(path)
    all_of(source)
    path.unlink()
    assert source.more() == []
    assert source.line_at(0) == b""
    assert source.size == 0
