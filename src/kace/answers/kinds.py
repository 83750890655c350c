r"""What problems are about, and answers that are no mathematics: a text, the letter of an option, or a number.

docs/answers.md has the rules. What cannot be read as its kind is compared as a text. Nothing raises or takes long.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from kace.answers.calculator import estimate
from kace.answers.exact import NoExactValue, Number, Value, Word
from kace.answers.extract import MAX_ANSWER_CHARS, Answer
from kace.answers.normalize import NOT_UNITS, normal_form
from kace.answers.parse import exact_value

MAX_MARKS = 200  # of options, from the end of a problem
MAX_EXPONENT = 1_000  # of a number: what is larger is compared as a text
_ROUNDS = 8
_STYLED = re.compile(
    r"\\(?:text|mathrm|mathbf|mathit|mathsf|operatorname|mbox|boxed)[a-z]{0,6}\s*\{([^{}]*)\}"
)
_SPACE = re.compile(r"\\[,;:! ]|\\q?quad(?![A-Za-z])|~|\s+")
_DOLLARS = re.compile(r"\s*\$+([^$]+)\$+\s*")
_LOW = re.compile(r"_(?:\{([^{}]*)\}|(?=\d))")
_ESCAPED = re.compile(r"\\([%$&#_])")
_PAIRS = ("()", "[]", "{}", "$$", "**", "__", "“”", "‘’", "«»", "「」")
_EDGES = " \t\"'`“”‘’«»´.,;:!?…。、"
_OPTION = re.compile(r"(?<!\w)\(?([A-Z])[).:]\s")
_LETTER = re.compile(
    r"(?:(?:the )?(?:correct |right |final )?(?:option|choice|answer)(?: is)?:? ?)?"
    r"(?:\(([A-Z])\)|([A-Z])(?:[).:](?= |$)|$))[.:]?(.*)",
    re.IGNORECASE | re.DOTALL,
)
_ANOTHER = re.compile(r"\([A-Za-z]\)|(?:^|[ ,&])(?:[B-Z]|A$)(?![\w'-])")
_ABOUT = re.compile(
    r"^(?:about|around|approximately|approx\.?|roughly|≈|~|\\approx|\\sim)\s*",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"\s*(?:\\?%|\bper ?cent\b)", re.IGNORECASE)
_MEASURE = re.compile(
    r"(?P<number>[-+−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
    r"(?:[eE][-+]?\d+(?!\w)|\s*(?:\\times|\\cdot|×|·|\*|x)\s*10\s*\^\s*(?:\{[-+−]?\d+\}|[-+−]?\d+))?)"
    r"\s*(?P<unit>[^\W\d_]|[°µΩ\\/$€£¥])(?:[^\d,;=]|(?<=[\^{\-−A-Za-z])\d){0,40}"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """What problems are about. The default is mathematics, whose prompts and answers never change."""

    name: str = "mathematics"
    answers: str = "math"  # an `AnswerKind` of the configuration
    tolerance: float = 1e-6  # between numbers, relative to the larger

    def read(self, text: str, problem: str = "") -> Answer:
        """An answer to a problem, given or expected. A choice is also known by the words of an option it lists."""
        return _read(self, text, problem if self.answers == "choice" else "")

    def named(self, prompt: str) -> str:
        """A prompt about mathematics, as one about this subject."""
        if self.name == MATHEMATICS.name:
            return prompt
        article = "an" if self.name[0].lower() in "aeiou" else "a"
        return re.sub(r"\ba mathematics\b", f"{article} mathematics", prompt).replace(
            "mathematics", self.name
        )


MATHEMATICS = Subject()


@lru_cache(maxsize=4_096)
def _read(subject: Subject, text: str, problem: str) -> Answer:
    if subject.answers == "math":
        return Answer.of(text)
    form = plain_text(text)
    value: Value | None = None
    if subject.answers == "choice":
        letter = choice_letter(text, options_of(problem))
        value = Word(letter) if letter else None
    elif subject.answers == "number":
        value = quantity(text)
    return Answer(
        text.strip(),
        form,
        value or Word(form),
        subject.tolerance if subject.answers == "number" else 0.0,
    )


def plain_text(text: str) -> str:
    """A text without case, styling, outer brackets, quotes and punctuation, and with single spaces."""
    if len(text) > MAX_ANSWER_CHARS:
        return text.strip()
    for _ in range(_ROUNDS):
        before = text
        folded = unicodedata.normalize(
            "NFKC", unicodedata.normalize("NFKC", _unstyled(text)).casefold()
        )
        text = _trimmed(" ".join(folded.split()))
        if text == before:
            break
    return text


def options_of(problem: str) -> dict[str, str]:
    """The options that a problem lists, by letter, as plain texts; the last list where there are several."""
    marks = list(_OPTION.finditer(problem))[-MAX_MARKS:]
    for start in range(len(marks) - 1, -1, -1):
        if marks[start][1] == "A":
            chain = [marks[start]]
            for mark in marks[start + 1 :]:
                if ord(mark[1]) == ord(chain[-1][1]) + 1:
                    chain.append(mark)
            if len(chain) > 1:
                ends = [*(mark.start() for mark in chain[1:]), len(problem)]
                found = (
                    (mark[1], problem[mark.end() : end])
                    for mark, end in zip(chain, ends, strict=True)
                )
                return {
                    letter: plain_text(said.strip().split("\n")[0])
                    for letter, said in found
                }
    return {}


def choice_letter(text: str, options: dict[str, str]) -> str | None:
    """The letter that an answer chooses, by itself, with its option behind it, or by the option's words alone."""
    if len(text) > MAX_ANSWER_CHARS:
        return None
    named = _LETTER.fullmatch(_trimmed(" ".join(_unstyled(text).split()), pairs=False))
    if named:
        letter = (named[1] or named[2]).upper()
        rest = named[3].strip()
        if (
            not rest
            or options.get(letter) == plain_text(rest)
            or not _ANOTHER.search(rest)
        ):
            return letter
    said = plain_text(text)
    found = [letter for letter, option in options.items() if option == said]
    return found[0] if len(found) == 1 else None


def quantity(text: str) -> Number | None:
    """The number that an answer gives; a unit and a percent sign behind it are left out and never converted."""
    if len(text) > MAX_ANSWER_CHARS:
        return None
    bare = _PERCENT.sub("", _ABOUT.sub("", _unstyled(text).strip(" .;$€£¥")))
    measured = _MEASURE.fullmatch(bare)
    # `2\pi` and `3e` are numbers; letters are units.
    for said in (
        bare,
        measured["number"]
        if measured and not NOT_UNITS.search(bare[measured.end("number") :])
        else "",
    ):
        form = normal_form(
            re.sub(r"(?<=[\d.])e(?=[-+]?\d)", "E", said.replace("−", "-"))
        )
        value = exact_value(form)
        if isinstance(value, Number) and value.rational is not None:
            return value
        letters = re.sub(r"\\(?:[a-z]+)", "", form)
        rounded = None if re.search(r"[A-DF-Za-df-z]|\\", letters) else estimate(form)
        if (
            rounded is not None
            and rounded.is_finite()
            and abs(rounded.adjusted()) <= MAX_EXPONENT
        ):
            try:
                return Number.of(Fraction(rounded))
            except NoExactValue:
                return None
    return None


def _unstyled(text: str) -> str:
    """Words as a person would type them: no LaTeX styling, spaces or subscripts."""
    text = _SPACE.sub(" ", text)
    for _ in range(_ROUNDS):
        before = text
        text = _STYLED.sub(r"\1", text)
        if text == before:
            break
    set_off = _DOLLARS.fullmatch(text)
    return _LOW.sub(r"\1", _ESCAPED.sub(r"\1", set_off[1] if set_off else text))


def _trimmed(text: str, *, pairs: bool = True) -> str:
    """The text without what only surrounds it; what would be nothing at all stays."""
    start = text.strip()
    bare = start.strip(_EDGES)
    while (
        pairs
        and len(bare) > 2
        and bare[0] + bare[-1] in _PAIRS
        and not _closes_early(bare)
    ):
        bare = bare[1:-1].strip(_EDGES)
    return bare or start


def _closes_early(text: str) -> bool:
    """Whether the first bracket is closed before the end, as in `(a)(b)`."""
    opened = text[0]
    closed = text[-1]
    depth = 0
    if opened == closed:
        return opened in text.strip(opened)
    for place, char in enumerate(text):
        depth += (char == opened) - (char == closed)
        if depth == 0:
            return place < len(text) - 1
    return True
