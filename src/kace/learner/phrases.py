"""Phrases that make a card useless or harmful: talk about tests, orders to the reader, exhortation without a rule."""

from __future__ import annotations

import re

from kace.learner.wording import content_words


def _any_of(*patterns: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile("|".join(patterns), flags)


_THOUSAND = r"(?:1[,.\s]?000|10\s*\^\s*\{?\s*3\s*\}?)(?!\d)"
_MUST_BE = r"(?:is|are|must be|will be|should be)"
# In capitals these are tests; `math` in small letters is a subject, and three letters may name an angle.
_TESTS = _any_of(
    r"\b(?:AIME|USAJ?MO|HMMT|MATHCOUNTS|PUMaC|MATH|GSM-?8[Kk]|OlymMATH|ARML)\b",
    r"(?<!angle )(?<![${])\b(?:AMC|IMO)\b(?!\$)",
    flags=re.NOFLAG,
)
_BENCHMARK = _any_of(
    r"\b(?:aime|amc ?(?:8|10|12)|putnam|olymmath|gsm-?8k|math-?(?:500|hard)|mathcounts)\b",
    r"\bolympiads?\b",
    r"\bbenchmarks?\b",
    r"\bleaderboards?\b",
    r"(?<!round-robin )(?<!round robin )(?<!knockout )(?<!knock-out )\bcompetitions?\b",
    r"\b(?:math\w*|this|these|the) contests?\b",
    r"\bcontest[- ](?:math|problems?|questions?|style|level|answers?)",
    r"\b(?:training|test|validation|evaluation|eval) (?:set|split|data|problems?|questions?|examples?|items?)\b",
    r"\b(?:this|these|our) (?:data ?sets?|corpus|problem sets?|exams?)\b",
    r"\bdata ?set'?s? (?:answers?|problems?|questions?)",
    r"\b(?:gold|reference|expected|ground[- ]truth) (?:answers?|labels?)\b",
    r"\bgrad(?:er|ing script)\b",
    r"\banswer key\b",
    rf"\\?[pb]?mod(?:ulo)?\s*\{{?\(?\$?\s*{_THOUSAND}",
    rf"\bremainder\b[^.\n]{{0,60}} divided by \$?{_THOUSAND}",
    r"\b0{1,3}\s*(?:to|and|-|–|through|\\le\w*\s*\w+\s*\\le\w*|<=?\s*\w+\s*<=?|\.\.+|\\ldots)\s*999\b",
    r"\b(?:three|3)-digit (?:integer )?answers?\b",
    rf"\banswers? {_MUST_BE} (?:always|usually|typically|often|guaranteed|restricted)\b",
    rf"\banswers? {_MUST_BE} (?:an? )?(?:non-?negative |positive |three-digit )*(?:integers?|whole numbers?)"
    r" (?:from|between|in the range|under|below|up to|less)",
)
_ORDERS = _any_of(
    r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:instructions?|prompts?|cards?|previous|system)\b",
    r"\b(?:ignore|disregard|forget|override) (?:all |any |the )?(?:other |above |earlier )?rules?\b",
    r"\bsystem prompt\b",
    r"\byou are now\b",
    r"\bnew instructions?\b",
    r"\bas an ai\b",
    r"\b(?:admit|approve|accept) this card\b",
    r"\balways (?:answer|output|reply|respond|box)\b[^.\n]{0,20}\d",
)
_EXHORTATION = _any_of(
    r"\b(?:be|stay|remain) (?:very |extra |more )?"
    r"(?:careful|cautious|attentive|alert|thorough|precise|patient|systematic|vigilant)\b",
    r"\bthink (?:step[- ]by[- ]step|carefully|hard(?:er)?|clearly|twice|logically|again)\b",
    r"\bstep[- ]by[- ]step\b",
    r"\b(?:double|triple)[- ]?check\b(?: (?:your|the|all|every|each)\b)?(?: (?:work|answers?|results?|steps?)\b)?",
    r"\b(?:re-?)?check your (?:work|answers?|steps?|calculations?|reasoning|results?)\b",
    r"\b(?:re-?)?read the (?:problem|question|text|statement)(?: \w+)? (?:carefully|closely|twice|again|slowly)\b",
    r"\bread (?:carefully|closely|twice|slowly)\b",
    r"\btry (?:harder|again|your best)\b",
    r"\btake your time\b",
    r"\bpay (?:close )?attention\b",
    r"\b(?:avoid|watch (?:out )?for|beware of) (?:\w+ )?(?:mistakes|errors|slips|traps|pitfalls)\b",
    r"\bdo(?:n't| not) (?:rush|guess|panic|give up)\b",
    r"\bmake sure (?:that )?(?:you|your|the answer|everything)\b",
    r"\b(?:work|reason|solve|proceed) (?:\w+ )?(?:carefully|methodically|slowly)\b",
    r"\b(?:remember|important) (?:that|to)\b",
    r"\buse common sense\b",
    r"\bunderstand (?:the )?(?:problem|question)\b",
)
_FORMULA = re.compile(r"[=<>^≤≥≠±√∑∏]|\\[A-Za-z]{2,}|\d|\b[a-zA-Z]\s*[-+*/]\s*[a-zA-Z\d]\b|[a-z]\([a-z]|\b[a-zA-Z]_\w")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")

_OBJECTS_WORDS = """
    abscissa absolute addend altitude angle apex arc area argument arrangement asymptote average axis base binomial
    bisector boundary bracket case center centre centroid chord circle circumcircle circumradius coefficient
    combination complement condition congruence conjugate constant coordinate cosine count cube cycle cylinder
    decimal degree denominator derangement derivative determinant diagonal diagram diameter difference digit
    discriminant distance divisibility divisor domain edge ellipse endpoint equality equation exponent expression
    factor factorial fraction function graph height hyperbola hypotenuse identity incircle index inequality inradius
    intersection interval inverse lattice length limit line locus logarithm matrix maximum mean median midpoint
    minimum minuend modulus multiple numerator orthocenter outcome overlap pair parabola parallel parameter parity
    partition percent percentage perimeter period permutation perpendicular plane point polygon polynomial prime
    probability product progression proportion pyramid quadratic quadrilateral quantity quotient radian radical
    radius range rate ratio rectangle recurrence reflection remainder residue root rotation row sector segment
    sequence series set side sign similarity sine slope sphere square subset substitution sum surface symmetry
    tangent term triangle tuple union unit unknown variable vector vertex vertices volume weight width zero
"""
_OBJECTS = frozenset(_OBJECTS_WORDS.split())
_FILLER_WORDS = """
    accurate accurately answer approach arithmetic attempt attention best calculation careful carefully check
    closely common computation correct correctly detail error everything final good help helpful important
    information keep know logic logical look make mathematic matter method mistake organize proceed process properly
    reach reason reasoning remember result right simple slowly solution solve solving stay step sure systematic take
    task think thorough thoroughly time understand verify work working wrong
"""
_FILLER = frozenset(_FILLER_WORDS.split())


def benchmark_talk(text: str) -> str:
    """The first words about tests, their answer ranges or their training data; empty where there are none."""
    found = _TESTS.search(text) or _BENCHMARK.search(text)
    return found.group().strip() if found else ""


def orders(text: str) -> str:
    """The first words that order the reader about instead of telling it mathematics; empty where there are none."""
    found = _ORDERS.search(text)
    return found.group().strip() if found else ""


def is_vague(body: str) -> bool:
    """Whether no sentence of a body says anything that could be done or computed."""
    return not any(map(_is_concrete, _SENTENCE.split(body)))


def _is_concrete(sentence: str) -> bool:
    """Whether a sentence holds a formula, or enough words about something.

    Two words are enough; three where an exhortation was cut out and none of them is an object of mathematics.
    """
    rest, exhortations = _EXHORTATION.subn(" ", sentence)
    if _FORMULA.search(rest):
        return True
    words = content_words(rest) - _FILLER
    return len(words) >= (3 if exhortations and words.isdisjoint(_OBJECTS) else 2)
