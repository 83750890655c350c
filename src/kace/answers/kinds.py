r"""What problems are about, and answers that are no mathematics.

An answer may also be a text, the letter of an option, or a number with a tolerance; the
rules are in docs/answers.md. What cannot be read as its kind is compared as a text.
Nothing raises or takes long.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

from kace.answers.exact import Formula, Value, Word
from kace.answers.extract import MAX_ANSWER_CHARS, Answer, repeat

_STYLED = re.compile(
    r"""\\(?:text|mathrm|mathbf|mathit|mathsf|operatorname|mbox|boxed)[a-z]{0,6}
    \s*\{([^{}]*)\}""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\\[,;:! ]|\\q?quad(?![A-Za-z])|~|\s+")
_DOLLARS = re.compile(r"\A\s*\$+([^$]+)\$+\s*\Z")
_LOW = re.compile(r"_(?:\{([^{}]*)\}|(?=\d))")
_ESCAPED = re.compile(r"\\([%$&#_])")
_WRAPPED = re.compile(
    r"""\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)|\[((?:[^][]|\[[^][]*\])*)\]
    |\{((?:[^{}]|\{[^{}]*\})*)\}|「([^「」]*)」|([*_$]+)([^*_$]+)\5""",
    re.VERBOSE,
)
_EDGES = " \t\"'`“”‘’«»´.,;:!?…。、"
_OPTION = re.compile(r"(?<!\w)\(?([A-Z])[).:]\s")
_LETTER = re.compile(
    r"""(?:(?:the\ )?(?:correct\ |right\ |final\ )?(?:option|choice|answer)(?:\ is)?:?\ ?)?
    (?:\(([A-Z])\)|([A-Z])(?:[).:](?=\ |$)|$))[.:]?(.*)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ANOTHER = re.compile(r"\([A-Za-z]\)|(?:^|[ ,&])(?:[B-Z]|A$)(?![\w'-])")
_ABOUT = re.compile(
    r"^(?:about|around|approximately|approx\.?|roughly|≈|~|\\approx|\\sim)\s*",
    re.IGNORECASE,
)
_ASKS_PERCENT = re.compile(
    r"\b(?:what|which|find the|as a|in) percent|\bpercentage\b", re.IGNORECASE
)
_PERCENT = re.compile(r"\s*(?:\\?%|\bper ?cent\b)", re.IGNORECASE)
_NO_UNIT = re.compile(
    r"\b(?:and|or|to|than|more|less|million|thousand|billion|dozen|hundred|half|[xyz])\b"
)
_MEASURE = re.compile(
    r"""(?P<number>[-+−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)
      (?:[eE][-+]?\d+(?!\w)
      |\s*(?:\\times|\\cdot|×|·|\*|x)\s*10\s*\^\s*(?:\{[-+−]?\d+\}|[-+−]?\d+))?)
    \s*(?P<unit>(?:[^\W\d_]|[°µΩ\\/$€£¥])(?:[^\d,;=]|(?<=[\^{\-−A-Za-z])\d){0,40})""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Subject:
    """What problems are about. The default is mathematics."""

    name: str = "mathematics"
    answers: str = "math"  # an `AnswerKind` of the configuration
    tolerance: float = 1e-6  # between numbers, relative to the larger

    def read(self, text: str, problem: str = "") -> Answer:
        """Read an answer to a problem, given or expected.

        A choice is also recognised by the words of an option that the problem lists,
        and the percent sign is a unit where a problem asks for a percentage.
        """
        if self.answers == "math":
            return Answer.of(text, _ASKS_PERCENT.search(problem) is not None)
        return _read(self, text, problem if self.answers == "choice" else "")

    def named(self, prompt: str) -> str:
        """Return a prompt about mathematics as one about this subject."""
        article = "an" if self.name[0].lower() in "aeiou" else "a"
        prompt = re.sub(r"\ba mathematics\b", f"{article} mathematics", prompt)
        return prompt.replace("mathematics", self.name)


MATHEMATICS = Subject()


@lru_cache(maxsize=4_096)
def _read(subject: Subject, text: str, problem: str) -> Answer:
    value: Value = Word(plain_text(text))
    tolerance = 0.0
    if len(text) > MAX_ANSWER_CHARS:
        return Answer(text.strip(), value)
    if subject.answers == "choice":
        value = Word(read_choice(text, options_of(problem)))
    elif subject.answers == "number":
        tolerance = subject.tolerance
        number = quantity(text)
        value = value if number is None else number
    return Answer(text.strip(), value, tolerance)


def plain_text(text: str) -> str:
    """Return a text without case, styling, outer brackets, quotes and punctuation."""
    if len(text) > MAX_ANSWER_CHARS:
        return text.strip()
    return repeat(_plain, text)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", _unstyled(text)).casefold()
    return _unwrapped(" ".join(folded.split()))


def options_of(problem: str) -> dict[str, str]:
    """Return the options that a problem lists, by letter; of several lists the last."""
    chain: list[re.Match[str]] = []
    listed = chain
    for mark in _OPTION.finditer(problem):
        if mark[1] == "A":
            chain = [mark]
        elif mark[1] == chr(ord("A") + len(chain)):
            chain.append(mark)
            listed = chain
    options = {}
    stop = len(problem)
    for mark in reversed(listed):
        words = problem[mark.end() : stop].strip()
        options[mark[1]] = plain_text(words.partition("\n")[0])
        stop = mark.start()
    return options


def read_choice(text: str, options: dict[str, str]) -> str:
    """Return the letter that an answer chooses, or else its plain text.

    The letter is given by itself, with its option behind it, or by the option's words.
    """
    words = " ".join(_unstyled(text).split())
    named = _LETTER.fullmatch(words.strip(_EDGES))
    if named:
        letter = (named[1] or named[2]).upper()
        rest = named[3].strip()
        if options.get(letter) == plain_text(rest) or not _ANOTHER.search(rest):
            return letter
    plain = plain_text(text)
    found = [letter for letter, option in options.items() if option == plain]
    return found[0] if len(found) == 1 else plain


def quantity(text: str) -> Fraction | None:
    """Return the number that an answer gives, without unit and percent sign."""
    bare = _PERCENT.sub("", _ABOUT.sub("", _unstyled(text).strip(" .;$€£¥")))
    number = _number(bare)
    measured = _MEASURE.fullmatch(bare)
    if number is None and measured and not _NO_UNIT.search(measured["unit"]):
        number = _number(measured["number"])
    return number


def _number(text: str) -> Fraction | None:
    """Return the value of a real number, rounded where it is not rational."""
    scientific = re.sub(r"(?<=[\d.])e(?=[-+−]?\d)", "E", text)
    value = Answer.of(scientific).value
    if isinstance(value, Formula) and value.constant:
        point = value.point or 0j
        return None if point.imag else Fraction(point.real)
    return value if isinstance(value, Fraction) else None


def _unstyled(text: str) -> str:
    """Return words without LaTeX styling, spaces or subscripts."""
    text = _SPACE.sub(" ", text)
    text = repeat(partial(_STYLED.sub, r"\1"), text)
    text = _DOLLARS.sub(r"\1", text)
    return _LOW.sub(r"\1", _ESCAPED.sub(r"\1", text))


def _unwrapped(text: str) -> str:
    """Return a text without what only surrounds it, unless nothing would be left."""
    start = text.strip()
    bare = start.strip(_EDGES)
    while found := _WRAPPED.fullmatch(bare):
        bare = found[found.lastindex or 0].strip(_EDGES)
    return bare or start
