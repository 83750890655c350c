r"""Text as the screen of cards reads it: normalisation, content words, n-grams, names, and phrases no card may hold.

Normalised text is ASCII and LaTeX without typography, numbers above twelve in digits: `13{,}000`, `½`, `5 x 4`,
`90^\circ`, Unicode digits, invisible characters and spelled numbers are all seen through.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from kace.answers.normalize import normal_form

SMALL = 12  # whole numbers up to this occur in any formula and in any small example; spelled out, they stay words
LONG_NGRAMS = ((8, 4), (12, 2))
"""That many words in a row, numbers aside, with so many content words, are a copy; with fewer a phrase of the trade."""
SHORT_NGRAM = 5  # so are fewer words, where they hold a salient number or a name

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: value for value, word in enumerate(f"{_ONES} seventeen eighteen nineteen".split())}
NUMBER_WORDS |= {word: 10 * ten for ten, word in enumerate(_TENS.split(), 2)}
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_NUMBER_WORD = "|".join((*NUMBER_WORDS, *SCALES))
_SPELLED = re.compile(rf"\b(?:{_NUMBER_WORD})(?:(?:\s+and\s+|[\s-]+)(?:{_NUMBER_WORD}))*\b(?!')", re.IGNORECASE)

_TYPOGRAPHY: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<=\d)(?:\{,\}|,\\!|\\,)(?=\d{3}(?!\d))"), ""),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))|\\degrees?(?![A-Za-z])"), " "),
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![A-Za-z])|\\[!,;:]"), " "),
    (re.compile(r"\\(?:text|mathrm|textbf|mbox|operatorname)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\\?\$|\\[()\[\]]|[*_]{2}|~"), " "),
    (re.compile(r"(?<=\d)\s*[xX]\s*(?=\d)"), " * "),
    (re.compile(r"(?<=\d) (?:m|s|h|g|l)(?![\w^(])(?!\s*[-+*/=])"), " "),  # a unit, not a factor
    (re.compile(r"//"), "/"),
    (re.compile(r"(?<![\w.-])\d+(?:-\d+){2,}(?![\w.-])"), lambda match: match[0].replace("-", ", ")),  # 30-60-90
)
_COMMON = """
    about above after again also always another answer because been before being below between both called cannot
    compute contain could does done down each either equal ever every exactly expressed false find first following
    form from give given gives have having hence here integer into just kind last least less like many more most
    must need next note number once only other otherwise over part positive possible problem question rather same
    second should show since some such suppose than that their them then there these they thing third this those
    three thus together total true twice under until upon using value very want what when where whether which while
    whole whose will with within without would write your
"""
_STOP = frozenset(_COMMON.split())
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+(?:,\d{3})*(?:\.\d+)?")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_NAME_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_CAPITALISED = re.compile(r"\b[A-Z][a-z]{2,}\b")

# Capitalised words that belong to mathematics, the calendar or measures, and to no single problem.
_KNOWN = """
    Abel Apollonius April Archimedean Archimedes Arithmetico August Bayes Bernoulli Bezout Binet Bonferroni Boolean
    Brahmagupta Brocard Burnside Cardano Carmichael Cartesian Cassini Catalan Cauchy Cayley Celsius Ceva Chebyshev
    Chinese Clairaut Cramer December Descartes Diophantine Diophantus Dirichlet Egyptian Eisenstein Engel English
    Eratosthenes Euclid Euclidean Euler Eulerian Fahrenheit February Fermat Ferrers Feuerbach Fibonacci Friday
    Frobenius Gauss Gaussian Gergonne Greek Hall Hamilton Hamiltonian Hankel Hermite Heron Hilbert Holder Horner
    Jacobi January Jensen Josephus July June Kelvin Kronecker Lagrange Laplace Latin Legendre Leibniz Liouville
    Lucas Maclaurin March Markov Menelaus Mersenne Miquel Mobius Monday Morley Nagel Napoleon Newton November
    October Pappus Pascal Pell Pick Platonic Poisson Pollard Ptolemy Pythagoras Pythagorean Ramsey Riemann Rolle
    Roman Rouche Saturday Schur Schwarz September Simon Simson Snell Sophie Stewart Stirling Sturm Sunday Taylor
    Thales Thursday Titu Tuesday Turan Useful Vandermonde Varignon Venn Vieta Viviani Wallis Wednesday Weierstrass
    Wilson Zeckendorf
"""
_KNOWN_NAMES = frozenset(_KNOWN.split())

_THOUSAND = r"(?:1[,.\s]?000|10\s*\^\s*\{?\s*3\s*\}?)(?!\d)"
_MUST_BE = r"(?:is|are|must be|will be|should be)"
# In capitals these are tests; `math` in small letters is a subject, and three letters may name an angle.
_TESTS = (
    r"\b(?:AIME|USAJ?MO|HMMT|MATHCOUNTS|PUMaC|MATH|GSM-?8[Kk]|OlymMATH|ARML)\b",
    r"(?<!angle )(?<![${])\b(?:AMC|IMO)\b(?!\$)",
)
_BENCHMARK = (
    r"\b(?:aime|amc ?(?:8|10|12)|putnam|olymmath|gsm-?8k|math-?(?:500|hard)|mathcounts)\b",
    r"\b(?:olympiads?|benchmarks?|leaderboards?)\b",
    r"(?<!round-robin )(?<!round robin )(?<!knockout )(?<!knock-out )\bcompetitions?\b",
    r"\b(?:math\w*|this|these|the) contests?\b|\bcontest[- ](?:math|problems?|questions?|style|level|answers?)",
    r"\b(?:training|test|validation|evaluation|eval) (?:set|split|data|problems?|questions?|examples?|items?)\b",
    r"\b(?:this|these|our) (?:data ?sets?|corpus|problem sets?|exams?)\b",
    r"\bdata ?set'?s? (?:answers?|problems?|questions?)",
    r"\b(?:gold|reference|expected|ground[- ]truth) (?:answers?|labels?)\b",
    r"\bgrad(?:er|ing script)\b|\banswer key\b",
    rf"\\?[pb]?mod(?:ulo)?\s*\{{?\(?\$?\s*{_THOUSAND}|\bremainder\b[^.\n]{{0,60}} divided by \$?{_THOUSAND}",
    r"\b0{1,3}\s*(?:to|and|-|–|through|\\le\w*\s*\w+\s*\\le\w*|<=?\s*\w+\s*<=?|\.\.+|\\ldots)\s*999\b",
    r"\b(?:three|3)-digit (?:integer )?answers?\b",
    rf"\banswers? {_MUST_BE} (?:always|usually|typically|often|guaranteed|restricted)\b",
    rf"\banswers? {_MUST_BE} (?:an? )?(?:non-?negative |positive |three-digit )*(?:integers?|whole numbers?)"
    r" (?:from|between|in the range|under|below|up to|less)",
)
_ORDERS = (
    r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:instructions?|prompts?|cards?|previous|system)\b",
    r"\b(?:ignore|disregard|forget|override) (?:all |any |the )?(?:other |above |earlier )?rules?\b",
    r"\b(?:system prompt|you are now|new instructions?|as an ai|(?:admit|approve|accept) this card)\b",
    r"\balways (?:answer|output|reply|respond|box)\b[^.\n]{0,20}\d",
)
_TALK = "it speaks of {!r}, which is about tests and not about mathematics"
_BANNED = (
    ("benchmark_talk", re.compile("|".join(_TESTS)), _TALK),
    ("benchmark_talk", re.compile("|".join(_BENCHMARK), re.IGNORECASE), _TALK),
    ("orders", re.compile("|".join(_ORDERS), re.IGNORECASE), "it orders its reader about: {!r}"),
)
_EXHORTATIONS = (
    r"\b(?:be|stay|remain) (?:very |extra |more )?"
    r"(?:careful|cautious|attentive|alert|thorough|precise|patient|systematic|vigilant)\b",
    r"\bthink (?:step[- ]by[- ]step|carefully|hard(?:er)?|clearly|twice|logically|again)\b|\bstep[- ]by[- ]step\b",
    r"\b(?:double|triple)[- ]?check\b(?: (?:your|the|all|every|each)\b)?(?: (?:work|answers?|results?|steps?)\b)?",
    r"\b(?:re-?)?check your (?:work|answers?|steps?|calculations?|reasoning|results?)\b",
    r"\b(?:re-?)?read the (?:problem|question|text|statement)(?: \w+)? (?:carefully|closely|twice|again|slowly)\b",
    r"\bread (?:carefully|closely|twice|slowly)\b",
    r"\b(?:try (?:harder|again|your best)|take your time|pay (?:close )?attention)\b",
    r"\b(?:avoid|watch (?:out )?for|beware of) (?:\w+ )?(?:mistakes|errors|slips|traps|pitfalls)\b",
    r"\bdo(?:n't| not) (?:rush|guess|panic|give up)\b",
    r"\bmake sure (?:that )?(?:you|your|the answer|everything)\b",
    r"\b(?:work|reason|solve|proceed) (?:\w+ )?(?:carefully|methodically|slowly)\b",
    r"\b(?:(?:remember|important) (?:that|to)|use common sense|understand (?:the )?(?:problem|question))\b",
)
_EXHORTATION = re.compile("|".join(_EXHORTATIONS), re.IGNORECASE)
_FORMULA = re.compile(r"[=<>^≤≥≠±√∑∏]|\\[A-Za-z]{2,}|\d|\b[a-zA-Z]\s*[-+*/]\s*[a-zA-Z\d]\b|[a-z]\([a-z]|\b[a-zA-Z]_\w")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")

_FILLER = """
    accurate accurately answer approach arithmetic attempt attention best calculation careful carefully check
    closely common computation correct correctly detail error everything final good help helpful important
    information keep know logic logical look make mathematic matter method mistake organize proceed process properly
    reach reason reasoning remember result right simple slowly solution solve solving stay step sure systematic take
    task think thorough thoroughly time understand verify work working wrong
"""


def visible(text: str) -> str:
    """The text without characters that nobody sees, and with one form of each letter."""
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")


def normalised(text: str) -> str:
    """The text in ASCII and LaTeX, without typography, with numbers above ten in digits."""
    text = text if text.isascii() else "".join(char if char.isascii() else _spelling(char) for char in text)
    for pattern, new in _TYPOGRAPHY:
        text = pattern.sub(new, text)
    return _SPELLED.sub(_digits, text)


@lru_cache(maxsize=4_096)
def _spelling(char: str) -> str:
    """How ASCII and LaTeX write a character; a dash between clauses is none of their signs."""
    form = " ; " if char in "—―" else normal_form(char)
    return f"{form} " if form.startswith("\\") and form[-1].isalpha() else form


def _digits(match: re.Match[str]) -> str:
    total = current = 0
    for word in re.findall(r"[a-z]+", match[0].lower()):
        scale = SCALES.get(word, 0)
        current = max(1, current) * scale if scale else current + NUMBER_WORDS.get(word, 0)
        if scale > 100:
            total, current = total + current, 0
    return str(total + current) if total + current > SMALL else match[0]


def _tokens(text: str) -> list[str]:
    """The words and numbers of a text in lower case, LaTeX commands aside."""
    return [token.lower() for token in _TOKEN.findall(_COMMAND.sub(" ", text))]


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _has_content(token: str) -> bool:
    return len(token) > 3 and not token[0].isdigit() and _stem(token) not in _STOP


def content_words(text: str) -> frozenset[str]:
    """The words that say what a text is about, without plural endings."""
    return frozenset(_stem(token) for token in _tokens(text) if _has_content(token))


def template_words(text: str) -> frozenset[str]:
    """The content words without numbers, spelled ones too: what problems of one wording have in common."""
    return content_words(_SPELLED.sub(" ", visible(text)))


def ngrams(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """Every run of that many words."""
    return (tuple(words[start : start + length]) for start in range(len(words) - length + 1))


def long_ngrams(text: str) -> Iterator[str]:
    """The n-grams that are long enough for a copy, all numbers alike."""
    words = ["#" if token[0].isdigit() else token for token in _tokens(text)]
    for length, content in LONG_NGRAMS:
        yield from (" ".join(run) for run in ngrams(words, length) if sum(map(_has_content, run)) >= content)


def short_ngrams(text: str) -> Iterator[tuple[str, ...]]:
    """The n-grams of `SHORT_NGRAM` words with a number and some content, numbers as they are."""
    for run in ngrams(_tokens(text), SHORT_NGRAM):
        if any(word[0].isdigit() for word in run) and any(map(_has_content, run)):
            yield run


def names(text: str, *, inside: bool = False) -> tuple[str, ...]:
    """Every capitalised word, or those inside sentences, each once, but for the names of mathematics."""
    found = (_NAME_INSIDE if inside else _CAPITALISED).findall(text)
    return tuple(dict.fromkeys(word for word in found if word not in _KNOWN_NAMES))


def banned_phrases(text: str) -> Iterator[tuple[str, str]]:
    """The rules that words of a text break, with reasons: talk of tests and of their answers, orders to the reader."""
    for rule, pattern, reason in _BANNED:
        if found := pattern.search(text):
            yield rule, reason.format(found.group().strip())


def is_vague(body: str) -> bool:
    """Whether no sentence of a body has a formula, or two words about something besides exhortations."""
    for sentence in _SENTENCE.split(body):
        rest = _EXHORTATION.sub(" ", sentence)
        if _FORMULA.search(rest) or len(content_words(rest).difference(_FILLER.split())) >= 2:
            return False
    return True
