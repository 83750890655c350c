"""From values to HTML: templates, addresses, and texts that others wrote.

Every value is escaped where a template writes it. A text of a model or a person is
rendered as Markdown whose TeX is left for the browser to set; nothing in it runs, loads
or leads anywhere.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.rules_inline import emphasis
from markupsafe import Markup

from kace.cards.card import lift_of
from kace.errors import KaceError
from kace.ladder.retrieve import estimate
from kace.markup import seen
from kace.report.charts import Picture, inline, lift_scale
from kace.words import counted, plural, points, signed

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

    from kace.report.workspace import Workspace

WIDE = 880.0  # width of a chart on a screen
PHONE = 350.0  # width of a chart on a phone
MAX_FILE_NAME = 80
LEFT_OUT = "left-out.html"
# A page in a file may load what lies beside it, asks no server and sends nothing.
# Browsers differ in whether a file is itself ('self') to another file, hence `file:`.
FILE_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:;"
    " font-src 'self' file:; img-src 'self' file: data:; form-action 'none';"
    " base-uri 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)
BANDS = (
    (0.05, "lift-1", "+5 points or more"),
    (0.01, "lift-2", "+1 to +5"),
    (-0.01, "lift-3", "within 1 of zero"),
    (-0.05, "lift-4", "−1 to −5"),
    (float("-inf"), "lift-5", "−5 or less"),
)
"""From which mean lift on a place has which colour, and what the colour means."""
UNMEASURED = "lift-0"


class NotHere(KaceError):
    """A page, or what it is about, that does not exist. The server answers 404."""


# Pages and their addresses


def path_of(*parts: str) -> str:
    """Return a path from parts, each kept apart whatever it holds."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def file_name(path: str) -> str:
    """Return the name of the file that holds the page of a path in an export."""
    if path == "/":
        return "index.html"
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", path).strip("-.")[:MAX_FILE_NAME]
    return f"{plain}-{hashlib.sha256(path.encode()).hexdigest()[:8]}.html"


@dataclass(frozen=True, slots=True)
class Links:
    """Makes the addresses of pages: paths, or names of files in one flat folder."""

    exported: frozenset[str] | None = None
    """The paths that an export writes; `None` for a server."""

    def __call__(self, *parts: str, **query: str | int | None) -> str:
        """Return the address of the page at a path, given in parts.

        Empty values and the first page of a list are left out of the query.
        """
        path = path_of(*parts)
        if self.exported is not None:
            return file_name(path) if path in self.exported else LEFT_OUT
        values = {}
        for name, value in query.items():
            if value not in (None, "") and (name, value) != ("page", 1):
                values[name] = value
        return f"{path}?{urlencode(values)}" if values else path


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The parts of the path that name the page, the query, and how links are made."""

    workspace: Workspace
    link: Links = Links()
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def static(self) -> bool:
        """Whether the page becomes a file."""
        return self.link.exported is not None

    def choice(self, name: str, known: Sequence[str], default: str = "") -> str:
        """Return a value of the query, or the default if it is not a known one."""
        value = self.query.get(name, "")
        return value if value in known else default


class Crumb(NamedTuple):
    """A step of the way to a page."""

    name: str
    parts: tuple[str, ...] = ()


HOME = Crumb("Home")


@dataclass(frozen=True, slots=True)
class Page:
    """A template with its values, and the place of the page."""

    template: str
    title: str
    values: Mapping[str, object] = field(default_factory=dict)
    crumbs: tuple[Crumb, ...] = (HOME,)
    refresh: float | None = None
    """Seconds after which a served page is fetched again."""
    status: int = 200


class Slice(NamedTuple):
    """The rows of one page of a list."""

    rows: Sequence[Any]
    number: int  # of the page, from 1
    pages: int
    start: int  # rows before these
    total: int


def slice_of(
    request: PageRequest,
    total: int,
    rows: Sequence[Any] | Callable[[int, int], Sequence[Any]],
    size: int,
    in_file: int = 100_000,
) -> Slice:
    """Return the page of a list that was asked for; `rows(limit, offset)` may read it.

    A file holds the first `in_file` rows on one page.
    """

    def read(limit: int, offset: int) -> Sequence[Any]:
        return rows(limit, offset) if callable(rows) else rows[offset:][:limit]

    if request.static:
        return Slice(read(in_file, 0), 1, 1, 0, total)
    pages = max(1, -(-total // size))
    asked = request.query.get("page", "")
    number = 1
    if asked.isascii() and asked.isdigit() and len(asked) <= 6:
        number = min(pages, max(1, int(asked)))
    start = (number - 1) * size
    return Slice(read(size, start), number, pages, start, total)


def error_page(status: int, title: str, *sentences: str) -> Page:
    """Return a page that says what is wrong, and leads on."""
    lines = []
    for words in filter(None, sentences):
        end = "" if words[-1] in ".!?" else "."
        lines.append(words[0].upper() + words[1:] + end)
    values = {"status": status, "sentences": lines}
    return Page("error.html", title, values, status=status)


# Templates


def document(
    page: Page, link: Links, nav: Sequence[tuple[str, str, str]] = ()
) -> str:
    """Return a page of the viewer in its frame; `nav` holds the links of the bar."""
    static = link.exported is not None
    folder = "assets" if static else f"/assets/{assets_mark()}"
    frame = {
        "page": page,
        "link": link,
        "static": static,
        "nav": nav,
        "refresh": None if static else page.refresh,
        "asset": lambda name: f"{folder}/{name}",
    }
    return (
        environment()
        .get_template(page.template)
        .render({**page.values, **frame})
    )


def render_document(template: str, **values: object) -> str:
    """Return a page that needs nothing else: no script, no font, no network."""
    values["style"] = Markup(assets()["kace.css"].decode())
    values["policy"] = REPORT_POLICY
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """Return the templates. Values are escaped and stripped of invisible characters."""
    made = Environment(
        loader=PackageLoader("kace.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ago": ago,
        "band": band,
        "breakable": breakable,
        "chart": chart,
        "counted": counted,
        "inline": prose_line,
        "lift": lift_of,
        "lift_scale": lift_scale,
        "maths": maths,
        "moment": moment,
        "n": "{:,}".format,
        "percent": percent,
        "plural": plural,
        "points": points,
        "prose": prose,
        "short": short,
        "signed": signed,
        "tokens": estimate,
        "utc": utc,
    }
    made.globals["file_policy"] = FILE_POLICY
    return made


def _visible(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return seen(value)
    return value


def chart(draw: Callable[[float], Picture], width: float = WIDE) -> Markup:
    """Return a chart drawn for a screen and for a phone; the style shows one of them."""
    wide = inline(draw(width), "plot wide")
    return wide + inline(draw(PHONE), "plot narrow")


def band(lift: float | None) -> str:
    """Return the class of a mean lift's colour, rounded as the lift is written."""
    if lift is None:
        return UNMEASURED
    return next(name for least, name, _ in BANDS if round(lift, 3) >= least)


def breakable(name: str) -> Markup:
    """Return a name that may be broken after its underscores, to fit a phone."""
    shown = name if isinstance(name, Markup) else Markup.escape(seen(name))
    return Markup(str(shown).replace("_", "_<wbr>"))


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent."""
    return f"{100 * share:.{digits}f}\u00a0%"


def short(number: int) -> str:
    """Return a large number in few digits."""
    if number < 100_000:
        return f"{number:,}"
    if number < 999_500:
        return f"{number / 1e3:.0f}\u00a0k"
    return f"{number / 1e6:.1f}\u00a0M"


def ago(moment: float) -> str:
    """Return how long ago a moment was, such as `3 minutes ago`."""
    past = time.time() - moment
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if past >= size:
            return f"{counted(int(past // size), unit)} ago"
    return "just now"


def moment(written: str) -> float | None:
    """Return a written time in seconds since 1970; `None` if it has another form."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(written).timestamp()
    return None


def utc(moment: float, form: str = "%Y-%m-%d %H:%M UTC") -> str:
    """Return a moment, in seconds since 1970, as a date."""
    return datetime.fromtimestamp(moment, UTC).strftime(form)


@cache
def assets() -> Mapping[str, bytes]:
    """Return every file that pages share, by name. Nothing else can be asked for."""
    folder = Path(__file__).parent / "static"
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


@cache
def assets_mark() -> str:
    """Return a mark that changes whenever a shared file does."""
    digest = hashlib.sha256()
    for name, content in assets().items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


# Markdown and TeX

MAX_CHARS = 200_000  # a longer text is shown as it is
MAX_TEX = 4_000
MAX_DEPTH = 8  # levels of quotes and lists; what is nested deeper is text
PRIVATE = re.compile("[\ue000-\uf8ff]")
HELD = re.compile("\ue000([0-9]+)\ue001")
BULLET = re.compile(r"^( *)\u2022(?=[ \t])", re.MULTILINE)
OPENER = re.compile(
    r"(?P<fence>^ {0,3}(?P<bar>`{3,}|~{3,})[^\n`]*$)|(?P<escape>\\[$`])"
    r"|(?P<code>`{1,3})|(?P<display>\$\$|\\\[)|\\begin\{(?P<env>[a-z]{1,16}\*?)\}"
    r"|(?P<inline>\\\()|(?P<dollar>\$(?=[^\s$]))|"
    # An answer that stands outside maths, as models like to end; braces nest twice.
    r"(?P<boxed>\\boxed\{(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,99}\}){0,199}\}){0,399}\})",
    re.MULTILINE,
)
ENVIRONMENTS = re.compile(
    r"(align(at|ed)?|equation|gather(ed)?|multline|split|cases|array|[bpv]?matrix)\*?"
)
"""The environments that KaTeX sets."""
CLOSERS = {"$$": "$$", r"\[": r"\]", r"\(": r"\)", "$": "$"}


def prose(value: str) -> Markup:
    """Return a text as HTML in which nothing runs, loads or leads anywhere."""
    plain = PRIVATE.sub(
        "", seen(value.replace("\r\n", "\n").replace("\r", "\n"))
    )
    if len(plain) > MAX_CHARS:
        return Markup('<pre class="code long">{}</pre>').format(plain)
    held: list[Markup] = []
    html = _markdown().render(_hold_maths(BULLET.sub(r"\1-", plain), held))
    return Markup('<div class="prose">{}</div>').format(_put_back(html, held))


def prose_line(value: str) -> Markup:
    """Return one line of text with its maths, code and emphasis."""
    plain = PRIVATE.sub("", seen(" ".join(value.split())))
    if len(plain) > MAX_CHARS:
        return Markup.escape(plain)
    held: list[Markup] = []
    return _put_back(_markdown().renderInline(_hold_maths(plain, held)), held)


def maths(tex: str, *, display: bool = False) -> Markup:
    """Return TeX for the browser to set; it is readable where that fails."""
    classes = "math display" if display else "math"
    return Markup('<span class="{}">{}</span>').format(classes, seen(tex))


def marked(line: str, pattern: re.Pattern[str]) -> Markup:
    """Return a line of text with what a pattern finds marked."""
    parts = re.split(f"({pattern.pattern})", line, flags=pattern.flags)
    shown = Markup("")
    for number, part in enumerate(parts):  # every other one is a find
        word = Markup.escape(seen(part))
        shown += Markup("<mark>{}</mark>").format(word) if number % 2 else word
    return shown


def _put_back(html: str, held: Sequence[Markup]) -> Markup:
    """Return the HTML with what was held in place of its marks."""
    return Markup(HELD.sub(lambda mark: held[int(mark[1])], html))


def _hold_maths(plain: str, held: list[Markup]) -> str:
    """Return the text with marks instead of its maths, which goes to `held`.

    The text is read from left to right, so that no maths is found inside code.
    """
    out: list[str] = []
    at = 0
    while opener := OPENER.search(plain, at):
        out.append(plain[at : opener.start()])
        piece, at = _piece(plain, opener)
        if isinstance(piece, Markup):
            held.append(piece)
            piece = f"\ue000{len(held) - 1}\ue001"
        out.append(piece)
    out.append(plain[at:])
    return "".join(out)


def _piece(plain: str, opener: re.Match[str]) -> tuple[str | Markup, int]:
    """Return what begins at an opener, and where it ends.

    An opener that nothing closes is text.
    """
    start, end = opener.span()
    mark = opener[0]
    kind = opener.lastgroup
    if kind in ("fence", "bar"):
        bar = rf"^ {{0,3}}{re.escape(opener['bar'])}[`~]*[ \t]*$"
        close = re.compile(bar, re.MULTILINE).search(plain, end)
        stop = close.end() if close else len(plain)
        return plain[start:stop], stop
    if kind == "escape":
        return Markup.escape(mark[1]), end
    if kind == "boxed":
        return maths(mark), end
    if kind == "code":
        closer = mark
    elif kind == "env":
        closer = f"\\end{{{opener['env']}}}"
    else:
        closer = CLOSERS[mark]
    close_at = plain.find(closer, end, end + MAX_TEX)
    inside = plain[end : max(close_at, end)]
    stop = close_at + len(closer)
    if kind == "code":
        if close_at < 0:
            return Markup.escape(mark), end
        return Markup("<code>{}</code>").format(inside.strip()), stop
    if close_at < 0 or not inside.strip():
        return mark, end
    if kind == "dollar":
        # `$5 and $6` is money: a blank at its end, a digit after it, or an empty line.
        after = plain[stop : stop + 1]
        if inside[-1].isspace() or after.isdigit() or "\n\n" in inside:
            return mark, end
        return maths(inside), stop
    if kind == "env":
        if not ENVIRONMENTS.fullmatch(opener["env"]):
            return mark, end
        return maths(plain[start:stop], display=True), stop
    return maths(inside.strip(), display=kind == "display"), stop


@cache
def _markdown() -> MarkdownIt:
    """Return Markdown without HTML, links, images, escapes and indented code.

    Texts of models use the characters of these for other things.
    """
    options = {
        "html": False,
        "breaks": True,
        "maxNesting": 100,
        "xhtmlOut": False,
    }
    made = MarkdownIt("commonmark", options)
    made.disable(["code", "lheading", "reference", "html_block", "html_inline"])
    made.disable(["link", "image", "autolink", "entity", "escape", "backticks"])
    tokenize_emphasis = emphasis.tokenize
    tokenize_blocks = made.block.tokenize

    def outside_words(state: StateInline, silent: bool) -> bool:
        """Read emphasis, but not a single star inside a word, which is a product."""
        around = (
            state.src[max(0, state.pos - 1)] + state.src[state.pos + 1 :][:1]
        )
        inside = (
            len(around) == 2
            and around.isalnum()
            and state.src[state.pos] == "*"
        )
        if inside and state.scanDelims(state.pos, True).length == 1:
            return False
        return tokenize_emphasis(state, silent)

    def shallow(state: StateBlock, start: int, end: int) -> None:
        """Read blocks down to MAX_DEPTH; what is nested deeper is text."""
        if state.level < MAX_DEPTH:
            tokenize_blocks(state, start, end)
            return
        token = state.push("inline", "", 0)
        token.content = state.getLines(start, end, 0, False).strip()
        token.children = []
        state.line = end

    def fit_the_page(state: StateCore) -> None:
        """Put headings below those of the page, and set single paragraphs tight."""
        alone = ["list_item_open", "paragraph_open", "list_item_close"]
        for place, token in enumerate(state.tokens):
            if token.type.startswith("heading"):
                token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
            token.info = (
                ""  # the language of a fence, which would become an attribute
            )
            around = state.tokens[max(0, place - 1) : place + 4]
            if [around[0].type, token.type, around[-1].type] == alone:
                around[1].hidden = True
                around[3].hidden = True

    made.inline.ruler.at("emphasis", outside_words)
    made.block.tokenize = shallow  # type: ignore[method-assign,assignment]
    made.core.ruler.push("fit_the_page", fit_the_page)
    return made
