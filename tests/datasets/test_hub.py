"""A file of a data set is fetched once, whole, and only with the bytes it should have."""

from __future__ import annotations

import hashlib
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from kace.errors import KaceError
from kace.models import hub as hubs
from kace.models.hub import HubFile, fetch, is_present, path_of
from tests.datasets.file_server import FileServer, address, serving
from tests.disk import no_file_grows_past

CONTENT = b'{"problem": "1 + 1", "answer": "2"}\n' * 10_000
FILE = HubFile("someone/sums", "0" * 40, "data/sums.jsonl", hashlib.sha256(CONTENT).hexdigest())


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_comes_from_its_repository_at_its_revision_and_the_redirect_is_followed(tmp_path: Path):
    told: list[HubFile] = []
    with serving(FileServer({address(FILE): CONTENT})) as hub:
        path = fetch(FILE, cache=tmp_path / "new", hub=hub.url + "/", watch=told.append)
    assert path == path_of(FILE, tmp_path / "new") and path.read_bytes() == CONTENT
    assert hub.seen == [f"/datasets/someone/sums/resolve/{'0' * 40}/data/sums.jsonl"] and told == [FILE]
    assert everything_in(tmp_path / "new") == [f"someone--sums/{'0' * 40}/data/sums.jsonl"]


def test_what_is_in_the_cache_is_not_fetched_again(tmp_path: Path):
    told: list[HubFile] = []
    with serving(FileServer({address(FILE): CONTENT})) as hub:
        for _ in range(3):
            fetch(FILE, cache=tmp_path, hub=hub.url, watch=told.append)
    assert len(hub.seen) == len(told) == 1


def test_a_cached_file_with_other_bytes_is_fetched_again(tmp_path: Path):
    path = path_of(FILE, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:-1])
    assert not is_present(FILE, tmp_path)
    with serving(FileServer({address(FILE): CONTENT})) as hub:
        assert fetch(FILE, cache=tmp_path, hub=hub.url).read_bytes() == CONTENT


def test_a_download_that_breaks_off_is_tried_again(tmp_path: Path):
    with serving(FileServer({address(FILE): CONTENT}, drops=2)) as hub:
        assert fetch(FILE, cache=tmp_path, hub=hub.url).read_bytes() == CONTENT
    assert len(hub.seen) == 3


def test_one_that_never_ends_is_given_up_and_leaves_nothing(tmp_path: Path):
    with serving(FileServer({address(FILE): CONTENT}, drops=99)) as hub:
        with pytest.raises(KaceError, match="could not get"):
            fetch(FILE, cache=tmp_path, hub=hub.url)
    assert everything_in(tmp_path) == []


def test_other_bytes_are_refused(tmp_path: Path):
    with serving(FileServer({address(FILE): CONTENT + b" "})) as hub, pytest.raises(KaceError, match="refused: sha256"):
        fetch(FILE, cache=tmp_path, hub=hub.url)
    assert everything_in(tmp_path) == []


def test_a_page_in_the_place_of_a_file_is_refused_also_where_no_hash_is_known(tmp_path: Path):
    file = replace(FILE, path="data/sums.parquet", sha256=None)
    with serving(FileServer(page=b"<html>please log in</html>")) as hub:
        with pytest.raises(KaceError, match="not a Parquet file"):
            fetch(file, cache=tmp_path, hub=hub.url)
    assert not is_present(file, tmp_path)


def test_a_file_without_end_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hubs, "MAX_FILE_BYTES", 100_000)
    with serving(FileServer({address(FILE): CONTENT})) as hub, pytest.raises(KaceError, match="longer than"):
        fetch(FILE, cache=tmp_path, hub=hub.url)


def test_a_hub_without_the_file_or_out_of_reach_is_one_line_that_says_what_to_do(tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"http://user:hunter2@127.0.0.1:{probe.getsockname()[1]}"
    with serving(FileServer()) as hub:
        for where, reason in ((hub.url, "HTTP 404"), (nowhere, "refused")):
            with pytest.raises(KaceError) as caught:
                fetch(FILE, cache=tmp_path, hub=where)
            message = str(caught.value)
            assert "someone/sums" in message and reason in message and "--set data_dir=DIR" in message
            assert "\n" not in message and "hunter2" not in message


def test_a_full_disk_is_said_plainly_and_leaves_nothing(tmp_path: Path):
    with serving(FileServer({address(FILE): CONTENT})) as hub:
        with no_file_grows_past(1_000), pytest.raises(KaceError, match="cannot write"):
            fetch(FILE, cache=tmp_path, hub=hub.url)
        assert everything_in(tmp_path) == []
        assert fetch(FILE, cache=tmp_path, hub=hub.url).read_bytes() == CONTENT
