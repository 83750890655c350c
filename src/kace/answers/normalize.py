r"""The normal form of a written answer: one spelling for what is only typography. docs/answers.md says what it decides.

`normal_form` is idempotent, bounded and never raises.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

MAX_CHARS = 2_000  # longer texts are known by their hash only
ROUNDS = 8

SYMBOLS = {
    "−": "-", "–": "-", "—": "-", "‒": "-", "‐": "-", "‑": "-", "﹣": "-",
    "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "∗": r"\cdot ", "÷": "/", "∕": "/",
    "√": r"\sqrt ", "π": r"\pi ", "∞": r"\infty ", "°": r"^{\circ}", "±": r"\pm ", "≤": r"\leq ", "≥": r"\geq ",
    "≠": r"\neq ", "≈": r"\approx ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ", "θ": r"\theta ",
    "′": "'", "％": "%", "٪": "%", "٫": ".", "٬": "{,}", "…": r"\ldots ", "∶": ":", "≡": r"\equiv ",
    "£": " ", "€": " ", "¥": " ", "₹": " ", "¢": " ",
}  # fmt: skip
SYNONYMS = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom", "le": "leq", "ge": "geq",
    "leqslant": "leq", "geqslant": "geq", "ne": "neq", "times": "cdot", "ast": "cdot", "to": "rightarrow",
    "varnothing": "emptyset", "textbf": "text", "textit": "text", "textrm": "text", "textnormal": "text",
    "mbox": "text", "hbox": "text", "mathrm": "text", "textsf": "text", "dots": "ldots", "cdots": "ldots",
    "lvert": "vert", "rvert": "vert", "boxed": "", "fbox": "", "left": "", "right": "", "displaystyle": "",
    "textstyle": "", "mathbf": "", "boldsymbol": "", "mathit": "", "mathsf": "", "limits": "", "big": "", "Big": "",
    "bigg": "", "Bigg": "", "bigl": "", "bigr": "", "Bigl": "", "Bigr": "", "quad": " ", "qquad": " ",
    "pounds": " ", "euro": " ", "mod": "pmod", "bmod": "pmod", "pod": "pmod", "prime": "'", "mathup": "text",
}  # fmt: skip
PLAIN = {"lt": "<", "gt": ">", "div": "/", "lbrace": r"\{", "rbrace": r"\}", "lbrack": "[", "rbrack": "]", "vert": "|",
         "lor": ",", "vee": ",", "colon": ":", "'": "'"}  # fmt: skip
MAGNITUDES = {"dozen": "12", "hundred": "100", "thousand": "10^{3}", "million": "10^{6}", "billion": "10^{9}",
              "trillion": "10^{12}"}  # fmt: skip
UNIT_LETTERS = "CFJKLNVWghlms"  # one letter in a text behind a value is a unit only if it is one of these
_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: n for n, word in enumerate(_SMALL.split())}
NUMBER_WORDS |= {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
BASES = {word: n for word, n in NUMBER_WORDS.items() if 2 <= n <= 10}
UNITS = """degree degrees deg ° \\circ|radian radians rad|cm centimeter centimeters centimetre centimetres|
mm millimeter millimeters|km kilometer kilometers kilometre kilometres|m meter meters metre metres|
kg kilogram kilograms|g gram grams|ft foot feet|inch in inches|yd yard yards|mi mile miles|
hour hours hr hrs h|min mins minute minutes|sec second seconds s|day days|week weeks|month months|year years|
gallon gallons|liter L liters litre litres|
dollar dollars USD \\$|cent cents ¢|pound pounds £ lb lbs|euro euros EUR €|¥ yen|ounce ounces oz"""
"""Units that contradict each other, by their names; any other unit says nothing."""
NOT_UNITS = re.compile(
    r"\b(?:a|am|and|are|at|base|bc|ad|cubed|east|factorial|false|from|half|halves|if|is|least|minus|mod|modulo|more|most|"
    r"less|negative|no|none|north|not|only|or|over|plus|pm|remainder|solutions?|south|squared|than|th|st|nd|rd|then|to|"
    r"true|under|unless|west|when|where|with|i|[xyz]+|(?:thousand|hundred|ten|nin|eigh|seven|six|fif|four)ths?|thirds?)\b"
)
UNIT_WORDS = (
    "degrees|degree|radians|units?|square|cubic|cm|mm|km|kg|mph|ft|inches|inch|feet|foot|meters?|metres?|miles?|yards?|"
    "dollars?|cents?|pounds?|grams?|hours?|minutes?|seconds?|days?|weeks?|months?|years?|gallons?|liters?|litres?"
)

_UNIT_NAMES = {
    name: names.split()[0] for names in UNITS.split("|") for name in names.split()
}
_UNIT_WORD = "|".join(
    name for name in _UNIT_NAMES if name.isalpha() and name not in ("in", *UNIT_LETTERS)
)
_UNIT_NAME = re.compile(
    rf"(?:(?:(sq)(?:uare|\.)?|(cu)(?:bic|\.)?)[ ~]?)?((?<![A-Za-z\\])(?:{_UNIT_WORD})(?![A-Za-z])|"
    r"(?:(?<=text\{)|(?<=text\{ )|(?<=mathrm\{)|(?<=mathrm\{ )|(?<=/))(?:[hsgLm]|in)(?=[ }/^])|"
    r"\\\$|\\circ(?![A-Za-z])|[°¢£€¥])(?: ?\}? ?(?:\^ ?\{? ?([23])|([²³])))?"
)
_DEGREE = re.compile(
    r"\^(?:\{\s*\\circ\s*\}|\s*\\circ(?![A-Za-z])\s*)|\\degrees?(?![A-Za-z])\s*"
)
_TRIGONOMETRY = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
_TEXT = re.compile(r"\\text ?\{([^{}]*)\}")
_CONNECTIVE = re.compile(
    r",?\s*(?:\\text\{\s*(?:,|,?\s*(?:and|or))\s*\}|(?<![\\A-Za-z{])(?:and|or)(?![A-Za-z]))\s*"
)
_OR = re.compile(r",?\s*(?:\\text\{\s*or\s*\}|(?<![\\A-Za-z{])or(?![A-Za-z]))\s*")
_AND = re.compile(r"\b(?:and|or)\b")
_RELATION = re.compile(r"[<>]|\\[lg]eq ")
_UNIT = re.compile(
    rf"(?<=[\d)}}\]])\s*(?:{UNIT_WORDS})(?:\s*(?:{UNIT_WORDS}))*(?:\^(?:\{{[23]\}}|[23]))?\s*(?=,|$)"
)
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,])")
_SPACED = re.compile(r"(?<![\d.,] )(?<![\d.,])(\d{1,3})((?: \d{3})+)(?![\d,]| \d)")
_PHRASE = re.compile(r"(?=.*[A-Za-z]{4})[A-Za-z][A-Za-z '-]*[A-Za-z]|(?i:yes|no|odd)")
_LETTERED = re.compile(r"[A-Z](?:(?:, ?|,? and )[A-Z])*")
_BRACKET = re.compile(r"\\[{}]|[()\[\]{}]")
_SCRIPTS = re.compile(r"[⁰¹²³⁴-⁹⁺⁻⁽⁾ⁿⁱ]+|[₀-₉₊₋₍₎]+")
_MODULO = re.compile(
    r"\(\s*\\pmod ?(\w+)\s*\)|\\pmod ?(\w+)|\(?\s*\\text\{[\s(]*mod(?:ulo)?\s*\}\s*(\w+)\s*\)?|"
    r"\\text\{[\s(]*mod(?:ulo)?\s+(\w+)[\s)]*\}|\(\s*mod(?:ulo)?\s+(\w+)\s*\)|(?<=\d)\s+mod(?:ulo)?\s+(\w+)"
)
_BASE = re.compile(
    r"(?<=[0-9A-Z])\s*(?:\\text\{\s*base[\s-]*\}\s*(\d+)|\\text\{\s*base[\s-]*(\d+)\s*\}|\s+base[\s-]*(\d+))$"
)
_MEASURED = re.compile(
    r"\\text\{\s*([-+]?(?:\d[\d.,:/ ]*)?\d) ?((?<= )[A-Za-z]|[A-Za-z]{2}[^{}]*)\}"
)
_CHOICE = re.compile(r"\(([A-Z])\)\.?|\\text\{\s*\(?([A-Z])\)?\.?\s*\}|([A-Z])\.")


def normal_form(text: str) -> str:
    """The normal form of an answer; for a text beyond `MAX_CHARS`, a name made of its hash."""
    start = _characters(text).strip()
    if len(start) > MAX_CHARS:
        digest = hashlib.sha256(start.encode("utf-8", "surrogatepass")).hexdigest()
        return rf"\longtext{{{digest.translate(_LETTERS)}}}"
    return _settled(start)


@lru_cache(1024)  # attempts at a problem mostly say the same
def _settled(start: str) -> str:
    form = " ".join(start.split())
    for _ in range(ROUNDS):
        previous = form
        form = _rewrite(_characters(form))
        if form == previous:
            return form
        if len(form) > 2 * MAX_CHARS:
            break
    return start  # never settles: still one form for one text


def unit(text: str) -> str:
    """The known units of measure that an answer states, by one name each; empty where it states none."""
    found: set[str] = set()
    for square, cubic, name, *powers in _UNIT_NAME.findall(
        " ".join(text[:MAX_CHARS].split())
    ):
        power = (
            "2"
            if square
            else "3"
            if cubic
            else "".join(powers).translate({178: "2", 179: "3"})
        )
        found.add(_UNIT_NAMES[name] + power)
    return " ".join(sorted(found))


def depth(latex: str) -> int:
    """How deeply brackets and braces are nested."""
    level = deepest = 0
    for match in _BRACKET.finditer(latex):
        level += 1 if match[0][-1] in "([{" else -1
        deepest = max(deepest, level)
    return deepest


_LETTERS = str.maketrans("0123456789", "ghijklmnop")
"""Digits could be read as a number; a name of letters stays what it is."""


def _characters(text: str) -> str:
    """ASCII and LaTeX for what Unicode offers several ways to write; nothing invisible."""
    if text.isascii() and text.isprintable():
        return text
    text = re.sub(r"√\s*(\d+)", r"\\sqrt{\1}", unicodedata.normalize("NFC", text))
    text = re.sub(
        r"(?:\d[\u0304\u0305\u0307])+", lambda m: rf"\overline{{{m[0][::2]}}}", text
    )
    return "".join(map(_ascii, _SCRIPTS.sub(_script, text)))


def _script(match: re.Match[str]) -> str:
    """A run of raised or lowered characters as one exponent or index."""
    plain = unicodedata.normalize("NFKC", match[0]).replace("−", "-")
    return f"{'_' if '₀' <= match[0][0] <= '₎' else '^'}{{{plain}}}"


def _ascii(char: str) -> str:
    if char in SYMBOLS or char.isspace():
        return SYMBOLS.get(char, " ")
    if (
        unicodedata.category(char) in ("Cf", "Cc", "Cs", "Cn")
        or "\ufe00" <= char <= "\ufe0f"
    ):
        return ""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    tag = unicodedata.decomposition(char).partition(" ")[0]
    plain = unicodedata.normalize("NFKC", char)
    if tag in ("<super>", "<sub>"):
        return f"{'^' if tag == '<super>' else '_'}{{{plain}}}"
    if tag == "<fraction>" and not plain.endswith("\u2044"):
        return r"\frac{{{}}}{{{}}}".format(*plain.split("\u2044"))
    return plain.replace("\u2044", "/")


def _rewrite(text: str) -> str:
    """One pass over the rules; `normal_form` repeats it until nothing changes."""
    if (
        r"\begin" not in text
    ):  # a doubled backslash is an escaping slip, unless it ends the row of a matrix
        text = re.sub(r"\\\\(?=[A-Za-z])", r"\\", text)
    text = re.sub(r",\\!\s*(?=\d{3})", "{,}", text.replace(r"\\", "\3")).replace(
        r"\!", ""
    )
    text = text.replace("{,}", "\0").replace(r"\%", "%")
    text = re.sub(r"(?<=\d)\0(?=\d)", "", text).replace("\0", ",")
    text = re.sub(r"(?:\\[,;: ]|[~\s])+", " ", text)
    text = re.sub(r"\.{3,}", r"\\ldots ", re.sub(r"\\not\s*=", r"\\neq ", text))
    text = re.sub(r"\\[()\[\]]", "", re.sub(r"\\?\$", " ", text))
    text = re.sub(r"\\(?:left|right)\s*\.", "", text)
    text = re.sub(r"\\([A-Za-z]+)\s*", _command, text)
    degree = r"^{\circ }" if _TRIGONOMETRY.search(text) else " "
    text = re.sub(r'(?<=\d)"', "''", text)
    text = _repeating(re.sub(r"\^\s*(?:\{\s*('+)\s*\}|('+))", r"\1\2", text))
    text = _DEGREE.sub(lambda _: degree, text).replace("*", r"\cdot ")
    text = _separators(_words(" ".join(text.split())))
    text = re.sub(r"^(?:\\approx\s*|=\s*)+|[\s.,]+$", "", text)
    text = _without_spaces(_braced_arguments(text))
    return _unbraced(text.replace("\3", r"\\"))


def _repeating(text: str) -> str:
    r"""Write `0.(3)`, `0.\dot{3}`, `0.\bar{3}` and `0.333\ldots` with a line over what repeats."""
    text = re.sub(r"(\.\d*)\\bar \{?(\d+)\}?", r"\1\\overline {\2}", text)
    text = re.sub(
        r"\\dot \{?(\d)\}?(?:(\d*)\\dot \{?(\d)\}?)?", r"\\overline {\1\2\3}", text
    )
    text = re.sub(r"(\.\d*)\((\d+)\)", r"\1\\overline {\2}", text)
    text = re.sub(r"(?<!\d)(?=\.\\overline)", "0", text)
    return re.sub(
        r"(\.\d{0,20}?)(\d{1,9}?)\2\2+\s*\\ldots\s*$", r"\1\\overline {\2}", text
    )


def _unbraced(text: str) -> str:
    """Drop braces around the whole."""
    if text[:1] != "{" or text[-1:] != "}":
        return text
    depth = 0
    for match in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[1:-1].strip() if match.end() == len(text) else text
    return text


def _command(match: re.Match[str]) -> str:
    name = SYNONYMS.get(match[1], match[1])
    return PLAIN.get(name, name) if not name.strip() or name in PLAIN else f"\\{name} "


def _words(text: str) -> str:
    """Choice letters, phrases, units and counting words."""
    text = re.sub(r"\\text \{", r"\\text{", text)
    if choice := _CHOICE.fullmatch(text):
        return next(letter for letter in choice.groups() if letter)
    if measured := _MEASURED.fullmatch(text):
        text = rf"{measured[1]}\text{{ {measured[2]}}}"
    if _PHRASE.fullmatch(text):
        return rf"\text{{{text}}}"
    text = (
        re.sub(r"\s*(?:\\text\{\s*)?\bpercent(?:age)?\b\s*\}?", "%", text)
        if re.search(r"\d", text)
        else text
    )
    for word, factor in MAGNITUDES.items():
        text = re.sub(
            rf"(?<=[\d}}])\s*(?:\\text\{{\s*{word}s?\s*\}}|{word}s?\b)",
            rf"\\cdot {factor} ",
            text,
        )
        text = re.sub(
            rf"(?<=[\d}}])\s*\\text\{{\s*{word}\s+", rf"\\cdot {factor} \\text{{", text
        )
    text = _BASE.sub(lambda found: f"_{{{found[found.lastindex or 0]}}}", text)
    text = _MODULO.sub(lambda found: rf"\pmod{{{found[found.lastindex or 0]}}}", text)
    if _RELATION.search(text):
        text = _OR.sub(r"\\cup ", text)
    elif re.search(r"[\d\\]", text):
        text = re.sub(r"\\text\{\s*(\w+)\s+(?:and|or)\s*\}", r"\\text{\1}, ", text)
        text = _CONNECTIVE.sub(", ", text)
    text = _UNIT.sub("", text)
    return _TEXT.sub(lambda match: _text_group(match, text), text)


def _text_group(match: re.Match[str], whole: str) -> str:
    """Drop a unit; keep any other text with its spaces tidied."""
    content = " ".join(match[1].split())
    before = whole[: match.start()].rstrip()
    after = whole[match.end() :].strip()
    ends = re.fullmatch(r"(?:\^ ?(?:\{[23]\}|[23]))?(?:,.*)?", after, re.DOTALL)
    plain = content.lower().replace(".", "")
    valued = before and (
        before[-1].isalnum() or before[-1] in ")}]%" or before.endswith(r"\pi")
    )
    unit = (content in UNIT_LETTERS or len(plain) > 1) and re.fullmatch(
        r"[A-Za-z ./^-]{0,40}", content
    )
    if valued and ends and (unit or not content) and not NOT_UNITS.search(plain):
        return "\1"  # takes a following power along, see _separators
    if _LETTERED.fullmatch(content):
        return re.sub(r",? and ", ", ", content)
    if re.search(r"\w", content) and not re.search(
        r"[^\W\d_]{2}|[^\x20-\x7e]", _AND.sub("", content)
    ):
        return match[1]  # mathematics that was set as text
    return rf"\text{{{content}}}" if content or not before + after else match[1]


def _separators(text: str) -> str:
    """Commas that separate are `, `; commas that group digits are gone."""
    text = re.sub(r"\x01\s*(?:\^ ?(?:\{[23]\}|[23]))?", "", text).replace(";", ",")
    text = re.sub(r"(?<=\d)\s+(?=\d)", " ", text)
    pieces = re.split(r"(\\[{}]|[()\[\]])", text)
    depth = 0
    for index, piece in enumerate(pieces):
        if index % 2:
            depth = depth + 1 if piece in (r"\{", "(", "[") else max(0, depth - 1)
        elif depth == 0:
            piece = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), piece)
            pieces[index] = _SPACED.sub(lambda match: match[0].replace(" ", ""), piece)
    return re.sub(r"\s*,(?:\s*,)*\s*", ", ", "".join(pieces))


def _braced_arguments(text: str) -> str:
    r"""Write `\frac12`, `\sqrt2`, `\sqrt(2)`, `x^10` and `1103_6` with braces."""
    one = r"\s*(\d|[A-Za-z]|\\pi(?![A-Za-z]))"
    text = re.sub(rf"(\\(?:frac|binom) ?){one}(?=\s*[\d{{A-Za-z\\])", r"\1{\2}", text)
    text = re.sub(rf"(\\(?:frac|binom) ?\{{[^{{}}]*\}}){one}", r"\1{\2}", text)
    text = re.sub(
        r"\\sqrt ?(\[\d+\])?(?:(\d)(?!\d)|([A-Za-z])|(\\pi)(?![A-Za-z]))",
        r"\\sqrt\1{\2\3\4}",
        text,
    )
    text = re.sub(r"\\sqrt ?\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"\(([0-9A-Z]+)\)\s*_", r"\1_", text)
    text = re.sub(r"\^\s*(?:(-?\d+)|([A-Za-z])|(\\[a-z]+) )", r"^{\1\2\3}", text)
    text = re.sub(
        r"(?<=\d)_\{(?:\\text\{)?([a-z]+)\}?\}",
        lambda m: f"_{{{BASES.get(m[1], m[1])}}}",
        text,
    )
    return re.sub(r"_\s*(?:(\d+)|([A-Za-z]))", r"_{\1\2}", text)


def _without_spaces(text: str) -> str:
    r"""Keep only the spaces that mean something: after a comma, within words, in `3 1/2` and in `\pi r`."""
    parts = re.split(r"(\\text\{[^{}]*\})", text)
    for i in range(0, len(parts), 2):
        part = re.sub(r"\s+", " ", parts[i])
        part = re.sub(
            r"(?<=\d) (?=\d)|(?<=,) |(\\[A-Za-z]+) (?=[A-Za-z])",
            lambda m: (m[1] or "") + "\2",
            part,
        )
        parts[i] = part.replace(" ", "").replace("\2", " ")
    return "".join(parts).strip()
