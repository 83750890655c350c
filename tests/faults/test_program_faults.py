"""Hostile programs: our process never dies, nothing outside is read or written, and there is always an outcome."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kace.answers import child, program
from kace.answers.program import MAX_OUTPUT, MAX_SOURCE, ProgramOutcome, ProgramRun, Sandbox

RAN, SILENT, ERROR, TIMEOUT = ProgramOutcome
BOUNDED = (ERROR, TIMEOUT)  # which limit comes first depends on the machine
SECONDS = 1.0
LOOP = asyncio.Runner()
CANARY = Path(__file__)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = LOOP.run(Sandbox(seconds=SECONDS, workers=1).__aenter__())
    yield opened
    LOOP.run(opened.aclose())


ENDLESS = {
    "a loop": "while True: pass",
    "a loop that catches": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "an iterator": "import itertools\nfor i in itertools.count(): pass",
    "a factorial": "import math\nprint(math.factorial(10**7))",
    "a binomial": "import math\nprint(math.comb(10**7, 5 * 10**6))",
    "a hash": "import hashlib\nprint(hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9))",
    "recursion caught": "def f():\n    try:\n        f()\n    except RecursionError:\n        f()\nf()",
    "replacing": "s = 'a' * 10**6\nfor i in range(100): s = s.replace('a', 'aa')",
    "permutations": "import itertools\nprint(sum(1 for _ in itertools.permutations(range(20))))",
    "a decimal": "from decimal import Decimal, getcontext\ngetcontext().prec = 10**9\nprint(Decimal(1) / 3)",
    "a tower of calls": "f = lambda n: 1 if n < 2 else f(n - 1) + f(n - 2)\nprint(f(90))",
}
HUGE = {
    "a tower of powers": "9**9**9",
    "a growing number": "x = 2\nwhile True: x = x * x",
    "a shift": "1 << 10**12",
    "a power": "pow(3, 10**10)",
    "a text": "'a' * 10**11",
    "a list": "[0] * 10**11",
    "a list that grows": "x = ['a']\nwhile True: x = x + x",
    "a list of itself": "x = []\nwhile True: x.append(x[:])",
    "a range": "print(list(range(10**10)))",
    "a product": "import itertools\nlist(itertools.product(range(1000), repeat=5))",
    "dicts in dicts": "d = {}\nwhile True: d = dict(a=d)",
    "a width": "print('%999999999999d' % 1)",
    "an f-string": "print(f'{1:>999999999999}')",
    "a join": "','.join(['a' * 10**6] * 10**5)",
    "caught": "while True:\n    try:\n        x = [0] * 10**11\n    except BaseException: pass",
    "comprehensions": "[[[[0 for a in range(9**4)] for b in range(9**4)] for c in range(9**4)] for d in range(9**4)]",
    "copies of an iterator": "import itertools\nx = itertools.tee(range(10**9), 1000)\nprint([list(i) for i in x])",
    "bytes": "bytes(10**12)",
    "a set": "set(range(10**10))",
}
DEEP = {
    "recursion": "def f(): return f()\nf()",
    "two functions": "def f(): return g()\ndef g(): return f()\nf()",
    "lambdas": "f = lambda f: f(f)\nf(f)",
    "coroutines": "import asyncio\nasync def f(): await f()\nasyncio.run(f())",
    "brackets": "[" * 5000 + "]" * 5000,
    "parentheses": "(" * 9000 + ")" * 9000,
    "signs": "-" * 15_000 + "1",
    "sums": "x = 1" + "+1" * 9000,
    "blocks": "\n".join(" " * depth + "if 1:" for depth in range(150)) + "\n" + " " * 150 + "pass",
    "equal lists": "a = []\nb = []\nfor i in range(10**5):\n    a = [a]\n    b = [b]\nprint(a == b)",
    "a deep copy": "import copy\nd = []\nfor i in range(10**5): d = [d]\ncopy.deepcopy(d)",
    "json": "import json\nprint(json.loads('[' * 10**5))",
    "f-strings": "x = " + "f'{" * 100 + "1" + "}'" * 100,
    "a hash of itself": "class A:\n    def __hash__(self): return hash(self)\nhash(A())",
    "a text of itself": "class A:\n    def __str__(self): return str(self)\nprint(A())",
}
FORBIDDEN = {
    "open": f"print(open({str(CANARY)!r}).read())",
    "a path": f"from pathlib import Path\nprint(Path({str(CANARY)!r}).read_text())",
    "a list of files": "import os\nprint(os.listdir('/'))",
    "the environment": "import os\nprint(os.getenv('PATH'))",
    "all of the environment": "import os\nprint(os.environ)",
    "a shell": "import os\nos.system('id')",
    "a fork bomb": "import os\nwhile True: os.fork()",
    "a subprocess": "import subprocess\nsubprocess.run(['id'])",
    "threads": "import threading\nwhile True: threading.Thread(target=print).start()",
    "a socket": "import socket\nsocket.create_connection(('127.0.0.1', 80))",
    "a page": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1')",
    "an import": "__import__('os').system('id')",
    "importlib": "import importlib\nimportlib.import_module('os')",
    "our package": "import kace",
    "ctypes": "import ctypes",
    "builtins": "print(__builtins__)",
    "subclasses": "print(().__class__.__bases__[0].__subclasses__())",
    "globals": "print((lambda: 0).__globals__)",
    "code": "print((lambda: 0).__code__)",
    "a frame": "import sys\nprint(sys._getframe())",
    "getattr": "print(getattr((), '__cl' + 'ass__').__mro__)",
    "a format": "print('{0.__class__.__mro__}'.format(()))",
    "self of print": "print(print.__self__)",
    "a traceback": "try:\n    1/0\nexcept Exception as e:\n    print(e.__traceback__.tb_frame.f_globals)",
    "wide letters": f"print(ｏｐｅｎ({str(CANARY)!r}).read())",
    "evaluated": f'eval("open({str(CANARY)!r})")',
    "executed": f'exec("open({str(CANARY)!r})")',
    "input": "print(input())",
    "a debugger": "breakpoint()",
    "exit": "exit()",
    "os exit": "import os\nos._exit(0)",
    "a signal": "import os\nos.kill(os.getppid(), 9)",
    "a recursion limit": "import sys\nsys.setrecursionlimit(10**9)",
    "digits": "import sys\nsys.set_int_max_str_digits(0)",
    "a long number": "print(10**5000)",
    "a long text of digits": "int('9' * 10**6)",
}
HARMLESS = {
    "a regular expression": ("import re\nprint(re.match(r'(a+)+$', 'a' * 40 + 'b'))\nprint(1)", "1"),
    "another": ("import re\nprint(len(re.sub(r'(x+x+)+y', '', 'x' * 35)))", "35"),
    "sleep": ("import time\ntime.sleep(10**6)\nprint(2)", "2"),
    "letters of all kinds": ("π = 3\nｐｒｉｎｔ(π)", "3"),
    "a list in itself": ("a = []\na.append(a)\nprint(len(a), a == a)\nprint(4)", "4"),
    "our words": ('print(\'{"printed": "no", "error": ""}\\n5\')', "5"),
    "a sign to go on": ("print('\\x00\\x1b[31m\\u202e')\nprint(6)", "6"),
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_a_program_that_does_not_end_is_ended(source: str, sandbox: Sandbox):
    run = LOOP.run(sandbox.run(source))
    assert run.outcome in BOUNDED
    assert run.answer is None


@pytest.mark.parametrize("source", HUGE.values(), ids=HUGE)
def test_a_program_gets_no_more_memory_than_its_share(source: str, sandbox: Sandbox):
    assert LOOP.run(sandbox.run(source)).outcome in BOUNDED


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP)
def test_a_program_that_nests_without_end_is_refused(source: str, sandbox: Sandbox):
    assert LOOP.run(sandbox.run(source)).answer is None


@pytest.mark.parametrize("source", FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_program_reaches_nothing_outside(source: str, sandbox: Sandbox):
    run = LOOP.run(sandbox.run(source))
    assert (run.outcome, run.output) == (ERROR, "")
    assert run.error


@pytest.mark.parametrize(("source", "answer"), HARMLESS.values(), ids=HARMLESS)
def test_a_program_may_look_dangerous(source: str, answer: str, sandbox: Sandbox):
    run = LOOP.run(sandbox.run(source))
    assert (run.outcome, run.answer) == (RAN, answer)


@pytest.mark.parametrize(
    "source",
    ["while True: print('x' * 1000)", "print('y' * 10**7)", "for i in range(10**9): print(i)", "print(*range(10**6))"],
)
def test_a_flood_of_output_is_cut_and_is_no_answer(source: str, sandbox: Sandbox):
    run = LOOP.run(sandbox.run(source))
    assert run.outcome in BOUNDED
    assert len(run.output) <= MAX_OUTPUT
    assert run.answer is None


def test_a_program_of_any_length_is_kept_short(sandbox: Sandbox):
    run = LOOP.run(sandbox.run("x = 1\n" * MAX_SOURCE))
    assert (run.outcome, len(run.source)) == (ERROR, MAX_SOURCE)
    error = LOOP.run(sandbox.run("raise ValueError('e' * 10**6)")).error
    assert 100 < len(error) < 1000


@pytest.mark.parametrize(
    "text", ["\ud800", "\x00", "\u202e", "print('\U0010ffff')", "\ufeffprint(1)", "print(1)\r\x0c"]
)
def test_any_text_is_a_program_with_an_outcome(text: str, sandbox: Sandbox):
    assert LOOP.run(sandbox.run(text)).outcome in ProgramOutcome


def test_nothing_is_written_and_nothing_left_behind(tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    writes = (
        "open('pwned', 'w').write('x')",
        f"open({str(tmp_path / 'pwned')!r}, 'w').write('x')",
        f"from pathlib import Path\nPath({str(tmp_path / 'pwned')!r}).write_text('x')",
        f"import os\nos.mkdir({str(tmp_path / 'pwned')!r})",
        f"import os\nos.remove({str(CANARY)!r})",
        f"import os\nos.rename({str(CANARY)!r}, {str(tmp_path / 'pwned')!r})",
    )
    for source in writes:
        assert LOOP.run(sandbox.run(source)).outcome is ERROR
    assert not [*tmp_path.iterdir()]
    assert CANARY.is_file()


def test_one_program_knows_nothing_of_another(sandbox: Sandbox):
    assert LOOP.run(sandbox.run("secret = 7\nmath.pi = 3\nprint = None")).outcome in (SILENT, ERROR)
    assert LOOP.run(sandbox.run("print(secret)")).outcome is ERROR
    assert LOOP.run(sandbox.run("print(math.pi > 3)")).output == "True\n"


def test_chance_and_time_are_the_same_every_time(sandbox: Sandbox):
    source = "import random, datetime\nprint(random.random(), datetime.datetime.now())"
    first, second = (LOOP.run(sandbox.run(source)) for _ in range(2))
    assert first == second
    assert first.outcome is RAN


def test_the_environment_of_the_interpreter_is_empty(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_KEY", "hush")

    async def run() -> list[bytes]:
        async with Sandbox(seconds=60, workers=1) as sandbox:
            task = asyncio.create_task(sandbox.run("while True: pass"))
            found = list[bytes]()
            while len(found) < 2:
                found.clear()
                for pid in family(pid_of(sandbox)):
                    with suppress(OSError):  # gone meanwhile
                        found.append(Path(f"/proc/{pid}/environ").read_bytes())
                await asyncio.sleep(0.05)
        await task
        return found

    found = LOOP.run(run())
    assert not any(b"SECRET_KEY" in environ for environ in found)


def test_many_programs_at_once_share_few_processes():
    async def run() -> list[ProgramRun]:
        async with Sandbox(seconds=30, workers=2) as sandbox:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(sandbox.run(f"print({n} * 2)")) for n in range(40)]
            assert sum(worker._process is not None for worker in sandbox._workers) <= 2
            return [task.result() for task in tasks]

    assert [found.answer for found in LOOP.run(run())] == [str(2 * n) for n in range(40)]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_dies_is_replaced(how: signal.Signals):
    async def run() -> None:
        async with Sandbox(seconds=30, workers=1) as sandbox:
            os.kill(pid_of(sandbox), how)
            assert (await sandbox.run("print(1)")).outcome is ERROR
            assert (await sandbox.run("print(2)")).answer == "2"

    LOOP.run(run())


def test_an_interpreter_that_dies_is_replaced():
    async def run() -> None:
        async with Sandbox(seconds=30, workers=1) as sandbox:
            worker, task = pid_of(sandbox), asyncio.create_task(sandbox.run("while True: pass"))
            while not task.done():  # the first one found may be on its way out
                for pid in family(worker) - {worker}:
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(0.05)
            assert task.result().outcome is ERROR
            assert pid_of(sandbox) == worker
            assert (await sandbox.run("print(2)")).answer == "2"

    LOOP.run(run())


READY = "import json; print('{\"ready\": true}', flush=True); input(); "
ONE = 'print(\'{"printed": "42\\\\n", "error": ""}\', flush=True); '


@pytest.mark.parametrize(
    ("worker", "outcome"),
    [
        (READY + ONE + "raise SystemExit", ERROR),
        (READY + ONE + "input(); print('nonsense', flush=True); input()", ERROR),
        (READY + ONE + "input(); print('[1]', flush=True); input()", ERROR),
        (READY + ONE + "input(); print('{}', flush=True); input()", ERROR),
        (READY + ONE + "input(); print('x' * 3 * 10**6, flush=True); input()", ERROR),
        (READY + ONE + "input(); input()", TIMEOUT),
    ],
)
def test_a_worker_that_talks_nonsense_or_nothing_gives_no_answer(
    worker: str, outcome: ProgramOutcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "worker.py"
    path.write_text(worker)
    monkeypatch.setattr(child, "WORKER", path)
    monkeypatch.setattr(program, "GRACE", 0.2)

    async def run() -> ProgramRun:
        async with Sandbox(seconds=0.5, workers=1) as sandbox:
            return await sandbox.run("print(1)")

    assert LOOP.run(run()).outcome is outcome


def test_closing_ends_a_program_that_is_under_way():
    async def run() -> None:
        sandbox = await Sandbox(seconds=3600, workers=1).__aenter__()
        task = asyncio.create_task(sandbox.run("while True: pass"))
        while len(pids := family(pid_of(sandbox))) < 2:
            await asyncio.sleep(0.05)
        await sandbox.aclose()
        await sandbox.aclose()
        assert (await task).outcome is ERROR
        assert (await sandbox.run("print(1)")).outcome is ERROR
        assert all(map(gone, pids))

    LOOP.run(run())


SCRIPT = textwrap.dedent(
    """
    import asyncio
    from kace.answers.program import Sandbox
    async def main():
        async with Sandbox(seconds=3600, workers=1) as sandbox:
            print(sandbox._workers[0]._process.pid, flush=True)
            await sandbox.run("while True: pass")
    asyncio.run(main())
    """
)


def test_the_sandbox_dies_with_a_parent_that_is_killed(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        while len(pids := family(worker)) < 2:
            time.sleep(0.05)
        parent.kill()
    assert all(map(gone, pids))


def pid_of(sandbox: Sandbox) -> int:
    (process,) = (worker._process for worker in sandbox._workers if worker._process)
    return process.pid


def family(pid: int) -> set[int]:
    """A process and all that it started."""
    found = {pid}
    with suppress(OSError):  # gone meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found |= family(int(child))
    return found


def gone(pid: int) -> bool:
    """Whether a process ends within a minute; one that was killed and not yet collected is gone."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False
