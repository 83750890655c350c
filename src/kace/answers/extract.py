r"""Read the final answer of a reply: the boxed text, its normal form, its value.

The normal form is one spelling for what differs only in typography. A text is cleaned,
its units are taken off, it is cut into tokens, and the tokens are written in one way;
`read_value` then splits them into the values that they mean. Notation with several
readings, or with commands that are not known, is a formula that equals only itself.
docs/answers.md lists the rules. Reading is bounded and never raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, chain

from kace.answers.exact import (
    INFINITY,
    INTERVALS,
    LETTER,
    MINUS_INFINITY,
    UNKNOWN,
    Ambiguous,
    Collection,
    Formula,
    Value,
    Word,
    are_far,
    evaluate,
    is_exact,
    is_letter,
)

MAX_ANSWER_CHARS = 2_000  # a longer text equals only itself
MAX_NESTED = 12  # arguments within arguments

_BOX = re.compile(
    r"\\{1,2}(?:boxed|fbox)(?![A-Za-z])\s*(\{|[^\s{}\\$]+)?|\\.|[{}]", re.DOTALL
)
_BETWEEN_BOXES = re.compile(
    r"[\s$]*(?:,|,?[\s$]*(?:\\text\s*\{)?\s*(?:and|or)\s*\}?)[\s$]*"
)

_NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty twentyone twentytwo twentythree
twentyfour twentyfive twentysix twentyseven twentyeight twentynine thirty thirtyone
thirtytwo thirtythree thirtyfour thirtyfive thirtysix thirtyseven thirtyeight
thirtynine forty fortyone fortytwo fortythree fortyfour fortyfive fortysix fortyseven
fortyeight fortynine fifty fiftyone fiftytwo fiftythree fiftyfour fiftyfive fiftysix
fiftyseven fiftyeight fiftynine sixty sixtyone sixtytwo sixtythree sixtyfour sixtyfive
sixtysix sixtyseven sixtyeight sixtynine seventy seventyone seventytwo seventythree
seventyfour seventyfive seventysix seventyseven seventyeight seventynine eighty
eightyone eightytwo eightythree eightyfour eightyfive eightysix eightyseven
eightyeight eightynine ninety ninetyone ninetytwo ninetythree ninetyfour ninetyfive
ninetysix ninetyseven ninetyeight ninetynine"""


def _rules(table: str, **parts: str) -> list[tuple[str, str]]:
    """Return the patterns and replacements of a table, one a line.

    `␣` is a space, `⟦⟧` are the braces of arguments, `⟪⟫` those of sets; `@NAME` is
    one of the parts.
    """
    for name, part in parts.items():
        table = table.replace(f"@{name}", part)
    rules = []
    for line in table.strip().translate(_MARKS).splitlines():
        pattern, _, replacement = line.partition("  ->")
        rules.append((pattern, replacement[2:]))
    return rules


# Braces of arguments are written as \1 and \2, so that what keeps braces has no argument.
_MARKS = str.maketrans("␣⟦⟧⟪⟫", " \1\2\3\4")
SYMBOLS = dict(
    _rules(r"""
−  ->  -
×  ->  \cdot␣
·  ->  \cdot␣
⋅  ->  \cdot␣
∙  ->  \cdot␣
∗  ->  \cdot␣
÷  ->  /
∕  ->  /
⁄  ->  /
√  ->  \sqrt␣
∛  ->  \sqrt[3]
∜  ->  \sqrt[4]
‰  ->  \cdot10^{-3}
∠  ->  \angle␣
º  ->  ^{\circ}
˚  ->  ^{\circ}
∞  ->  \infty␣
°  ->  ^{\circ}
±  ->  \pm␣
≤  ->  \leq␣
≥  ->  \geq␣
≠  ->  \neq␣
≈  ->  \approx␣
∪  ->  \cup␣
∩  ->  \cap␣
∈  ->  \in␣
∅  ->  \emptyset␣
ℝ  ->  \mathbb{R}
ℤ  ->  \mathbb{Z}
ℕ  ->  \mathbb{N}
ℚ  ->  \mathbb{Q}
ℂ  ->  \mathbb{C}
≡  ->  \equiv␣
⇒  ->  \Rightarrow␣
′  ->  '
％  ->  %
٪  ->  %
٫  ->  .
٬  ->  {,}
…  ->  \ldots␣
∶  ->  :
Α  ->  \Alpha␣
Β  ->  \Beta␣
Γ  ->  \Gamma␣
Δ  ->  \Delta␣
Ε  ->  \Epsilon␣
Ζ  ->  \Zeta␣
Η  ->  \Eta␣
Θ  ->  \Theta␣
Ι  ->  \Iota␣
Κ  ->  \Kappa␣
Λ  ->  \Lambda␣
Μ  ->  \Mu␣
Ν  ->  \Nu␣
Ξ  ->  \Xi␣
Ο  ->  \Omicron␣
Π  ->  \Pi␣
Ρ  ->  \Rho␣
Σ  ->  \Sigma␣
Τ  ->  \Tau␣
Υ  ->  \Upsilon␣
Φ  ->  \Phi␣
Χ  ->  \Chi␣
Ψ  ->  \Psi␣
Ω  ->  \Omega␣
α  ->  \alpha␣
β  ->  \beta␣
γ  ->  \gamma␣
δ  ->  \delta␣
ε  ->  \epsilon␣
ζ  ->  \zeta␣
η  ->  \eta␣
θ  ->  \theta␣
ι  ->  \iota␣
κ  ->  \kappa␣
λ  ->  \lambda␣
μ  ->  \mu␣
ν  ->  \nu␣
ξ  ->  \xi␣
ο  ->  \omicron␣
π  ->  \pi␣
ρ  ->  \rho␣
σ  ->  \sigma␣
τ  ->  \tau␣
υ  ->  \upsilon␣
φ  ->  \phi␣
χ  ->  \chi␣
ψ  ->  \psi␣
ω  ->  \omega␣
¼  ->  \frac{1}{4}
½  ->  \frac{1}{2}
¾  ->  \frac{3}{4}
⅐  ->  \frac{1}{7}
⅑  ->  \frac{1}{9}
⅒  ->  \frac{1}{10}
⅓  ->  \frac{1}{3}
⅔  ->  \frac{2}{3}
⅕  ->  \frac{1}{5}
⅖  ->  \frac{2}{5}
⅗  ->  \frac{3}{5}
⅘  ->  \frac{4}{5}
⅙  ->  \frac{1}{6}
⅚  ->  \frac{5}{6}
⅛  ->  \frac{1}{8}
⅜  ->  \frac{3}{8}
⅝  ->  \frac{5}{8}
⅞  ->  \frac{7}{8}
↉  ->  \frac{0}{3}
""")
)
_SCRIPTS = _rules(r"""
\s  ->  ␣
[\ufe00-\ufe0f]  ->
[–—‒‐‑]  ->  -
([√∛∜])\s*(\d+)  ->  \1{\2}
[⁰¹²³⁴-⁹⁺⁻⁽⁾ⁿⁱ]+  ->  ^{\g<0>}
[₀-₉₊₋₍₎]+  ->  _{\g<0>}
""")  # fmt: skip

_SYNONYMS = _rules(r"""
dfrac tfrac cfrac nicefrac sfrac  ->  \frac
dbinom tbinom  ->  \binom
le leqslant  ->  \leq
ge geqslant  ->  \geq
ne  ->  \neq
times ast  ->  \cdot
rightarrow  ->  \to
varnothing  ->  \emptyset
textbf textit textrm textnormal textsf mbox hbox mathrm mathup  ->  \text
dots cdots  ->  \ldots
mod bmod pod  ->  \pmod
bar  ->  \overline
cr  ->  \\
vert lvert rvert  ->  |
lt  ->  <
gt  ->  >
div  ->  /
colon  ->  :
prime  ->  '
langle  ->  (
rangle  ->  )
lbrack  ->  [
rbrack  ->  ]
lbrace  ->  \{
rbrace  ->  \}
quad qquad newline  ->  ,
boxed fbox left right mleft mright displaystyle textstyle limits  ->
big Big bigg Bigg bigl bigr Bigl Bigr mathbf boldsymbol mathit mathsf  ->
""")  # fmt: skip
COMMANDS = {
    rf"\{name}": text for names, text in _SYNONYMS for name in names.split()
}
_FUNCTIONS = r"""\sin \cos \tan \cot \sec \csc \arcsin \arccos \arctan \sinh \cosh \tanh
\ln \log \exp \max \min \gcd \lcm \lim"""
_APPLIED = r"\\(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?(?![a-z])|\\(?:ln|log|exp)(?![a-z])"
_DECORATED = r"\\(?:overline|vec|hat|tilde|dot|widehat|mathbb|mathcal)(?![a-z])"
_ARITHMETIC = r"""\frac \sqrt \binom \cdot \pi \infty \to \lfloor \rfloor \lceil \rceil \circ
\begin{pmatrix} \end{pmatrix} \begin{vmatrix} \end{vmatrix} \\ \sum \prod \int"""
_SIGNS = "+ - / ( ) { } ^ _ ! | & , [ ] ="
_ALGEBRA = f"{_FUNCTIONS} {_ARITHMETIC} {_SIGNS}".split()
_READABLE = re.compile(
    rf"{'|'.join(map(re.escape, _ALGEBRA))}|{UNKNOWN}"
    r"|\d+(?:\.\d+|\\frac\{\d+\}\{\d+\})?"
)
"""A token that algebra reads as it is meant."""

UNITS = """deg degree degrees|rad radian radians|mm millimeter millimeters millimetre
millimetres|cm centimeter centimeters centimetre centimetres|km kilometer kilometers
kilometre kilometres|m meter meters metre metres|kg kilogram kilograms|g gram grams|mg
milligram milligrams|ft foot feet|in inch inches|yd yard yards|mi mile miles|h hour
hours hr hrs|min mins minute minutes|s sec secs second seconds|ms millisecond
milliseconds|day days|week weeks|month months|year years|gal gallon gallons|L l liter
liters litre litres|mL ml milliliter milliliters|quart quarts|pint pints|cup cups|
dollar dollars usd|cent cents|lb lbs pound pounds|euro euros eur|yen|oz ounce ounces|
ton tons|acre acres|J joule joules|N newton newtons|W watt watts|V volt volts|
kelvin kelvins|A amp amps ampere amperes|ohm ohms|eV|Pa pascal pascals|kN|kJ|kW|mA|
C celsius|F fahrenheit|Hz hertz|mol moles|mi_/_h mph|km_/_h kph|rpm|bit bits|byte bytes|
unit units|way ways|people person persons|student students|child children|boy boys|
girl girls|man men|woman women|apple apples|orange oranges|egg eggs|book books|page
pages|coin coins|penny pennies|ball balls|marble marbles|card
cards|car cars|ticket tickets|point points|step steps|edge edges|triangle triangles|
squares|number numbers|integer integers|digit digits|value values|
term terms|box boxes|game games|team teams|player players|vote votes|block blocks|tile
tiles|piece pieces|item items|member members|house houses|tree trees|bag bags|bottle
bottles|cookie cookies|pencil pencils|toy toys|path paths|arrangement arrangements|
permutation permutations|combination combinations|subset subsets|function functions|
dog dogs|cat cats|bird birds|fish|flower flowers|candy candies|
sheep|cow cows|slice slices|stamp stamps|friend friends|worker workers|employee
employees"""
"""What may be left out behind a value, by its names. Two that are stated must agree."""
UNIT_NAMES = {
    name: names.split()[0].replace("_", " ")
    for names in UNITS.split("|")
    for name in names.split()
}
_CURRENCIES = dict(_rules(r"""
\$  ->  dollar
£  ->  lb
€  ->  euro
¥  ->  yen
₹  ->  rupee
¢  ->  cent
\pounds  ->  lb
\euro  ->  euro
per  ->  /
°  ->  deg
"""))  # fmt: skip
_SIZES = "dozen|hundred|thousand|million|billion|trillion"

_MATRIX = r"\\begin\{pmatrix\}((?:(?!\\begin).)*?)\\end\{pmatrix\}"
_MARKUP = _rules(r"""
\\operatorname\*?\s*\{([a-zA-Z]+)\}  ->  \\\1␣
\\text\s*\{  ->  \\text{
\\(?:land|wedge)(?![a-z])(?=.*(?:[=<>]|\\[lgn]eq|\\in))  ->  ,
\\(?:lor|vee)(?![a-z])(?=.*(?:[=<>]|\\[lgn]eq|\\in))  ->  \\or␣
^((?!.*\\pm).*)\\mp(?![a-z])  ->  \1\\pm
\\log_([2-9])(\d+)\s*(?=$|[-+),}=])  ->  \\log_\1␣\2
US(?=\\\$)  ->
(?<=\s)!=  ->  \\neq␣
<=>|<->  ->  \\iff␣
=>|->  ->  \\Rightarrow␣
<=  ->  \\leq␣
>=  ->  \\geq␣
(?<![\\A-Za-z])(sqrt|sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|ln|log|exp|pi)(?![A-Za-z])  ->  \\\1␣
(?<![\\A-Za-z])(?:infinity|inf|oo)(?![A-Za-z])  ->  \\infty␣
(?<![\\A-Za-z])(max|min|gcd)(?=\()  ->  \\\1␣
\*\*  ->  ^
\*  ->  \\cdot␣
,\\!\s*(?=\d{3})  ->  {,}
\\!  ->
\\%  ->  %
(?<![\d}])(0\d*)\{,\}  ->  \1,
(?<!\d{4})(?<=\d)\{,\}(?=\d{3}(?!\d))  ->
(?:(?<!\\)\\[,;: ]|[~\s])+  ->  ␣
\\not\s*=  ->  \\neq␣
\.{3,}  ->  \\ldots␣
(?<!\\)\$  ->  ␣
(?<!\\)\\[()\[\]]  ->
\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z])|\{?\s*\\text\{\s*o\s*\}\}?)|\\degrees?(?![A-Za-z])  ->  °
\\text\{\s*°\s*[CF]?\s*\}|°\s*(?:\\text\s*\{\s*[CF]\s*\}|[CF]\b)  ->  °
(?<=\d)\s+(?=\\frac(?![a-z]))  ->
(?<=\d)\s*x\s*(?=10\s*\^)  ->  \\cdot␣
(?<=[)\]])\s*U\s*(?=[(\[])  ->  \\cup␣
\\text\{\s*(\\\$)\s*\}  ->  \1
(?<=\d)\\text\{\s*-\s*\}  ->  \\text{to}
\\(?:text)?color\s*\{\w+\}  ->
\\frac\s*\{\s*\\text\{([^{}]*)\}\s*\}\s*\{\s*\\text\{([^{}]*)\}\s*\}  ->  \\text{\1/\2}
^\\\{\s*[a-z]\s*(?:\\in\s*\\mathbb\{R\})?\s*(?:\||:|\\mid )([^|:]*[<>][^|:]*|[^|:]*\\[lgn]eq[^|:]*)\\\}$  ->  \1
^"([^"]*)"$  ->  \1
(?<=\d)"  ->  ''
\^\s*(?:\{\s*('+)\s*\}|('+))  ->  \1\2
(\\text\{[^{}]*)\}\s*/\s*\\text\{  ->  \1/
\\text\{([^{}]*)\b(and|or)\s*\}  ->  \\text{\1}\\text{\2}
\(([0-9A-Z]+)\)\s*_  ->  \1_
\\begin\{(?:array\}\s*\{[^{}]*|(?:[bBp]|small)?matrix)\}  ->  \\begin{pmatrix}
\\end\{(?:array|(?:[bBp]|small)?matrix)\}  ->  \\end{pmatrix}
([(\[|]|\\det)\s*\{\s*(@MATRIX)\s*\}  ->  \1\2
[(\[]\s*(@MATRIX)\s*[)\]]  ->  \1
[(\[]\s*(@MATRIX)\s*[)\]]  ->  \1
(?:\|\s*@MATRIX\s*\||\\det\s*@MATRIX)  ->  \\begin{vmatrix}\1\2\\end{vmatrix}
\\\\\s*(?=\\end\{)  ->
\\begin\{(cases|aligned)\}([^&]*)\\end\{\1\}  ->  \2
\{([^{}]*)\\choose(?![a-z])([^{}]*)\}  ->  \\binom{\1}{\2}
\{([^{}]*)\\over(?![a-z])([^{}]*)\}  ->  \\frac{\1}{\2}
([A-Za-z])\s*\^(\{[^{}]*\}|\w)\s*_(\{[^{}]*\}|\w)  ->  \1_\3^\2
\\sqrt\s*\[([3579])\]\s*\{\s*-((?:[^{}+-]|\{\d+\})*)\}  ->  (-\\sqrt[\1]{\2})
\{:\}  ->  :
\\lg(?![a-z])  ->  \\log_{10}
\\dot\s*\{?(\d)\}?(?:(\d*)\\dot\s*\{?(\d)\}?)?  ->  \\overline{\1\2\3}
(\.\d*)\((\d+)\)  ->  \1\\overline{\2}
(\.\d{0,20}?)(\d{1,9}?)\2\2+\s*\\ldots\s*$  ->  \1\\overline{\2}
^(?:\\text\{)?([\d:]+?)(?::00)?\s*(?:\\text\{)?\s*[aA]\.?[mM]\.?\s*\}*$  ->  \1\\text{am}
^(?:\\text\{)?([\d:]+?)(?::00)?\s*(?:\\text\{)?\s*[pP]\.?[mM]\.?\s*\}*$  ->  \1\\text{pm}
^(?:\\approx(?![a-z])|=|\s)+|[\s.,\\]+$  ->
""", MATRIX=_MATRIX)  # fmt: skip
_POWERS = _rules(r"""
(?:square|sq)[. ]+(\w+)  ->  \1␣2
(?:cubic|cu)[. ]+(\w+)  ->  \1␣3
""")  # fmt: skip
_END = r"""(?=\s*(?:$|[,;=<>)\]|]|\\[}]|\\(?:leq|geq|cup|or|text\{\s*(?:and|or))\b
    |(?:and|or)\b))"""
_UNIT_WORD = "|".join(
    f"(?-i:{name})" if len(name) == 1 else name for name in UNIT_NAMES
)
_UNIT_WORD = f"(?:{_UNIT_WORD})"
_UNIT_PHRASE = rf"""(?:(?:sq(?:uare)?|cu(?:bic)?)\.?\ )?{_UNIT_WORD}
    (?:(?:\ per\ |[ /.]|\ ?\^\ ?\{{?[23]\}}?|\ squared)(?:{_UNIT_WORD})?)*"""
_UNIT = re.compile(
    rf"""(?:(?<=[\w)}}\]])|(?<=[%'])) \s*
    (?: \\text\{{\s*({_UNIT_PHRASE})\s*\}}(?:\s*\^\s*\{{?([23])\}}?)?
      | (?<=[\d)}}\]\s])(?<!\d(?=[A-Za-z]/))((?!in\b|[A-Za-z]\b(?!/s\b)){_UNIT_PHRASE})
      | (°) | (\\\$|[£€¥₹¢])
    ){_END}""",
    re.VERBOSE | re.IGNORECASE,
)
_CURRENCY = re.compile(
    r"(?<!\w)(?<!\d-)(\\\$|[£€¥₹]|\\pounds\b|\\euro\b)\s*(?=[-\d.(])"
)
_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_WORDS = _rules(r"""
\\text\{\s*(@SIZES)s? +([^{}]+)\}  ->  \\text{\1}\\text{\2}
\\text\{\s*([-+]?(?:\d[\d.,:/ ]*)?\d) ?([A-Za-z][A-Za-z./ ^\d]*)\}  ->  \1\\text{␣\2}
(?:\\text\{\s*)?\b(?:percent(?!age)|per cent|pct)\b\.?(?:\s*\})?  ->  %
(?<=[0-9A-Z])\s*(?:\\text\{\s*)?base[\s}-]*(\d+|[a-z]+)(?:\s*\})?$  ->  _{\1}
\(?\\text\{[\s(]*mod(?:ulo)?\s+(\w+)[\s)]*\}\)?  ->  \\pmod{\1}
\(?\s*(?:\\pmod|\\text\{[\s(]*mod(?:ulo)?\s*\}|\(mod\b)\s*(\w+)\s*\)?  ->  \\pmod{\1}
\s*\(\s*(\\pmod\{\w+\})\s*\)  ->  \1
(^|,)\s*([A-Za-z]{4,})\s*=  ->  \1\\text{\2}=
(?<=\d) ?(?:\^ ?)?(?:\{ ?)?(?:\\text\{ ?)?(st|nd|rd|th)(?![A-Za-z])[ }]*  ->  \\text{\1}
@BEHINDdozens?\b(?(1)\s*\})  ->  \\cdot␣12
@BEHINDhundreds?\b(?(1)\s*\})  ->  \\cdot␣100
@BEHINDthousands?\b(?(1)\s*\})  ->  \\cdot␣10^{3}
@BEHINDmillions?\b(?(1)\s*\})  ->  \\cdot␣10^{6}
@BEHINDbillions?\b(?(1)\s*\})  ->  \\cdot␣10^{9}
@BEHINDtrillions?\b(?(1)\s*\})  ->  \\cdot␣10^{12}
""", SIZES=_SIZES, BEHIND=r"(?<=[\d}])\s*(\\text\{)?\s*")  # fmt: skip
_AND_OR = _rules(r"""
,?\s*\\text\{\s*,?\s*and\s*\}|,?\s+and\s+|\\text\{\s*,\s*\}|;  ->  ,␣
,?\s*\\text\{\s*,?\s*or\s*\}|,?\s+or\s+  ->  \\or␣
(?<![\d.,/])(\d+) (\d{1,2})/(\d+)(?![\d.])  ->  \1\\frac{\2}{\3}
""")  # fmt: skip
_THOUSANDS = re.compile(
    r"\([^()]*\)|\[[^\[\]]*\]|\\\{.*?\\\}"
    r"|(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])"
    r"|(?<![\d.,] )(?<![\d.,])[1-9]\d{0,2}(?: \d{3})+(?![\d,/]| \d)"
)
_WHOLE = _rules(r"""
^\{?\(([A-Z]|[ivx]{2,4})\)\}?\.?$  ->  \1
^\\text\{\s*\(?([A-Z])\)?\.?\s*\}$  ->  \1
^([A-Z])[.)]$  ->  \1
^(?!(?:abc|bcd|xyz|uvw|pqr|rst|mnp)$)(@PHRASE)$  ->  \\text{\1}
""", PHRASE=r"(?=.*[A-Za-z]{4})[A-Za-z][A-Za-z '-]*[A-Za-z]|[A-Za-z]{3}|no|No|NO"
    r"|i[ivx]|[vx]i|[A-Z]{2}|[A-Z][a-z]{2,8} \d[\d, ]*")  # fmt: skip
_PROTECT = _rules(r"""
\\(text|begin|end)\{([^{}]*)\}  ->  \\\1⟦\2⟧
\\\{  ->  ⟪
\\\}  ->  ⟫
(?<![\d.])\.(?=\d|\\overline)  ->  0.
(\.\d*\\overline)\s*(\d)  ->  \1{\2}
(?<=\d)\.(?![\d\\.])  ->
(\d+\.\d+)[eE]([+-]?\d{1,3})(?![\d.])  ->  (\1\\cdot10^{\2})
(?<![\w.])(\d+)(?:E([+-]?\d{1,3})|e(\d{1,3})|e([+-]0\d{0,2}))(?!\w)  ->  (\1\\cdot10^{\2\3\4})
(\^|\\sqrt)\s*\(([^()]*)\)  ->  \1{\2}
""")  # fmt: skip
_ARGUMENTS = _rules(r"""
(@APPLIED)\s*\{([^{}]*)\}  ->  \1(\2)
(\^|_|\\sqrt(?:\s*\[\w*\])?|\\pmod|@DECORATED)\s*\{([^{}]*)\}  ->  \1⟦\2⟧
([\^_])\s*(-?\s*(?:\d+|[A-Za-z]|\\(?!frac|sqrt|binom|text)[a-z]+))  ->  \1⟦\2⟧
([\^_])\s*(\\text⟦[^⟦⟧]*⟧|\\sqrt⟦[^⟦⟧]*⟧|\\(?:frac|binom)⟦[^⟦⟧]*⟧⟦[^⟦⟧]*⟧)  ->  \1⟦\2⟧
(\\log_⟦[^⟦⟧]*⟧)\s*\{([^{}]*)\}  ->  \1(\2)
\\sqrt\s*(\[\w+\])?\s*(\d(?!\d)|[A-Za-z]|\\pi)  ->  \\sqrt\1{\2}
\\(frac|binom)\s*(\d|[A-Za-z]|\\[a-z]+)(?=\s*[\d{A-Za-z\\])  ->  \\\1{\2}
\\(frac|binom)\s*(\{[^{}]*\})\s*(\d(?!\d)|[A-Za-z]|\\[a-z]+)  ->  \\\1\2{\3}
\\(frac|binom)\s*\{([^{}]*)\}\s*\{([^{}]*)\}  ->  \\\1⟦\2⟧⟦\3⟧
_⟦ *([^⟦⟧ ]+) *⟧  ->  _⟦\1⟧
_⟦ *\\text⟦ *([^⟦⟧]*?) *⟧ *⟧  ->  _⟦\1⟧
^\{([^{}]*)\}$  ->  \1
(?<=[(\[|,=⟦⟪])\s*\{([^{}]*)\}\s*(?=[)\]|,=⟧⟫])  ->  \1
(?<![}⟧a-zA-Z\]^_])\{([^{}+<>=,\d-](?:[^{}+<>=,-]*[^{}+<>=,\d-])?)\}  ->  \1
(?<![}⟧a-zA-Z\]^_\d])\{([^{}+<>=,-]*)\}(?!\s*\d)  ->  \1
""", APPLIED=_APPLIED, DECORATED=_DECORATED)  # fmt: skip
_SEVERAL_READINGS = re.compile(
    "[{}] | !\\s*\\d+(?![\\d!]) | \\d\\s+\\d | (?<![A-Za-z\\\\])[A-Za-z]+\\s*\\d"
    " | (?<![A-Za-z\\\\\1])[a-z]{4} | \\^\1[^\1\2]*\2\\s*\\^ | \\^\1\\([^()]*\\)\2"
    " | \\d\\\\frac\1\\d+\2\1\\d+\2\\s*\\^ | (?:frac|sqrt|binom|line)(?:\1[^\1\2]*\2)+\\s*\\d"
    " | ^\\d{4}-\\d\\d?-\\d\\d?$ | ^\\d\\d?-\\d\\d?-\\d{4}$"
    " | (?<![A-Za-z\\\\])(?:if|is|of|or|to|by|at|in|on|as|and|are|for|the|not|mod|but|cis"
    "|than|then|with)(?![A-Za-z])",
    re.VERBOSE,
)
_TOKEN = re.compile(
    rf"""\\(?:text|begin|end)\{{[^{{}}]*\}} | (?:{_DECORATED})\{{[^{{}}]*\}}
    | (?!\\(?:log|sum|prod|int|lim|max|min)_)(?:\\[A-Za-z]+|[A-Za-z])
      _\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}} | \\[A-Za-z]+ | \\.
    | \d+(?:\.\d*)?(?:\\overline\{{\d+\}}|\\frac\{{\d+\}}\{{\d+\}}|_\{{\d+\}})? | '+ | \S""",
    re.VERBOSE,
)
_BACK = str.maketrans({"\1": "{", "\2": "}", "\3": r"\{", "\4": r"\}"})


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. Answers with one key are the same unless they state different things."""

    text: str
    """The boxed text, stripped, as the model wrote it."""
    value: Value
    tolerance: float = 0.0
    """The largest difference of equal numbers, as a share of the larger."""
    stated: tuple[str, str] = ("", "")
    """The unknown that the value belongs to, and its unit, where given."""

    @classmethod
    def of(cls, text: str, percent: bool = False) -> Answer:
        """Read a text as mathematics. A text over `MAX_ANSWER_CHARS` equals only itself.

        Where the problem asks for a percentage, the percent sign is a unit.
        """
        return _read(text.strip(), percent)

    @property
    def exact(self) -> bool:
        """Whether its value and nothing else decides what it equals."""
        loose = self.tolerance or any(self.stated)
        return is_exact(self.value) and not loose

    @property
    def key(self) -> str:
        """The same text for equal values, or for equal forms where there is no value."""
        return ("=" if is_exact(self.value) else "~") + str(self.value)


# Boxes


def last_boxed(reply: str) -> str | None:
    r"""Return the content of the last closed `\boxed{...}` or `\fbox{...}` of a reply.

    `\boxed 5` counts too; a box within `<think>...</think>` only when none follows.
    Boxes with only a comma, `and` or `or` between them are one list. Return None
    without a box, or with an empty or too long one.
    """
    thought, _, rest = reply.rpartition("</think>")
    content = _last_box(rest)
    if content is None:
        content = _last_box(thought)
    if not content or len(content) > MAX_ANSWER_CHARS:
        return None
    return content


def _last_box(text: str) -> str | None:
    """Find the last box in one pass, so that many unclosed boxes cost no more."""
    content: str | None = None
    place = -1  # where the content begins
    end = 0  # behind the last closed box
    stack: list[tuple[int, int]] = []  # box and content of each open brace
    for match in _BOX.finditer(text):
        start = match.start()
        inner = match.start(1)
        if match[0] == "{" or match[1] == "{":
            stack.append((start, match.end() if match[1] else -1))
            continue
        if match[0] == "}":
            start, inner = stack.pop() if stack else (-1, -1)
            box = text[inner : match.start()]
        else:
            box = (match[1] or "").rstrip(".,;:!?*")
            if "(" not in box:
                box = box.rstrip(")")
        if inner > place:
            joined = content and _BETWEEN_BOXES.fullmatch(text, end, start)
            content = f"{content}, {box}" if joined else box
            place = inner
            end = match.end()
    return content and content.strip()


# The normal form


@lru_cache(8_192)  # most attempts at a problem give the same answers
def _read(text: str, percent: bool) -> Answer:
    plain = _ascii(text).strip()
    if len(plain) > MAX_ANSWER_CHARS:
        return Answer(text, Formula(plain))
    units: set[str] = set()
    plain = _clean(plain)
    try:
        tokens = _tokens(_words(plain, units, percent))
        value, name = read_value(tokens)
    except (ArithmeticError, RecursionError):
        return Answer(text, Formula("".join(plain.split())))
    return Answer(text, value, stated=(name, "".join(units)))


def _ascii(text: str) -> str:
    """Return a text in ASCII and LaTeX where Unicode offers several spellings."""
    if text.isascii() and text.isprintable():
        return text
    text = unicodedata.normalize("NFC", text)
    return "".join(map(_ascii_character, _apply(_SCRIPTS, text)))


def _ascii_character(char: str) -> str:
    if char in SYMBOLS:
        return SYMBOLS[char]
    if unicodedata.category(char) in ("Cf", "Cc", "Cs", "Cn"):
        return ""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    plain = unicodedata.normalize("NFKC", char)
    return plain if plain == char else "".join(map(_ascii_character, plain))


def _apply(rules: Sequence[tuple[str, str]], text: str) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def repeat(change: Callable[[str], str], text: str) -> str:
    """Change a text until that changes nothing, or `MAX_NESTED` times."""
    for _ in range(MAX_NESTED):
        before = text
        text = change(text)
        if text == before:
            break
    return text


def _clean(text: str) -> str:
    """Return a text without styling, with one name for each command."""
    if r"\\begin" in text:  # escaped twice
        text = text.replace("\\\\", "\\")
    if r"\begin" not in text or r"\begin{cases}" in text:
        text = re.sub(r"\\\\(?=[A-Za-z]{2})", r"\\", text)
        text = text.replace(r"\\", ", ")
    text = re.sub(
        r"\\[A-Za-z]+", lambda match: COMMANDS.get(match[0], match[0]), text
    )
    return _apply(_MARKUP, text)


def _words(text: str, units: set[str], percent: bool) -> str:
    """Rewrite words, and what a text says in numbers; take off the units."""

    def drop(match: re.Match[str]) -> str:
        units.add(unit_name(" ".join(filter(None, match.groups()))))
        return ""

    text = _apply(_WHOLE, text)
    if _ANGLES.search(text):
        text = text.replace("°", r"^{\circ}")
    text = _apply(_WORDS, text)
    text = _UNIT.sub(drop, _CURRENCY.sub(drop, text))
    if percent:
        text = re.sub("(%)$", drop, text)
    if len(units - {""}) > 1:
        raise Ambiguous("several units")
    text = " ".join(_TEXT.sub(_unwrapped, text).split())
    return _apply(_AND_OR, _THOUSANDS.sub(_ungrouped, text))


def unit_name(phrase: str) -> str:
    """Return the one name of a unit of measure; none for units of no kind."""
    names = []
    for word in re.findall(r"[A-Za-z]+|\\?[^\s.^{}]", _apply(_POWERS, phrase)):
        word = word if len(word) < 3 else word.lower()
        names.append(UNIT_NAMES.get(word, _CURRENCIES.get(word, word)))
    return " ".join(names).removeprefix("unit").removeprefix(" 2")


def _unwrapped(match: re.Match[str]) -> str:
    """Return a text without words as mathematics; keep any other text, tidied."""
    content = " ".join(match[1].split())
    words = re.sub(r"\\[a-z]+|\b(?:and|or)\b", "", content)
    if not re.search(r"[^\W\d_]{2}|[^\x20-\x7e]", words):
        return f" {content} "
    parts = re.sub(r",?\s+and\s+|,\s+", r"}, \\text{", content)
    return rf"\text{{{parts}}}"


def _ungrouped(match: re.Match[str]) -> str:
    """Drop commas and spaces that group digits, but not what brackets enclose."""
    found = match[0]
    return re.sub("[, ]", "", found) if found[0].isdigit() else found


def _tokens(text: str) -> list[str]:
    """Return tokens with all arguments in braces, and no other braces."""
    text = _apply(_PROTECT, text)
    text = repeat(partial(_apply, _ARGUMENTS), text)
    if _SEVERAL_READINGS.search(re.sub("text\1[^\2]*\2|_\1[^\2]*\2", "", text)):
        raise Ambiguous("several readings, or none")
    return _TOKEN.findall(text.translate(_BACK))


def join(tokens: Sequence[str]) -> str:
    """Return the LaTeX of tokens."""
    text = re.sub(
        r"(\\[A-Za-z]+)\0(?=[A-Za-z])|(,)\0", r"\1\2 ", "\0".join(tokens)
    )
    return text.replace("\0", "")


# Values


_OPENING = [r"(", r"[", r"\{", r"{", r"\begin{pmatrix}", r"\begin{vmatrix}"]
_CLOSING = [r")", r"]", r"\}", r"}", r"\end{pmatrix}", r"\end{vmatrix}"]
_BELOW = ("<", r"\leq")
_ORDER = (*_BELOW, ">", r"\geq")
_LETTER = rf"(?:{LETTER}|\\ell|\\[A-Z][a-z]+)(?:_\{{[^{{}}]*\}})?'*"
_NAME = rf"""(?:{_LETTER}(?:\^\{{-1\}})?(?:\(-?[^()+-]*\)|\[[A-Z]\])?|m?\\(?:angle|triangle)\ ?[A-Z]{{1,3}}
    |[A-Z]{{2,5}}|\|[A-Z]{{2}}\||\[[A-Z]{{3,}}\]|\\(?:overline|vec|hat)\{{[A-Za-z]{{1,2}}\}}
    |\\text\{{[^{{}}]*\}}(?:_\{{[^{{}}]*\}}|\([^()]*\))?)"""
_NAMED = re.compile(
    rf"{_NAME}(?:[:/]{_NAME})?|\\frac\{{{_NAME}\}}\{{{_NAME}\}}"
    r"|\([A-Za-z\\]+(?:,\ [A-Za-z\\]+)+\)",
    re.VERBOSE,
)
_CLAIM = re.compile(
    r"\(?[A-Za-z](?![A-Z])|\\[a-z]+[=_]?$|.*[:/]|\\frac|\\overline\{[a-z]\}"
)
_UNSURE = re.compile(
    r"""/(?:\d+(?!\d)|[A-Za-z]|\\[a-z]+(?![a-z])|\([^()]*\))(?:[\w(]|\\(?!cdot|end|\\|begin))
    | \d\|[^|]*\|\d | !! | [\d)]_ | (?<!_\{[a-z])= | \\frac\{d[^{}]*(?:\{\d\})?[^{}]*\}\{d | \|.*\|.*\|
    | \\(?:sin|cos|tan|cot|sec|csc|ln|log|exp)(?![a-z])(?=$|[)}+,-])
    | (?<![\\A-Za-z])[fghA-Z](?:_\{[^{}]*\})?\(
    | \\(?!pi|cdot|rfloor|rceil|sin|cos|tan|ln|log|exp|min|max|gcd|lcm|cot|sec|csc|arc|det)[a-z]+\(
    | ^(?!.*\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])).*\\circ
    | ^(?!.*\\(?:sum|prod|int|lim)(?![a-z])).*\\infty
    """,
    re.VERBOSE,
)
_ANGLES = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_REALS = Collection("()", (MINUS_INFINITY, INFINITY))
_NAMED_VALUES: dict[str, Value] = {
    r"\infty": INFINITY,
    r"+\infty": INFINITY,
    r"-\infty": MINUS_INFINITY,
    "infinity": INFINITY,
    r"\emptyset": Collection("{}", ()),
    r"\{\}": Collection("{}", ()),
    r"\mathbb{R}": _REALS,
    "all real numbers": _REALS,
}
for _number, _word in enumerate(_NUMBERS.split()):
    _NAMED_VALUES[_word] = Fraction(_number)

_Named = tuple[str, list[Value]]


def _depths(tokens: Sequence[str]) -> list[int]:
    """Return how deeply tokens are nested, behind each of them."""
    steps = [(token in _OPENING) - (token in _CLOSING) for token in tokens]
    return list(accumulate(steps))


def _split(tokens: Sequence[str], at: Sequence[str]) -> list[list[str]]:
    """Split at some tokens outside of all brackets."""
    parts: list[list[str]] = [[]]
    for token, depth in zip(tokens, _depths(tokens), strict=True):
        if depth == 0 and token in at:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def read_value(tokens: Sequence[str]) -> tuple[Value, str]:
    """Return what tokens mean, and the unknown that has this value where given."""
    items = [part for part in _split(tokens, (",", r"\or")) if part]
    found: dict[str, list[Value]] = {}
    last = ""
    for item in items:
        name, values = _item(item)
        last = name or last
        found.setdefault(last, []).extend(values)
    if len(items) > 1 and not set(tokens).isdisjoint(_ORDER):
        if r"\or" not in tokens or len(found) > 1:
            raise Ambiguous("relations of which all hold, or one")
        return _union(found[last]), last
    if len(found) == 1:
        # `\text{Area}` and `AB` are what the problem asks for: they claim nothing.
        name = re.sub(r"_\{\d+\}$", "", last)
        return _several(found[last]), name if _CLAIM.match(name) else ""
    several = max(map(len, found.values()), default=2) > 1
    if "" in found or several or r"\or" in tokens:
        raise Ambiguous("several unknowns with several values")
    # The values of `x` and `y` are a pair.
    names = sorted(found)
    if "".join(names) in "abcd pqrs mn uvw xyz":
        pair = [found[name][0] for name in names]
        return Collection.of("()", pair), f"({', '.join(names)})"
    return Formula(", ".join(f"{name}={found[name][0]}" for name in names)), ""


def _several(values: Sequence[Value]) -> Value:
    """Return several values as one; a list counts what it repeats."""
    match values:
        case [Collection("{}", (only,))] if not str(only).startswith(r"\{"):
            return only
        case [only]:
            return only
    repeats = len(set(values)) < len(values)
    return Collection.of("," if repeats else "{}", values)


def _union(parts: Iterable[Value], sign: str = r"\cup") -> Value:
    """Return a union or difference, which algebra compares.

    The parts of a union have no order.
    """
    items = sorted(parts, key=str) if sign == r"\cup" else list(parts)
    sets = all(isinstance(item, Collection) for item in items)
    kind = "set" if sets and all(map(is_exact, items)) else ""
    return Formula(f"{sign} ".join(map(str, items)), kind)


def _is_named(tokens: Sequence[str]) -> bool:
    return _NAMED.fullmatch(join(tokens)) is not None


def _item(tokens: list[str]) -> _Named:
    """Return the unknown and the values of one item of an answer."""
    if len(_split(tokens, _ORDER)) > 1:
        return _relation(tokens)
    sides = _split(tokens, ("=",))
    if len(sides) > 1:
        return _equation(sides)
    sides = _split(tokens, (r"\in", r"\equiv"))
    if list(map(_is_named, sides)) == [True, False]:
        return join(sides[0]), _alternatives(sides[1])
    text = join(tokens)
    if re.fullmatch("[A-Z]{2,}", text):
        return "", [phrase(text)]
    return "", _alternatives(tokens)


def _equation(sides: list[list[str]]) -> _Named:
    """Return the value of an unknown, or that of a chain of equal constants."""
    rest = list(sides)
    names = []
    while len(rest) > 1 and _is_named(rest[0]):
        names.append(rest.pop(0))
    if len(sides) == 2 and not names and _is_named(sides[1]):
        names.append(rest.pop())
    if len(rest) > 1:
        points = list(map(evaluate, rest))
        claim = any(are_far(point, points[-1]) for point in points)
    else:
        first = names[0][0]
        recursive = is_letter(first) and first in rest[0]
        claim = recursive or _is_named(rest[0])
    if claim:
        whole = "=".join(map(join, sides))
        return "", [Formula(whole, _kind("relation", sides))]
    return "=".join(sorted(map(join, names))), _alternatives(rest[-1])


def _kind(kind: str, parts: Sequence[Sequence[str]]) -> str:
    return kind if all(map(_is_readable, parts)) else ""


def _relation(tokens: list[str]) -> _Named:
    """Return the interval of `low < x < high`, or else the relation itself."""
    sides = _split(tokens, _ORDER)
    relation = Formula(join(tokens), _kind("relation", sides))
    signs = [token for token in tokens if token in _ORDER]
    below = {sign in _BELOW for sign in signs}
    if False in below:
        signs.reverse()
        sides.reverse()
    if len(sides) == 2:
        place = 0 if _is_named(sides[0]) else 2
        sides.insert(place, [r"\infty"] if place else ["-", r"\infty"])
        signs.insert(place, "<")
    if len(below) > 1 or len(sides) != 3 or not _is_named(sides[1]):
        return "", [relation]
    ends = (_value(sides[0]), _value(sides[2]))
    for end in ends:
        if isinstance(end, Formula) and not end.constant:
            return "", [relation]
    delimiters = "(["[len(signs[0]) > 1] + ")]"[len(signs[1]) > 1]
    return join(sides[1]), [Collection(delimiters, ends)]


def _alternatives(tokens: list[str]) -> list[Value]:
    """Return the values of one item: a sign of plus or minus means two."""
    if tokens.count(r"\pm") != 1 or tokens[0] == r"\{":
        return [_value(tokens)]
    text = " ".join(tokens)
    plus = _value(text.replace(r"\pm", "+").removeprefix("+ ").split(" "))
    minus = _value(text.replace(r"\pm", "-").split(" "))
    return list({plus, minus})


def _value(tokens: list[str]) -> Value:
    """Return one value: a number, an interval, a union, a matrix or a collection."""
    if not tokens:
        raise Ambiguous("a part is empty")
    text = join(tokens)
    if text in _NAMED_VALUES:
        return _NAMED_VALUES[text]
    if text.startswith(r"\text{") and len(tokens) == 1:
        return phrase(text[6:-1])
    if re.fullmatch(r"[A-Z]|\([A-Z]\)", text):
        return Word(text.strip("()"))
    if tokens.count(":") == 1 and not re.search(r":\d\d$", text):
        tokens = ["/" if token == ":" else token for token in tokens]
    for sign in (r"\cup", r"\setminus"):
        parts = _split(tokens, (sign,))
        if len(parts) > 1:
            return _union(map(_value, parts), sign)
    bracketed = _bracketed(tokens)
    if bracketed is not None:
        return bracketed
    point = None
    try:
        point = evaluate(tokens)
    except Ambiguous:
        raise
    except ZeroDivisionError:
        return Formula(text)
    except ArithmeticError:
        pass
    if isinstance(point, Fraction):
        return point
    return Formula(text, _kind("number", [tokens]), point)


_PUNCTUATION = re.compile(
    r"(?<=[A-Za-z])[-'](?=[A-Za-z])|(?<!\d)[.:]|[.:](?!\d)|[^\w<>=+*/%^.: -]|_",
    re.ASCII,
)


def phrase(text: str) -> Value:
    """Return words without case and punctuation, or the number that they spell."""
    if re.fullmatch("[A-Z]", text):
        return Word(text)
    kept = " ".join(_PUNCTUATION.sub("", text).casefold().split())
    if not re.search(r"[a-z0-9]", kept):
        raise Ambiguous("no words")
    return _NAMED_VALUES.get(kept, Word(kept))


def _bracketed(tokens: list[str]) -> Value | None:
    """Return what is within brackets around the whole: a set, a tuple or a matrix."""
    *before, last = _depths(tokens)
    if last or min(before, default=0) < 1:
        return None
    kind = tokens[0] + tokens[-1]
    items = _split(tokens[1:-1], (",", r"\\"))
    if tokens[0] == r"\begin{pmatrix}":
        rows = [map(_value, _split(row, "&")) for row in items]
        return Collection.of("matrix", map(partial(Collection.of, "row"), rows))
    if kind == r"\{\}":
        return Collection.of("{}", chain(*map(_alternatives, items)))
    if kind in INTERVALS and len(items) > 1:
        return Collection.of(kind, map(_value, items))
    return None


def _is_readable(tokens: Sequence[str]) -> bool:
    """Whether algebra reads tokens as they are meant."""
    depths = _depths(tokens) or [1]
    closed = depths[-1] == 0 == min(depths)
    known = all(map(_READABLE.fullmatch, tokens))
    return closed and known and not _UNSURE.search(join(tokens))
