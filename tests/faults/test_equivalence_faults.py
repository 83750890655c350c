"""The judge under attack: bombs, crashes, garbage, cancellation, a dead parent, and text that wants to be code."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from kace.answers import equal
from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer
from tests.serve.running import until

GOOD = (r"\cos^2 t", r"1-\sin^2 t")
SLOW = (r"\log((x^2+y^2+z^2+v^2)^{100})", r"100\log(x^2+y^2+z^2+v^2)")  # no gate sees it, and it takes very long
BOMBS = [
    ("9^{9^{9}}", "1"),
    ("2^{10^{10}}", "1"),
    ("(10^7)!", "1"),
    (r"\binom{10^7}{5\cdot10^6}", "1"),
    (r"\binom{10000000}{5000000}", r"\log 5"),
    ("(x+1)^{5000}", "(x+2)^{5000}"),
    ("(" * 30 + r"\log 2" + ")" * 30, r"\log 3"),
    (r"\sqrt{" * 40 + "2" + "}" * 40, r"\log 3"),
    (r"\log " + "9" * 1_500, r"\log 3"),
    SLOW,
    (r"\sum_{n=1}^{1000000000}\frac{1}{n}", r"\log 3"),
    (r"\int_0^1 \frac{\sin(x^3+x)}{1+e^{x^2}} dx", r"2-1+\int_0^1 \frac{\sin(x^3+x)}{1+e^{x^2}} dx"),
    (r"\int_0^1 x^{x^{x}} dx", r"\log 3"),
]


READY = "print('ready', flush=True); input(); "


async def compare(judge: Judge, left: str, right: str) -> Verdict:
    return await judge(Answer.of(left), Answer.of(right))


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pid_of(judge: Judge) -> int:
    (process,) = judge._processes
    return process.pid


def test_no_bomb_is_merged_and_good_answers_are_judged_beside_them() -> None:
    async def run() -> None:
        async with Judge(workers=2, seconds=6) as judge:
            async with asyncio.TaskGroup() as group:
                bombs = [group.create_task(compare(judge, *bomb)) for bomb in BOMBS]
                good = [group.create_task(compare(judge, rf"\sin^2 t+{n}", rf"{n + 1}-\cos^2 t")) for n in range(8)]
            assert Verdict.SAME not in {task.result() for task in bombs}
            assert {task.result() for task in good} == {Verdict.SAME}
        async with Judge(seconds=1) as hasty:
            assert await compare(hasty, *reversed(SLOW)) is Verdict.TIMEOUT

    asyncio.run(run())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_a_crashed_worker_is_replaced(how: signal.Signals) -> None:
    async def run() -> None:
        async with Judge(seconds=20) as judge:
            assert await compare(judge, *GOOD) is Verdict.SAME
            os.kill(pid_of(judge), how)
            assert await compare(judge, r"\log_2 8", "3") is Verdict.REFUSED
            assert await compare(judge, r"\log_2 16", "4") is Verdict.SAME

    asyncio.run(run())


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("", Verdict.REFUSED),
        ("raise SystemExit(3)", Verdict.REFUSED),
        ("print('no word of ours')", Verdict.REFUSED),
        ("print('ready', flush=True)", Verdict.REFUSED),
        (READY + "print('1', flush=True); input()", Verdict.REFUSED),
        (READY + "print('s' * 2000000, flush=True); input()", Verdict.REFUSED),
        (READY + "input()", Verdict.TIMEOUT),
        ("import time; time.sleep(60)", Verdict.REFUSED),
    ],
)
def test_a_worker_that_talks_nonsense_or_nothing_gives_no_verdict(
    program: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(program)
    monkeypatch.setattr(equal, "WORKER", worker)
    monkeypatch.setattr(equal, "START_SECONDS", 1.0 if "sleep" in program else 60.0)

    async def run() -> Verdict:
        async with Judge(seconds=0.5) as judge:
            return await compare(judge, *GOOD)

    assert asyncio.run(run()) is verdict


def test_without_an_interpreter_to_start_there_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")

    async def run() -> Verdict:
        async with Judge() as judge:
            return await compare(judge, *GOOD)

    assert asyncio.run(run()) is Verdict.REFUSED


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="reads limits from /proc")
def test_a_worker_is_bounded_in_memory_and_stands_apart_from_the_terminal() -> None:
    async def run() -> None:
        async with Judge(seconds=20) as judge:
            assert await compare(judge, *GOOD) is Verdict.SAME
            pid = pid_of(judge)
            limits = Path(f"/proc/{pid}/limits").read_text()
            assert str(1 << 30) in next(line for line in limits.splitlines() if "address space" in line)
            assert os.getsid(pid) != os.getsid(0)
            os.kill(pid, signal.SIGINT)
            assert await compare(judge, r"\log_2 8", "3") is Verdict.SAME
            assert pid_of(judge) == pid

    asyncio.run(run())


def test_a_cancelled_comparison_takes_its_worker_along() -> None:
    async def run() -> None:
        async with Judge(workers=1, seconds=60) as judge:
            assert await compare(judge, *GOOD) is Verdict.SAME
            task = asyncio.create_task(compare(judge, *SLOW))
            await asyncio.sleep(0.3)
            pid = pid_of(judge)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await compare(judge, r"\log_2 8", "3") is Verdict.SAME
            assert not alive(pid)

    asyncio.run(run())


def test_closing_ends_a_comparison_that_is_under_way() -> None:
    async def run() -> None:
        judge = Judge(workers=1, seconds=60)
        assert await compare(judge, *GOOD) is Verdict.SAME
        pid = pid_of(judge)
        tasks = [asyncio.create_task(compare(judge, *SLOW)), asyncio.create_task(compare(judge, r"\log_2 8", "3"))]
        await asyncio.sleep(0.3)
        await judge.aclose()
        await judge.aclose()
        assert [await task for task in tasks] == [Verdict.REFUSED, Verdict.REFUSED]
        assert not alive(pid)

    asyncio.run(run())


SCRIPT = textwrap.dedent(
    r"""
    import asyncio, sys
    from kace.answers.extract import Answer
    from kace.answers.equal import Judge
    print("started", flush=True)
    async def main():
        asyncio.get_running_loop().slow_callback_duration = 600  # on a busy machine everything is slow
        async with Judge(seconds=60) as judge:
            print(await judge(Answer.of(r"\cos^2 t"), Answer.of(r"1-\sin^2 t")), flush=True)
            print(*(process.pid for process in judge._processes), flush=True)
            if "slow" in sys.argv:
                await judge(Answer.of(sys.argv[2]), Answer.of(sys.argv[3]))
            if "wait" in sys.argv:
                await asyncio.sleep(60)
    asyncio.run(main())
    """
)


def test_an_unguarded_script_runs_once_and_leaves_nothing_to_warn_about(tmp_path: Path) -> None:
    script = tmp_path / "sympy.py"  # a name that must not shadow the library in the worker
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", str(script)],
        capture_output=True, text=True, timeout=600, cwd=tmp_path, check=True,
    )  # fmt: skip
    started, verdict, pid = done.stdout.split()
    assert (started, verdict, done.stderr) == ("started", "same", "")
    assert until(lambda: not alive(int(pid)), 15)


@pytest.mark.parametrize("mode", [["wait"], ["slow", *SLOW]])
def test_workers_die_with_a_parent_that_is_killed(mode: list[str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(script), *mode], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        lines = [parent.stdout.readline().strip() for _ in range(3)]
        time.sleep(0.3)
        parent.kill()
    assert lines[1] == "same"
    assert until(lambda: not alive(int(lines[2])), 15)


def canaries(marker: Path) -> list[str]:
    call = f"__import__('os').system('touch {marker}')"
    return [
        call,
        rf"\text{{{call}}}",
        rf"\frac{{{call}}}{{2}}",
        rf"\operatorname{{{call}}}",
        f"x={call}",
        f"(lambda: {call})()",
        f"[{call} for x in (1,)]",
        "().__class__.__base__.__subclasses__()",
        f"getattr(__import__('os'), 'system')('touch {marker}')",
        f"Symbol('x').func({call})",
        f"{call}*pi",
        f"$ {call} $",
        rf"}}}} {call} \boxed{{",
    ]


def test_no_answer_is_ever_run(tmp_path: Path) -> None:
    marker = tmp_path / "pwned"

    async def run() -> None:
        async with Judge(seconds=5) as judge:
            for text in canaries(marker):
                for other in (r"\log 2", text + "+1", "1"):
                    assert await compare(judge, text, other) is not Verdict.SAME

    asyncio.run(run())
    assert not marker.exists()


PROBE = textwrap.dedent(
    r"""
    import builtins, json, pickle, sys
    sys.path.insert(0, sys.argv[1])
    import worker
    equal = worker.is_equal
    import sympy, sympy.parsing.sympy_parser as parser
    import latex2sympy2_extended.latex2sympy2, math_verify.parser

    def trap(module, name):
        real = getattr(module, name)
        def guarded(first=None, *rest, **named):
            if isinstance(first, (str, bytes)) and "canary" in str(first):
                print("RAN", module.__name__, name, flush=True)
            return real(first, *rest, **named)
        setattr(module, name, guarded)

    for name in ("eval", "exec", "compile"):
        trap(builtins, name)
    trap(pickle, "loads")
    for module in (parser, math_verify.parser, latex2sympy2_extended.latex2sympy2):
        trap(module, "parse_expr")
    trap(sympy, "sympify")
    trap(sys.modules["sympy.core.sympify"], "sympify")
    for text in json.loads(sys.argv[2]):
        equal(text, "x+1")
        equal("x+1", text)
    print("done")
    """
)


def test_nothing_in_the_worker_evaluates_an_answer(tmp_path: Path) -> None:
    texts = [*canaries(tmp_path / "canary"), "canary", "canary(1)", r"\text{canary}", "canary+1", "1+canary^2"]
    source = str(Path(equal.__file__).parent)
    command = [sys.executable, "-P", "-c", PROBE, source, json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout == "done\n"
