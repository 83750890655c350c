"""Files survive kills, torn lines and full disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from kace.errors import KaceError
from kace.files import LineLog, whole_lines, write_atomic
from tests.disk import no_file_grows_past


def lines(path: Path) -> list[bytes]:
    return [line for _, _, line in whole_lines(path)]


def test_a_failed_atomic_write_leaves_the_old_file_and_no_litter(tmp_path: Path):
    path = tmp_path / "a.json"
    write_atomic(path, "old")
    with no_file_grows_past(4096), pytest.raises(KaceError, match=r"cannot write .*a\.json: file too large"):
        write_atomic(path, "x" * 10_000)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_line_that_does_not_fit_is_taken_back(tmp_path: Path):
    with LineLog(tmp_path / "log") as log:
        log.append("first")
        with no_file_grows_past(4096), pytest.raises(KaceError, match="cannot write"):
            log.append("x" * 10_000)
        log.append("second")
    assert lines(tmp_path / "log") == [b"first", b"second"]


@pytest.mark.parametrize("tail", [b"", b"to", b"torn " * 50_000])
def test_a_torn_last_line_is_ignored_on_read_and_cut_on_the_next_write(tmp_path: Path, tail: bytes):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n" + tail)
    assert lines(path) == [b"one", b"two"]
    with LineLog(path) as log:
        log.append("three")
    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_an_offset_finds_its_line_again(tmp_path: Path):
    with LineLog(tmp_path / "log") as log:
        log.append("é")
        offset = log.append("there")
        assert log.read(offset, 5) == b"there"


@pytest.mark.parametrize("make", ["file in the way", "read-only folder", "symlink loop"])
def test_a_place_that_cannot_be_written_is_named_in_one_line(tmp_path: Path, make: str):
    place = tmp_path / "place"
    if make == "file in the way":
        place.write_text("x")
    elif make == "symlink loop":
        place.symlink_to(place)
    else:
        place = Path("/proc/self")
    for write in (lambda: write_atomic(place / "x", "y"), lambda: LineLog(place / "x")):
        with pytest.raises(KaceError, match=str(place)):
            write()
