r"""The normal form of an answer: one spelling for what differs only in typography.

docs/answers.md lists the rules. `normal_form` is idempotent, bounded and never raises.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

MAX_CHARS = 2_000  # a longer text is known by its hash only
ROUNDS = 8

SYMBOLS = (
    {
        "×": r"\cdot ",
        "·": r"\cdot ",
        "⋅": r"\cdot ",
        "∙": r"\cdot ",
        "∗": r"\cdot ",
        "÷": "/",
        "∕": "/",
        "√": r"\sqrt ",
        "π": r"\pi ",
        "∞": r"\infty ",
        "°": r"^{\circ}",
        "±": r"\pm ",
        "≤": r"\leq ",
        "≥": r"\geq ",
        "≠": r"\neq ",
        "≈": r"\approx ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "∈": r"\in ",
        "∅": r"\emptyset ",
        "θ": r"\theta ",
        "≡": r"\equiv ",
        "′": "'",
        "％": "%",
        "٪": "%",
        "٫": ".",
        "٬": "{,}",
        "…": r"\ldots ",
        "∶": ":",
    }
    | dict.fromkeys("−–—‒‐‑﹣", "-")
    | dict.fromkeys("£€¥₹¢", " ")
)
_SYNONYMS = {
    r"\frac ": "dfrac tfrac cfrac",
    r"\binom ": "dbinom tbinom",
    r"\leq ": "le leqslant",
    r"\geq ": "ge geqslant",
    r"\neq ": "ne",
    r"\cdot ": "times ast",
    r"\rightarrow ": "to",
    r"\emptyset ": "varnothing",
    r"\text ": "textbf textit textrm textnormal textsf mbox hbox mathrm mathup",
    r"\ldots ": "dots cdots",
    r"\pmod ": "mod bmod pod",
    "|": "vert lvert rvert",
    "<": "lt",
    ">": "gt",
    "/": "div",
    ",": "lor vee",
    ":": "colon",
    "'": "prime",
    "[": "lbrack",
    "]": "rbrack",
    r"\{": "lbrace",
    r"\}": "rbrace",
    " ": "quad qquad pounds euro",
    "": "boxed fbox left right displaystyle textstyle mathbf boldsymbol mathit mathsf"
    " limits big Big bigg Bigg bigl bigr Bigl Bigr",
}
COMMANDS = {
    name: text for text, names in _SYNONYMS.items() for name in names.split()
}
MAGNITUDES = {
    "dozen": "12",
    "hundred": "100",
    "thousand": "10^{3}",
    "million": "10^{6}",
    "billion": "10^{9}",
    "trillion": "10^{12}",
}
_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen
fourteen fifteen sixteen seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: n for n, word in enumerate(_SMALL.split())}
NUMBER_WORDS |= {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
UNIT_LETTERS = (
    "CFJKLNVWghlms"  # a single letter in a text is a unit only if among these
)
UNITS = """degree degrees deg ° \\circ|radian radians rad|mm millimeter millimeters|
cm centimeter centimeters centimetre centimetres|km kilometer kilometers kilometre
kilometres|m meter meters metre metres|kg kilogram kilograms|g gram grams|ft foot feet|
inch in inches|yd yard yards|mi mile miles|hour hours hr hrs h|min mins minute minutes|
sec second seconds s|day days|week weeks|month months|year years|gallon gallons|
liter L liters litre litres|dollar dollars USD \\$|cent cents ¢|pound pounds £ lb lbs|
euro euros EUR €|¥ yen|ounce ounces oz"""
"""Units that contradict each other, by their names; any other unit is ignored."""
NOT_UNITS = re.compile(
    r"""\b(?:a|am|and|are|at|base|bc|ad|cubed|east|factorial|false|from|half|halves|if|is
    |least|minus|mod|modulo|more|most|less|negative|no|none|north|not|only|or|over|plus|pm
    |remainder|solutions?|south|squared|than|th|st|nd|rd|then|to|true|under|unless|west
    |when|where|with|i|[xyz]+|thirds?
    |(?:thousand|hundred|ten|nin|eigh|seven|six|fif|four)ths?)\b""",
    re.VERBOSE,
)
_UNIT_WORDS = """(?:degrees|degree|radians|units?|square|cubic|cm|mm|km|kg|mph|ft|inches
    |inch|feet|foot|meters?|metres?|miles?|yards?|dollars?|cents?|pounds?|grams?|hours?
    |minutes?|seconds?|days?|weeks?|months?|years?|gallons?|liters?|litres?)"""
_UNIT_NAMES = {
    name: names.split()[0]
    for names in UNITS.split("|")
    for name in names.split()
}
_PLAIN_UNITS = "|".join(
    name
    for name in _UNIT_NAMES
    if name.isalpha() and name not in ("in", *UNIT_LETTERS)
)
_UNIT_NAME = re.compile(
    rf"""(?:(?:(sq)(?:uare|\.)?|(cu)(?:bic|\.)?)[ ~]?)?
    ((?<![A-Za-z\\])(?:{_PLAIN_UNITS})(?![A-Za-z])
    |(?:(?<=text\{{)|(?<=text\{{\ )|(?<=mathrm\{{)|(?<=mathrm\{{\ )|(?<=/))
     (?:[hsgLm]|in)(?=[ }}/^])
    |\\\$|\\circ(?![A-Za-z])|[°¢£€¥])
    (?:\ ?\}}?\ ?(?:\^\ ?\{{?\ ?([23])|([²³])))?""",
    re.VERBOSE,
)
_TRIGONOMETRY = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
_DEGREE = re.compile(
    r"\^(?:\{\s*\\circ\s*\}|\s*\\circ(?![A-Za-z])\s*)|\\degrees?(?![A-Za-z])\s*"
)
_TEXT = re.compile(r"\\text ?\{([^{}]*)\}")
_CONNECTIVE = re.compile(
    r""",?\s*(?:\\text\{\s*(?:,|,?\s*(?:and|or))\s*\}
    |(?<![\\A-Za-z{])(?:and|or)(?![A-Za-z]))\s*""",
    re.VERBOSE,
)
_OR = re.compile(
    r",?\s*(?:\\text\{\s*or\s*\}|(?<![\\A-Za-z{])or(?![A-Za-z]))\s*"
)
_AND = re.compile(r"\b(?:and|or)\b")
_RELATION = re.compile(r"[<>]|\\[lg]eq ")
_UNIT = re.compile(
    rf"""(?<=[\d)}}\]])\s*{_UNIT_WORDS}(?:\s*{_UNIT_WORDS})*
    (?:\^(?:\{{[23]\}}|[23]))?\s*(?=,|$)""",
    re.VERBOSE,
)
_THOUSANDS = re.compile(
    r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])"
    r"|(?<![\d.,] )(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d,]| \d)"
)
_PHRASE = re.compile(
    r"(?=.*[A-Za-z]{4})[A-Za-z][A-Za-z '-]*[A-Za-z]|(?i:yes|no|odd)"
)
_LETTERED = re.compile(r"[A-Z](?:(?:, ?|,? and )[A-Z])*")
_BRACKET = re.compile(r"\\[{}]|[()\[\]{}]")
_SCRIPTS = re.compile(r"[⁰¹²³⁴-⁹⁺⁻⁽⁾ⁿⁱ]+|[₀-₉₊₋₍₎]+")
_MODULO = re.compile(
    r"""\(\s*\\pmod\ ?(\w+)\s*\) | \\pmod\ ?(\w+)
    | \(?\s*\\text\{[\s(]*mod(?:ulo)?\s*\}\s*(\w+)\s*\)?
    | \\text\{[\s(]*mod(?:ulo)?\s+(\w+)[\s)]*\}
    | \(\s*mod(?:ulo)?\s+(\w+)\s*\) | (?<=\d)\s+mod(?:ulo)?\s+(\w+)""",
    re.VERBOSE,
)
_BASE = re.compile(
    r"""(?<=[0-9A-Z])\s*(?:\\text\{\s*base[\s-]*\}\s*(\d+)
    |\\text\{\s*base[\s-]*(\d+)\s*\}|\s+base[\s-]*(\d+))$""",
    re.VERBOSE,
)
_MEASURED = re.compile(
    r"\\text\{\s*([-+]?(?:\d[\d.,:/ ]*)?\d) ?((?<= )[A-Za-z]|[A-Za-z]{2}[^{}]*)\}"
)
_CHOICE = re.compile(
    r"\(([A-Z])\)\.?|\\text\{\s*\(?([A-Z])\)?\.?\s*\}|([A-Z])\."
)
_MAGNITUDE = re.compile(
    rf"""(?<=[\d}}])\s*(?:\\text\{{\s*({"|".join(MAGNITUDES)})(?:s?\s*\}}|(\s)\s*)
    |({"|".join(MAGNITUDES)})s?\b)""",
    re.VERBOSE,
)

_LETTERS = str.maketrans("0123456789", "ghijklmnop")
"""Digits of a hash could be read as a number; letters are not."""

_MARKUP = (
    (r"\\\\", "\3"),  # the end of a row
    (r",\\!\s*(?=\d{3})", "{,}"),
    (r"\\!", ""),
    (r"\\%", "%"),
    (r"(?<=\d)\{,\}(?=\d)", ""),
    (r"\{,\}", ","),
    (r"(?:\\[,;: ]|[~\s])+", " "),
    (r"\\not\s*=", r"\\neq "),
    (r"\.{3,}", r"\\ldots "),
    (r"\\?\$", " "),
    (r"\\[()\[\]]", ""),
    (r"\\(?:left|right)\s*\.", ""),
)
_MARKS = (
    (r'(?<=\d)"', "''"),
    (r"\^\s*(?:\{\s*('+)\s*\}|('+))", r"\1\2"),
    # A line over the digits that repeat, for `0.(3)`, `0.\dot{3}` and `0.333\ldots`.
    (r"(\.\d*)\\bar \{?(\d+)\}?", r"\1\\overline {\2}"),
    (r"\\dot \{?(\d)\}?(?:(\d*)\\dot \{?(\d)\}?)?", r"\\overline {\1\2\3}"),
    (r"(\.\d*)\((\d+)\)", r"\1\\overline {\2}"),
    (r"(?<!\d)(?=\.\\overline)", "0"),
    (r"(\.\d{0,20}?)(\d{1,9}?)\2\2+\s*\\ldots\s*$", r"\1\\overline {\2}"),
)
_TOKEN = r"\s*(\d|[A-Za-z]|\\pi(?![A-Za-z]))"
_ARGUMENTS = (
    (r"^(?:\\approx\s*|=\s*)+|[\s.,]+$", ""),
    (rf"(\\(?:frac|binom) ?){_TOKEN}(?=\s*[\d{{A-Za-z\\])", r"\1{\2}"),
    (rf"(\\(?:frac|binom) ?\{{[^{{}}]*\}}){_TOKEN}", r"\1{\2}"),
    (
        r"\\sqrt ?(\[\d+\])?(?:(\d)(?!\d)|([A-Za-z])|(\\pi)(?![A-Za-z]))",
        r"\\sqrt\1{\2\3\4}",
    ),
    (r"\\sqrt ?\(([^()]*)\)", r"\\sqrt{\1}"),
    (r"\(([0-9A-Z]+)\)\s*_", r"\1_"),
    (r"\^\s*(?:(-?\d+)|([A-Za-z])|(\\[a-z]+) )", r"^{\1\2\3}"),
    (r"(?<=\d)_\{\\text\{([a-z]+)\}\}", r"_{\1}"),
    (r"_\s*(?:(\d+)|([A-Za-z]))", r"_{\1\2}"),
)


def normal_form(text: str) -> str:
    """Return the normal form of an answer; a name made of its hash for a long text."""
    start = _ascii(text).strip()
    if len(start) > MAX_CHARS:
        digest = hashlib.sha256(
            start.encode("utf-8", "surrogatepass")
        ).hexdigest()
        return rf"\longtext{{{digest.translate(_LETTERS)}}}"
    return _rewrite_until_stable(start)


@lru_cache(1024)  # most attempts at a problem give the same answers
def _rewrite_until_stable(start: str) -> str:
    form = " ".join(start.split())
    for _ in range(ROUNDS):
        previous = form
        form = _rewrite(_ascii(form))
        if form == previous:
            return form
        if len(form) > 2 * MAX_CHARS:
            break
    return start


def unit(text: str) -> str:
    """Return the known units of measure that an answer states, by one name each."""
    found: set[str] = set()
    words = " ".join(text[:MAX_CHARS].split())
    for square, cubic, name, *powers in _UNIT_NAME.findall(words):
        power = "".join(powers).replace("²", "2").replace("³", "3")
        if square:
            power = "2"
        elif cubic:
            power = "3"
        found.add(_UNIT_NAMES[name] + power)
    return " ".join(sorted(found))


def depth(latex: str) -> int:
    """Return how deeply brackets and braces are nested."""
    level = 0
    deepest = 0
    for match in _BRACKET.finditer(latex):
        level += 1 if match[0][-1] in "([{" else -1
        deepest = max(deepest, level)
    return deepest


def _ascii(text: str) -> str:
    """Return a text in ASCII and LaTeX where Unicode offers several spellings."""
    if text.isascii() and text.isprintable():
        return text
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"√\s*(\d+)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?:\d[\u0304\u0305\u0307])+", _overlined, text)
    text = _SCRIPTS.sub(_script, text)
    return "".join(map(_ascii_character, text))


def _overlined(match: re.Match[str]) -> str:
    return rf"\overline{{{match[0][::2]}}}"


def _script(match: re.Match[str]) -> str:
    """Return a run of raised or lowered characters as one exponent or index."""
    plain = unicodedata.normalize("NFKC", match[0]).replace("−", "-")
    mark = "_" if "₀" <= match[0][0] <= "₎" else "^"
    return f"{mark}{{{plain}}}"


def _ascii_character(char: str) -> str:
    if char in SYMBOLS:
        return SYMBOLS[char]
    if char.isspace():
        return " "
    selects_variant = "\ufe00" <= char <= "\ufe0f"
    if selects_variant or unicodedata.category(char) in (
        "Cf",
        "Cc",
        "Cs",
        "Cn",
    ):
        return ""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    plain = unicodedata.normalize("NFKC", char)
    above, slash, below = plain.partition("\u2044")
    if above and below:
        return rf"\frac{{{above}}}{{{below}}}"
    return f"{above}/" if slash else plain


def _apply(rules: tuple[tuple[str, str], ...], text: str) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def _rewrite(text: str) -> str:
    """Apply every rule once; `normal_form` repeats this until nothing changes."""
    if r"\begin" not in text:
        # Outside a matrix, a doubled backslash is a slip of escaping.
        text = re.sub(r"\\\\(?=[A-Za-z])", r"\\", text)
    text = _apply(_MARKUP, text)
    text = re.sub(r"\\([A-Za-z]+)\s*", _command, text)
    degree = r"^{\circ }" if _TRIGONOMETRY.search(text) else " "
    text = _apply(_MARKS, text)
    text = _DEGREE.sub(lambda _: degree, text).replace("*", r"\cdot ")
    text = _separators(_words(" ".join(text.split())))
    text = _apply(_ARGUMENTS, text)
    text = re.sub(r"(?<=\d)_\{([a-z]+)\}", _base, text)
    return _unbraced(_without_spaces(text).replace("\3", r"\\"))


def _command(match: re.Match[str]) -> str:
    return COMMANDS.get(match[1], rf"\{match[1]} ")


def _base(match: re.Match[str]) -> str:
    """Return a base that may be spelled out."""
    number = NUMBER_WORDS.get(match[1], 0)
    return f"_{{{number}}}" if 2 <= number <= 10 else match[0]


def balanced(
    text: str, opening: tuple[str, ...], closing: tuple[str, ...]
) -> bool:
    """Whether every bracket is closed within the text, and every closed one opened."""
    level = 0
    for match in re.finditer(r"\\.|[()\[\]{}]", text, re.DOTALL):
        if match[0] in opening:
            level += 1
        elif match[0] in closing:
            level -= 1
        if level < 0:
            return False
    return level == 0


def _unbraced(text: str) -> str:
    """Return a text without braces around the whole."""
    braced = text[:1] == "{" and text[-1:] == "}" and not text.endswith(r"\}")
    if braced and balanced(text[1:-1], ("{",), ("}",)):
        return text[1:-1].strip()
    return text


def _words(text: str) -> str:
    """Rewrite choice letters, phrases, units and words that count."""
    text = text.replace(r"\text {", r"\text{")
    choice = _CHOICE.fullmatch(text)
    if choice:
        return _group(choice)
    text = (
        _MEASURED.sub(_value_and_unit, text)
        if _MEASURED.fullmatch(text)
        else text
    )
    if _PHRASE.fullmatch(text):
        return rf"\text{{{text}}}"
    if re.search(r"\d", text):
        percent = r"\s*(?:\\text\{\s*)?\bpercent(?:age)?\b\s*\}?"
        text = re.sub(percent, "%", text)
    text = _MAGNITUDE.sub(_magnitude, text)
    text = _BASE.sub(lambda match: f"_{{{_group(match)}}}", text)
    text = _MODULO.sub(lambda match: rf"\pmod{{{_group(match)}}}", text)
    if _RELATION.search(text):
        text = _OR.sub(r"\\cup ", text)
    elif re.search(r"[\d\\]", text):
        text = re.sub(
            r"\\text\{\s*(\w+)\s+(?:and|or)\s*\}", r"\\text{\1}, ", text
        )
        text = _CONNECTIVE.sub(", ", text)
    text = _UNIT.sub("", text)
    return _TEXT.sub(_text_group, text)


def _group(match: re.Match[str]) -> str:
    """Return the one group that matched."""
    return match[match.lastindex or 0]


def _value_and_unit(match: re.Match[str]) -> str:
    return rf"{match[1]}\text{{ {match[2]}}}"


def _magnitude(match: re.Match[str]) -> str:
    opened = r"\text{" if match[2] else ""
    return rf"\cdot {MAGNITUDES[match[1] or match[3]]} {opened}"


def _text_group(match: re.Match[str]) -> str:
    """Drop a unit; keep any other text with its spaces tidied."""
    content = " ".join(match[1].split())
    before = match.string[: match.start()].rstrip()
    after = match.string[match.end() :].strip()
    if _follows_value(before, after) and (not content or _is_unit(content)):
        return "\1"  # `_separators` drops it together with a power behind it
    if _LETTERED.fullmatch(content):
        return re.sub(r",? and ", ", ", content)
    if not content:
        return match[1] if before + after else match[0]
    words = re.search(r"[^\W\d_]{2}|[^\x20-\x7e]", _AND.sub("", content))
    if re.search(r"\w", content) and not words:
        return match[1]  # mathematics that was set as text
    return rf"\text{{{content}}}"


def _follows_value(before: str, after: str) -> bool:
    """Whether a text ends an answer, or one item of a list, behind a value."""
    if not re.search(r"[^\W_]$|[)}\]%]$", before):
        return False
    ends = re.fullmatch(r"(?:\^ ?(?:\{[23]\}|[23]))?(?:,.*)?", after, re.DOTALL)
    return ends is not None


def _is_unit(content: str) -> bool:
    plain = content.lower().replace(".", "")
    if len(plain) < 2 and content not in UNIT_LETTERS:
        return False
    named = re.fullmatch(r"[A-Za-z ./^-]{0,40}", content)
    return named is not None and not NOT_UNITS.search(plain)


def _separators(text: str) -> str:
    """Write commas that separate as `, `; drop those that group digits."""
    text = re.sub(r"\x01\s*(?:\^ ?(?:\{[23]\}|[23]))?", "", text).replace(
        ";", ","
    )
    text = re.sub(r"(?<=\d)\s+(?=\d)", " ", text)
    pieces = re.split(r"(\\[{}]|[()\[\]])", text)
    level = 0
    for index, piece in enumerate(pieces):
        if piece in (r"\{", "(", "["):
            level += 1
        elif index % 2:
            level = max(0, level - 1)
        elif level == 0:
            pieces[index] = _THOUSANDS.sub(_ungrouped, piece)
    return re.sub(r"\s*,(?:\s*,)*\s*", ", ", "".join(pieces))


def _ungrouped(match: re.Match[str]) -> str:
    return re.sub("[, ]", "", match[0])


def _without_spaces(text: str) -> str:
    r"""Keep only the spaces with a meaning.

    They stand after a comma, within words, in `3 1/2` and in `\pi r`.
    """
    parts = re.split(r"(\\text\{[^{}]*\})", text)
    for index in range(0, len(parts), 2):
        part = re.sub(r"\s+", " ", parts[index])
        part = re.sub(r"(?<=\d) (?=\d)|(?<=,) ", "\2", part)
        part = re.sub(r"(\\[A-Za-z]+) (?=[A-Za-z])", "\\1\2", part)
        parts[index] = part.replace(" ", "").replace("\2", " ")
    return "".join(parts).strip()
