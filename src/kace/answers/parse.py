r"""Reading the exact value out of a normal form: what numbers, in `kace.answers.calculator`, can be put together to.

* `x=5`, `x\in\{5\}`, `\{5\}`, `10/2=5` and `a=b=5` are 5. Several answers are a set whatever their order: `1, 2`,
  `x=2, x=1`, `\{1,2\}`; `\pm a` is the set of both. `x=1, y=2` names two unknowns, `y=2x+3` is an equation:
  no exact value.
* `(1, 2)` is ordered and never the set; it is also the open interval of that spelling. `[1, 2)` is another value.
* Unions of intervals are merged and ordered; `2x<6` and `1<x\leq2` are the intervals they say, whatever the
  unknown.
* A matrix is its entries, whatever its brackets; a column is not the tuple of its entries.
* Words compare without case, as a whole answer or listed. A choice letter is an unknown like any letter.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kace.answers.calculator import MAX_DEPTH, Exact, calculate
from kace.answers.exact import INFINITY, MINUS_INFINITY, Collection, Number, Value, Word, unknown
from kace.answers.normalize import depth
from kace.answers.radicals import NoExactValue
from kace.evaluation.intervals import union

EXACT = Exact()

_NAMED = re.compile(
    r"(\((?:[A-Za-z], )*[A-Za-z]\)|[A-Za-z](?:_\{\w+\})?|(?:m?\\angle ?)?[A-Z]{1,3}|\\[a-z]+(?:_\{\w+\})?|"
    r"\\text\{[^{}]*\})(?:=|\\in(?![A-Za-z]))(.+)",
    re.DOTALL,
)
_WORDS = re.compile(r"\\text\{([^{}]*)\}")
_MATRIX = re.compile(r"\\begin\{[pbB]?matrix\}(.+)\\end\{[pbB]?matrix\}", re.DOTALL)
_NAME = re.compile(r"[a-zA-Z](?:_\{\w+\})?|\\(?:alpha|beta|theta|lambda|mu|phi|omega)")
_RELATION = re.compile(r"(<|>|\\[lg]eq) ?")
_BELOW = ("<", r"\leq")
_OPEN = {"(": "(", "[": "[", r"\{": "{"}
_CLOSE = {")": ")", "]": "]", r"\}": "}"}


def exact_value(form: str) -> Value | None:
    """The exact value of a normal form, where it has one. Never raises, never takes long."""
    try:
        return _answer(form) if depth(form) <= MAX_DEPTH else None
    except ArithmeticError:
        return None


@lru_cache(maxsize=4_096)
def equation(form: str) -> Number | None:
    """What a polynomial equation sets to zero, scaled so that every multiple of the equation gives the same."""
    sides = form.split("=")
    if len(sides) != 2 or "," in form:
        return None
    try:
        zero = calculate(sides[0], EXACT) - calculate(sides[1], EXACT)
        if zero.constant:
            return None
        for name, power in {name: power for m, _ in zero.terms for name, power in m.unknowns if power < 0}.items():
            zero = zero * unknown(name).power(Number.of(-power))
        return zero / Number.of(zero.terms[0][1])
    except NoExactValue:
        return None


def _answer(form: str) -> Value:
    names: set[str] = set()
    values: list[Value] = []
    for item in _split(form):
        named = _NAMED.fullmatch(item)
        if named:
            names.add(re.sub(r"\d", "", named[1]))
        chain = item.count("=") > 1
        found = _alternatives(item.rpartition("=")[2] if chain else named[2] if named else item)
        if (chain or named) and any(isinstance(value, Number) and not value.constant for value in found):
            raise NoExactValue("an equation")
        values += found
    if len(names) > 1:
        raise NoExactValue("several unknowns")
    return _set(values)


def _set(values: list[Value]) -> Value:
    flat: list[Value] = []
    for value in values:
        flat += value.items if isinstance(value, Collection) and value.delimiters == "{}" else (value,)
    whole = Collection.of("{}", flat)
    return whole.items[0] if len(whole.items) == 1 else whole


def _alternatives(item: str) -> list[Value]:
    """The values one item of an answer stands for."""
    if words := _WORDS.fullmatch(item):
        return [_word(words[1])]
    if "=" in item:
        values = [_value(side) for side in item.split("=")]
        if len(set(values)) > 1 or not isinstance(values[0], Number) or not values[0].constant:
            raise NoExactValue("an equation")
        return values[:1]
    if item.count(r"\pm") == 1:
        return [_value(item.replace(r"\pm", sign).removeprefix("+")) for sign in "+-"]
    return [_value(item)]


def _word(text: str) -> Word:
    kept = " ".join(re.sub(r"[^A-Za-z0-9 ]", "", text).split())
    if not kept:
        raise NoExactValue("no words")
    return Word(kept.casefold())


def _value(text: str) -> Value:
    infinite = {r"\infty": INFINITY, r"+\infty": INFINITY, r"-\infty": MINUS_INFINITY}.get(text)
    if infinite:
        return infinite
    if r"\cup" in text:
        return union([_value(part) for part in re.split(r"\\cup ?", text)])
    if len(sides := _RELATION.split(text)) > 1:
        return _inequality(sides)
    if matrix := _MATRIX.fullmatch(text):
        rows = [[calculate(cell, EXACT) for cell in row.split("&")] for row in matrix[1].split(r"\\") if row]
        return Collection.of("matrix", [Collection.of("row", row) for row in rows])
    opening, closing = re.match(r"\(|\[|\\\{", text), re.search(r"\)|\]|\\\}$", text[-2:])
    if opening and closing:
        inner = text[opening.end() : len(text) - len(closing[0])]
        items = _split(inner) if _balanced(inner) else []
        braces = _OPEN[opening[0]] + _CLOSE[closing[0]]
        if braces == "{}" and items:
            return _set([value for item in items for value in _alternatives(item)])
        if len(items) > 1 and braces in ("()", "[]", "(]", "[)"):
            return Collection.of(braces, [_value(item) for item in items])
    return calculate(text, EXACT)


def _inequality(sides: list[str]) -> Value:
    """The interval of a linear inequality, or of `a<x<b`; `sides` alternates between expressions and signs."""
    if len(sides) == 3:
        low_end, bound = _solved(calculate(sides[0], EXACT) - calculate(sides[2], EXACT), sides[1] in _BELOW)
        closed = len(sides[1]) > 1
        if low_end:
            return Collection.of("[)" if closed else "()", (bound, INFINITY))
        return Collection.of("(]" if closed else "()", (MINUS_INFINITY, bound))
    if len(sides) != 5 or not _NAME.fullmatch(sides[2]) or (sides[1] in _BELOW) != (sides[3] in _BELOW):
        raise NoExactValue("not the range of one unknown")
    if sides[1] not in _BELOW:
        sides.reverse()
    delimiters = ("[" if len(sides[1]) > 1 else "(") + ("]" if len(sides[3]) > 1 else ")")
    return union([Collection.of(delimiters, (calculate(sides[0], EXACT), calculate(sides[4], EXACT)))])


def _solved(difference: Number, below: bool) -> tuple[bool, Number]:
    """Where a linear polynomial in one unknown changes sign, and whether that bounds the unknown from below."""
    unknowns = [term for term in difference.terms if not Number((term,)).constant]
    if len(unknowns) != 1:
        raise NoExactValue("not in one unknown")
    monomial, slope = unknowns[0]
    if monomial.imaginary or monomial.roots or len(monomial.unknowns) != 1 or monomial.unknowns[0][1] != 1:
        raise NoExactValue("not linear")
    rest = difference - Number((unknowns[0],))
    return (slope < 0) == below, rest / Number.of(-slope)


def _balanced(text: str) -> bool:
    depth = 0
    for match in re.finditer(r"\\[{}]|[()\[\]]", text):
        depth += 1 if match[0] in _OPEN else -1
        if depth < 0:
            return False
    return depth == 0


def _split(text: str) -> list[str]:
    """Split at the commas outside all brackets."""
    items, depth, start = [], 0, 0
    for match in re.finditer(r"\\[{}]|[()\[\]{},]", text):
        if match[0] == ",":
            if depth == 0:
                items.append(text[start : match.start()].strip())
                start = match.end()
        elif match[0] in ("(", "[", "{", r"\{"):
            depth += 1
        else:
            depth -= 1
    items.append(text[start:].strip())
    return items
