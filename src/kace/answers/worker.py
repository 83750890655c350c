"""The child process of `kace.answers`: compares LaTeX, asked and answered in JSON lines.

Run as a file, so that nothing of the parent's program is imported. It bounds itself and ends with its parent. Only the
LaTeX grammar is used: math-verify's reader of plain expressions evaluates text as Python, and its unit remover errs.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import re
import resource
import signal
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

DIGITS = 100
"""Numbers that agree to so many places after the point are one to math-verify; `_far` looks at the leading ones."""

Answering = Callable[[dict[str, Any]], dict[str, object]]


def serve(memory_mb: int, cpu_seconds: int) -> None:
    """Answer requests until standard input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(
        os.open(os.devnull, os.O_WRONLY), 1
    )  # a library that prints must not break the protocol
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    _limit(resource.RLIMIT_AS, memory_mb * 1024 * 1024)
    _limit(resource.RLIMIT_CORE, 0)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    answer = _comparing()
    reply: dict[str, object] = {"ready": True}
    while True:
        print(json.dumps(reply), file=channel, flush=True)
        request = json.loads(requests.get())
        usage = resource.getrusage(resource.RUSAGE_SELF)
        # Should the parent be gone, the kernel ends a computation that never comes back to Python.
        _limit(
            resource.RLIMIT_CPU,
            int(usage.ru_utime + usage.ru_stime) + cpu_seconds,
            resource.RLIM_INFINITY,
        )
        reply = answer(request)


def _listen(requests: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    if (
        os.getpgrp() == os.getpid()
    ):  # its own session: an interpreter that is busy ends with it
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    with contextlib.suppress(
        ValueError, OSError
    ):  # a system without this limit still has the parent's clock
        resource.setrlimit(kind, (soft, soft if hard is None else hard))


def _comparing() -> Answering:
    """Return what says whether two spellings are the same, both ways."""
    equal = _comparison()
    from math_verify.errors import TimeoutException

    def answer(request: dict[str, Any]) -> dict[str, object]:
        try:
            return {
                "same": equal(request["left"], request["right"])
                and equal(request["right"], request["left"])
            }
        except (Exception, TimeoutException) as error:
            return {"error": type(error).__name__}

    return answer


def _comparison() -> Any:
    """Import the heavy libraries once and return the one-directional comparison."""
    from latex2sympy2_extended import NormalizationConfig  # type: ignore[import-untyped]
    from math_verify import LatexExtractionConfig, parse, verify
    from sympy import Rational  # type: ignore[import-untyped]

    notation = NormalizationConfig(
        basic_latex=True,
        units=False,
        malformed_operators=False,
        nits=True,
        boxed="last",
    )
    latex = LatexExtractionConfig(boxed_match_priority=0, normalization_config=notation)
    modes = {"fallback_mode": "no_fallback", "extraction_mode": "first_match"}
    reading = {"extraction_config": [latex], "parsing_timeout": None, **modes}
    comparing = {
        "float_rounding": DIGITS,
        "numeric_precision": DIGITS,
        "strict": True,
        "timeout_seconds": None,
    }

    @lru_cache(maxsize=256)
    def read(text: str) -> Any:
        if rational := re.fullmatch(r"(-?)(?:(\d+)|\\frac\{(\d+)\}\{(\d+)\})", text):
            sign, whole, above, below = rational.groups()
            return Rational(int(sign + (whole or above)), int(below or 1))
        radians = re.sub(r"(\d+(?:\.\d+)?)\^\{\\circ\}", r"(\\frac{\1\\pi}{180})", text)
        found = parse(rf"\boxed{{{radians}}}", **reading)
        return found[0] if found else None

    def equal(gold: str, target: str) -> bool:
        left = read(gold)
        right = read(target)
        if left is None or right is None:
            return False
        own = _own_verdict(left, right)
        return bool(verify(left, right, **comparing)) if own is None else own

    return equal


def _own_verdict(left: Any, right: Any) -> bool | None:
    """What is decided here: math-verify is slow, takes tiny numbers for zero, and equates impossible relations."""
    from sympy import Expr
    from sympy.core.relational import Relational  # type: ignore[import-untyped]
    from sympy.logic.boolalg import BooleanAtom  # type: ignore[import-untyped]

    if isinstance(left, BooleanAtom) or isinstance(right, BooleanAtom):
        return False
    if isinstance(left, Relational) and isinstance(right, Relational):
        return _same_relation(left, right)
    return (
        False
        if isinstance(left, Expr) and isinstance(right, Expr) and _far(left, right)
        else None
    )


def _same_relation(left: Any, right: Any) -> bool:
    """Equations are the same if multiples of one another, denominators cleared; inequalities if turned alike, too."""
    from sympy import Eq, fraction, simplify, together

    if not left.free_symbols or left.free_symbols != right.free_symbols:
        return False
    equations = isinstance(left, Eq) and isinstance(right, Eq)
    a = left.lhs - left.rhs
    b = right.lhs - right.rhs
    if equations:
        a = fraction(together(a.doit()))[0]
        b = fraction(together(b.doit()))[0]
    if _far(a * _at_a_second_point(b), b * _at_a_second_point(a)):
        return False
    ratio = simplify(a / b)
    if not (ratio.is_number and ratio.is_finite) or ratio.is_zero:
        return False
    turned = right if ratio.is_positive else right.reversed
    return equations or left.rel_op == turned.rel_op


def _at_a_second_point(expression: Any) -> Any:
    return expression.subs(
        {symbol: index + 3 for index, symbol in enumerate(_unknowns(expression))}
    )


def _far(left: Any, right: Any) -> bool:
    """Whether two expressions differ in their leading digits, at one arbitrary point where they have unknowns."""
    from sympy import Rational

    unknowns = _unknowns(left) + [
        symbol for symbol in _unknowns(right) if symbol not in left.free_symbols
    ]
    point = {
        symbol: Rational(2 * index + 7, 2 * index + 5)
        for index, symbol in enumerate(unknowns)
    }
    a = left.doit().subs(point).evalf(30)
    b = right.doit().subs(point).evalf(30)
    if not (a.is_number and b.is_number and a.is_finite and b.is_finite):
        return False
    return bool(abs(a - b) > Rational(1, 10**20) * max(abs(a), abs(b)))


def _unknowns(expression: Any) -> list[Any]:
    return sorted(expression.free_symbols, key=str)


if __name__ == "__main__":
    serve(memory_mb=int(sys.argv[1]), cpu_seconds=int(sys.argv[2]))
