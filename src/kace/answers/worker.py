"""The child process of `kace.answers.equal`: compares LaTeX.

A request is a JSON list of two answers in a line; a reply is a word. An exception ends
the process, which the parent takes for a refusal.

It is run as a file, so that nothing of the parent's program is imported, bounds itself
and ends with its parent. Only the LaTeX grammar of math-verify is used: its reader of
plain expressions evaluates text as Python, and its unit remover errs.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import resource
import signal
import sys
import threading
import time
from functools import lru_cache
from typing import Any

from latex2sympy2_extended.latex2sympy2 import (  # type: ignore[import-untyped]
    latex2sympy,
)
from math_verify import verify
from sympy import (  # type: ignore[import-untyped]
    Expr,
    I,
    Rational,
    Set,
    Symbol,
    fraction,
    simplify,
    together,
)
from sympy.core.relational import Relational  # type: ignore[import-untyped]
from sympy.logic.boolalg import (  # type: ignore[import-untyped]
    Boolean,
    BooleanAtom,
)

MEMORY = 1 << 30  # bytes
DIGITS = 100
"""Places that decide for math-verify; `_far` compares the leading digits."""


def serve(cpu_seconds: int) -> None:
    """Answer requests until standard input ends, each within so many seconds."""
    channel = os.fdopen(os.dup(1), "w", encoding="ascii")
    # A library that prints must not break the protocol.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit(resource.RLIMIT_AS, MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    reply = "ready"
    while True:
        print(reply, file=channel, flush=True)
        left, right = json.loads(requests.get())
        # If the parent is gone, the kernel ends a computation that never comes back.
        used = int(time.process_time())
        _limit(resource.RLIMIT_CPU, used + cpu_seconds)
        same = is_equal(left, right) and is_equal(right, left)
        reply = "same" if same else "different"


def _listen(requests: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)  # the main thread may be busy


def _limit(kind: int, most: int) -> None:
    # A system without this limit still has the parent's clock.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


_NOT_REAL = {"i": I, "z": Symbol("z"), "w": Symbol("w")}


@lru_cache(maxsize=256)
def read(latex: str) -> Any:
    """Return the value of LaTeX, or None.

    In it `i` is imaginary, and `z` and `w` may be complex.
    """
    latex = re.sub(
        r"(\d+(?:\.\d+)?)\^\{\\circ\}", r"(\\frac{\1\\pi}{180})", latex
    )
    try:
        value = latex2sympy(latex, is_real=True, normalization_config=None)
    except Exception:
        return None
    symbols = {}
    for symbol in getattr(value, "free_symbols", ()):
        symbols[symbol] = _NOT_REAL.get(symbol.name, symbol)
    # This also evaluates what the grammar leaves as it is written.
    return value.xreplace(symbols) if symbols else value


def is_equal(gold: str, target: str) -> bool:
    """Whether math-verify takes the target for the gold answer."""
    left = read(gold)
    right = read(target)
    if left is None or right is None:
        return False
    own = _own_verdict(left, right)
    if own is not None:
        return own
    same = verify(
        left,
        right,
        float_rounding=DIGITS,
        numeric_precision=DIGITS,
        strict=True,
        timeout_seconds=None,
    )
    return bool(same)


def _own_verdict(left: Any, right: Any) -> bool | None:
    """Decide what math-verify gets wrong, or does slowly.

    It takes tiny numbers for zero, equates impossible relations, and takes every
    letter for a real number.
    """
    if isinstance(left, BooleanAtom) or isinstance(right, BooleanAtom):
        return False
    if isinstance(left, Relational) and isinstance(right, Relational):
        return _same_relation(left, right)
    if isinstance(left, Set) != isinstance(right, Set):
        if isinstance(right, Set):
            left, right = right, left
        if not isinstance(right, Boolean) or len(right.free_symbols) != 1:
            return False
        return bool(right.as_set() == left)
    if isinstance(left, Expr) and isinstance(right, Expr):
        if left == right:
            return True
        if _far(left, right):
            return False
    return None


def _same_relation(left: Any, right: Any) -> bool:
    """Whether two relations are multiples of one another, turned alike.

    The denominators of equations are cleared first.
    """
    if not left.free_symbols or left.free_symbols != right.free_symbols:
        return False
    equations = left.rel_op == right.rel_op and left.rel_op in ("==", "!=")
    a = left.lhs - left.rhs
    b = right.lhs - right.rhs
    if equations:
        a = fraction(together(a.doit()))[0]
        b = fraction(together(b.doit()))[0]
    unknowns = sorted(a.free_symbols | b.free_symbols, key=str)
    point = {symbol: place + 3 for place, symbol in enumerate(unknowns)}
    if _far(a * b.subs(point), b * a.subs(point)):
        return False
    ratio = simplify(a / b)
    if not (ratio.is_number and ratio.is_finite) or ratio.is_zero:
        return False
    turned = right if ratio.is_positive else right.reversed
    return bool(left.rel_op == turned.rel_op)


def _far(left: Any, right: Any) -> bool:
    """Whether the leading digits differ, at one of two points of the unknowns."""
    unknowns = sorted(left.free_symbols | right.free_symbols, key=str)
    for sign in (1, -1) if unknowns else (1,):
        point = {}
        for place, symbol in enumerate(unknowns):
            point[symbol] = Rational(sign * (2 * place + 7), 2 * place + 5)
        a = left.doit().subs(point).evalf(30)
        b = right.doit().subs(point).evalf(30)
        if not (a.is_number and b.is_number and a.is_finite and b.is_finite):
            continue
        if abs(a - b) > Rational(1, 10**20) * max(abs(a), abs(b)):
            return True
    return False


if __name__ == "__main__":
    serve(cpu_seconds=int(sys.argv[1]))
