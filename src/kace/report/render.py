"""From values to HTML: templates, addresses, and texts that others wrote.

Every value is escaped where a template writes it. A text of a model or a person is
rendered as Markdown whose TeX is left for the browser to set; nothing in it runs, loads
or leads anywhere.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from kace.cards.card import Card, LiftMark, lift_of
from kace.errors import KaceError, counted, plural, points, redact
from kace.ladder.retrieve import estimate
from kace.report.charts import (
    EXIT_NAMES,
    breadth,
    fitted,
    lift_scale,
    strip_unseen,
)
from kace.runs.compare import p_text
from kace.runs.stats import wilson

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

    from kace.report.workspace import Workspace

PHONE = 350.0  # width of a chart on a phone
MAX_FILE_NAME = 80
LEFT_OUT = "left-out.html"
# A page in a file may load what lies beside it, contacts no server and sends nothing.
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

        Empty values are left out of the query.
        """
        path = path_of(*parts)
        if self.exported is not None:
            return file_name(path) if path in self.exported else LEFT_OUT
        values = {name: value for name, value in query.items() if value}
        return f"{path}?{urlencode(values)}" if values else path


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The parts of the path that name the page, the query, and how links are made."""

    workspace: Workspace
    link: Links = Links()
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    reply: str | None = None
    """The text of a form that was sent."""

    @property
    def static(self) -> bool:
        """Whether the page becomes a file."""
        return self.link.exported is not None

    def choice(self, name: str, known: Collection[str]) -> str:
        """Return a value of the query; empty if it is not a known one."""
        value = self.query.get(name, "")
        return value if value in known else ""


@dataclass(frozen=True, slots=True)
class Page:
    """A template with its values, and the place of the page."""

    template: str
    title: str
    values: Mapping[str, object] = field(default_factory=dict)
    above: tuple[str, ...] = ()
    """The item whose page leads to this one, as parts of its path; home leads to all."""
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
    rows: Sequence[Any],
    size: int,
    in_file: int | None = None,
) -> Slice:
    """Return the page of a list that was asked for; a file holds all, or `in_file`."""
    total = len(rows)
    if request.static:
        return Slice(rows[:in_file], 1, 1, 0, total)
    pages = max(1, -(-total // size))
    asked = request.query.get("page", "")
    number = 1
    if re.fullmatch("[1-9][0-9]{0,5}", asked):
        number = min(pages, int(asked))
    start = (number - 1) * size
    return Slice(rows[start : start + size], number, pages, start, total)


def error_page(status: int, title: str, *sentences: str) -> Page:
    """Return a page that says what is wrong, and leads on."""
    lines = [f"{words[0].upper()}{words[1:]}." for words in sentences if words]
    values = {"status": status, "sentences": lines}
    return Page("error.html", title, values, status=status)


# Templates


def document(
    page: Page,
    link: Links,
    path: str = "",
    kinds: Mapping[str, str] | None = None,
) -> str:
    """Return a page of the viewer in its frame; the bar leads to the kinds."""
    static = link.exported is not None
    folder = "assets" if static else f"/assets/{assets_mark()}"
    frame = {
        "page": page,
        "link": link,
        "static": static,
        "path": path,
        "kinds": kinds,
        "refresh": None if static else page.refresh,
        "assets": folder,
    }
    template = environment().get_template(page.template)
    return template.render({**page.values, **frame})


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
    for filter_ in (
        *(ago, breakable, breadth, counted, fitted, lift_scale),
        *(maths, percent, plural, points, prose, p_text, redact, utc, wilson),
    ):
        made.filters[filter_.__name__] = filter_
    made.filters |= {
        "inline": prose_line,
        "lift": lift_of,
        "measured_lift": measured_lift,
        "n": "{:,}".format,
        "seen": strip_unseen,
        "px": lambda value: f"{round(value, 2):g}",
        "tokens": estimate,
    }
    made.globals |= {
        "exit_names": EXIT_NAMES,
        "file_policy": FILE_POLICY,
        "phone": PHONE,
    }
    return made


def _visible(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return strip_unseen(value)
    return value


def measured_lift(card: Card) -> LiftMark | None:
    """Return the lift of a card if it was measured on enough problems."""
    found = lift_of(card)
    return None if found is None or found.mark.vague else found.mark


def breakable(name: str) -> Markup:
    """Return a name that may be broken after its underscores, to fit a phone."""
    return Markup(
        Markup.escape(strip_unseen(name)).replace("_", Markup("_<wbr>"))
    )


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent."""
    return f"{100 * share:.{digits}f}\u00a0%"


def ago(moment: float) -> str:
    """Return how long ago a moment was, such as `3 minutes ago`."""
    past = time.time() - moment
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if past >= size:
            return f"{counted(int(past // size), unit)} ago"
    return "just now"


def utc(moment: float, form: str = "%Y-%m-%d %H:%M UTC") -> str:
    """Return a moment, in seconds since 1970, as a date."""
    return datetime.fromtimestamp(moment, UTC).strftime(form)


@cache
def assets() -> Mapping[str, bytes]:
    """Return every file that pages share, by name. No other file is served."""
    folder = Path(__file__).parent / "static"
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


@cache
def assets_mark() -> str:
    """Return a mark that changes whenever a shared file does."""
    return hashlib.sha256(b"\0".join(assets().values())).hexdigest()[:12]


# Markdown and TeX

MAX_CHARS = 200_000  # a longer text is shown as it is
PRIVATE = re.compile("[\ue000-\uf8ff]")
HELD = re.compile("\ue000([0-9]+)\ue001")
BULLET = re.compile(r"^( *)\u2022(?=[ \t])", re.MULTILINE)
PIECE = re.compile(
    r"""
    # Code is left to Markdown; a fence that is not closed goes to the end.
    (?P<code>^[ ]{0,3}(?P<bar>`{3,}+|~{3,}+)[^\n`]*\n.*?(?:^[ ]{0,3}(?P=bar)|\Z)
      |(?P<tick>`{1,3}+)(?!`)[^`]{1,4000}(?P=tick))
    |\\(?P<escaped>[$`])
    |(?<=[^\W_])(?P<star>\*)(?=[^\W_])  # a product, not emphasis
    |\$\$(?P<dollars>[^$]{1,4000})\$\$
    |\\\[(?P<square>(?:(?!\\[\[\]]).){1,4000})\\\]
    |\\\((?P<round>(?:(?!\\[()]).){1,4000})\\\)
    |(?P<block>\\begin\{(?P<name>(?:align(?:at|ed)?|equation|gather(?:ed)?|multline
      |split|cases|array|[bpv]?matrix)\*?)\}
      (?:(?!\\begin\{(?P=name)\}).){1,4000}?\\end\{(?P=name)\})
    # `$5 and $6` is money: a blank at its end, or a digit after it.
    |\$(?P<dollar>[^\s$](?:(?:[^$\n]|\n(?!\s*\n)){0,4000}[^\s$])?)\$(?!\d)
    # An answer outside maths, as models like to end; braces nest twice.
    |(?P<boxed>\\boxed\{(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,99}\}){0,199}\}){0,399}\})
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
DISPLAYED = ("dollars", "square", "block")


def prose(value: str) -> Markup:
    """Return a text as HTML in which nothing runs, loads or leads anywhere."""
    plain = strip_unseen(value.replace("\r\n", "\n").replace("\r", "\n"))
    if len(plain) > MAX_CHARS:
        return Markup('<pre class="code long">{}</pre>').format(plain)
    html = _rendered(BULLET.sub(r"\1-", plain), _markdown().render)
    return Markup('<div class="prose">{}</div>').format(html)


def prose_line(value: str) -> Markup:
    """Return one line of text with its maths, code and emphasis."""
    plain = strip_unseen(" ".join(value.split()))
    if len(plain) > MAX_CHARS:
        return Markup.escape(plain)
    return _rendered(plain, _markdown().renderInline)


def maths(tex: str, *, display: bool = False) -> Markup:
    """Return TeX for the browser to set; it is readable where that fails."""
    classes = "math display" if display else "math"
    return Markup('<span class="{}">{}</span>').format(
        classes, strip_unseen(tex)
    )


def _rendered(text: str, render: Callable[[str], str]) -> Markup:
    """Return Markdown as HTML.

    A mark replaces each piece of maths, so that Markdown reads nothing inside it.
    """
    held: list[Markup] = []

    def hold(found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        if kind == "code":
            return found[0]
        if kind in ("escaped", "star"):
            held.append(Markup.escape(found[kind]))
        else:
            tex = found[kind].strip()
            held.append(maths(tex, display=kind in DISPLAYED))
        return f"\ue000{len(held) - 1}\ue001"

    html = render(PIECE.sub(hold, PRIVATE.sub("", text)))
    return Markup(HELD.sub(lambda mark: held[int(mark[1])], html))


@cache
def _markdown() -> MarkdownIt:
    """Return Markdown without HTML, links, images, escapes and indented code.

    Texts of models use the characters of these for other things.
    """
    made = MarkdownIt("commonmark", {"html": False, "breaks": True})
    made.options["xhtmlOut"] = False
    made.options["maxNesting"] = 100
    made.disable(["code", "lheading", "reference", "html_block", "html_inline"])
    made.disable(["link", "image", "autolink", "entity", "escape"])

    def fit_the_page(state: StateCore) -> None:
        """Put headings below those of the page, and drop the languages of fences."""
        for token in state.tokens:
            token.info = ""  # it would become an attribute
            if token.type.startswith("heading"):
                token.tag = f"h{min(6, int(token.tag[1]) + 2)}"

    made.core.ruler.push("fit_the_page", fit_the_page)
    return made
