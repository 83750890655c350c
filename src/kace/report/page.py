"""What a page is before it is HTML, the addresses it links to, and how it is drawn. Every value is escaped."""

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
from markupsafe import Markup

from kace.errors import KaceError
from kace.markup import seen
from kace.words import counted, plural, points, signed

if TYPE_CHECKING:
    from kace.report.workspace import Workspace

MAX_FILE_NAME = 80
# What a page in a file may do: load what lies beside it, ask no server and send nothing. Browsers differ in whether a
# file is itself (`'self'`) to another file, hence `file:`, which an HTTP page cannot use.
FILE_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; font-src 'self' file:; "
    "img-src 'self' file: data:; form-action 'none'; base-uri 'none'"
)
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
_SOLVE = re.compile("/run/([^/]+)/problem/([^/]+)/([^/]+)")


class NotHere(KaceError):
    """A page, or what it is about, that does not exist. The server answers 404."""


class StillReading(KaceError):
    """A source that a page needs whole and that is still being read. The server answers with a page that waits."""


@dataclass(frozen=True, slots=True)
class Links:
    """The one place where addresses are made: paths, or, where `static`, files of one flat folder, without a query."""

    static: bool = False
    noted: Callable[[str], None] = lambda path: (
        None
    )  # told of every path that a file links to

    def __call__(self, *parts: str, **query: str | int | None) -> str:
        """The address of the page at a path, given in parts. Empty values and the first page are left out of it."""
        path = path_of(*parts)
        if self.static:
            self.noted(path)
            return address_of(path)
        said = {
            name: value
            for name, value in query.items()
            if value not in (None, "") and (name, value) != ("page", 1)
        }
        return path + (f"?{urlencode(said)}" if said else "")


def path_of(*parts: str) -> str:
    """A canonical path from parts, each kept apart from the others whatever it holds."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def solve_key(run: str, seed: str) -> str:
    """What a solve is called on the page of its problem; no name of a run has the sign between."""
    return f"{run}~{seed}"


def address_of(path: str) -> str:
    """Where an export has a path's page: a file, or a solve in the file of its problem."""
    solve = _SOLVE.fullmatch(path)
    return file_name(path) + (f"#{solve_key(solve[1], solve[3])}" if solve else "")


def file_name(path: str) -> str:
    """The file that holds a path's page: readable, and another for another path. Solves of a problem share one."""
    if path == "/":
        return "index.html"
    if solve := _SOLVE.fullmatch(path):
        path = f"/problem/{solve[2]}"
    plain = _PLAIN.sub("-", path.strip("/")).strip("-.")[:MAX_FILE_NAME]
    return f"{plain}-{hashlib.sha256(path.encode()).hexdigest()[:8]}.html"


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What was asked for: the parts of the path that a pattern names, the query, and how links are made."""

    workspace: Workspace
    link: Links = field(default_factory=Links)
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def static(self) -> bool:
        """Whether the page becomes a file."""
        return self.link.static

    def patience(self, seconds: float) -> float | None:
        """How long the page may wait for something; a file is written once, so it waits until that is there."""
        return None if self.static else max(0.0, seconds)

    def choice(self, name: str, known: Sequence[str], default: str = "") -> str:
        """A query value that is one of those known; the default for any other, so that no address is an error."""
        value = "" if self.static else self.query.get(name, "")
        return value if value in known else default


class Crumb(NamedTuple):
    """A step of the way to a page."""

    name: str
    parts: tuple[str, ...] = ()


HOME = Crumb("Home")


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its template, the values it shows, and its place."""

    template: str
    title: str
    values: Mapping[str, object] = field(default_factory=dict)
    crumbs: tuple[Crumb, ...] = (
        HOME,
    )  # from the home page down, without the page itself
    refresh: float | None = (
        None  # seconds after which a served page looks for news; a file never does
    )
    status: int = 200


class Slice(NamedTuple):
    """The rows of one page of a list, with the page's number from 1 and the rows before these."""

    rows: Sequence[Any]
    number: int
    pages: int
    start: int
    total: int


def slice_of(
    request: PageRequest,
    rows: Sequence[Any] | Callable[[int, int], Sequence[Any]],
    size: int,
    total: int | None = None,
    in_file: int = 1_000_000,
) -> Slice:
    """The page of a list that was asked for, or the nearest; `rows(limit, offset)` fetches it. A file holds all."""
    total = len(rows) if isinstance(rows, Sequence) else total or 0
    asked = request.query.get("page", "")
    pages = 1 if request.static else max(1, -(-total // size))
    number = (
        min(pages, max(1, int(asked)))
        if asked.isascii() and asked.isdigit() and len(asked) <= 6
        else 1
    )
    limit = in_file if request.static else size
    start = (number - 1) * size
    shown = (
        rows[start : start + limit]
        if isinstance(rows, Sequence)
        else rows(limit, start)
    )
    return Slice(shown, number, pages, start, total)


def render(template: str, values: Mapping[str, object]) -> str:
    """A template with its values."""
    return environment().get_template(template).render(values)


def render_document(template: str, **values: object) -> str:
    """A page that needs nothing else: its style is in it, and it has no script, no font and no network."""
    style = Markup(assets()["kace.css"].decode())
    return render(template, {**values, "policy": REPORT_POLICY, "style": style})


@cache
def environment() -> Environment:
    """The templates. Whatever is put into one is escaped, and stripped of what nobody would see."""
    from kace.cards.card import lift_of
    from kace.ladder.retrieve import estimate
    from kace.report.scale import band, lift_scale
    from kace.report.text import inline, maths, prose

    def finalized(value: object) -> object:
        if value is None:
            return ""
        return (
            seen(value)
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        )

    made = Environment(
        loader=PackageLoader("kace.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalized,
    )
    made.trim_blocks = made.lstrip_blocks = True
    made.filters |= {
        "counted": counted,
        "plural": plural,
        "points": points,
        "signed": signed,
    }
    made.filters |= {"short": short, "ago": ago, "utc": utc}
    made.filters |= {
        "band": band,
        "breakable": breakable,
        "inline": inline,
        "maths": maths,
        "prose": prose,
    }
    made.filters |= {
        "lift": lift_of,
        "lift_scale": lift_scale,
        "tokens": estimate,
        "moment": moment,
    }
    made.filters |= {
        "n": "{:,}".format,
        "percent": lambda share, digits=1: f"{100 * share:.{digits}f}\u00a0%",
    }
    made.globals["file_policy"] = FILE_POLICY
    return made


def breakable(name: str) -> Markup:
    """A name, marked up or not, that may be broken after its underscores, so that it fits a phone."""
    shown = name if isinstance(name, Markup) else Markup.escape(seen(name))
    return Markup(str(shown).replace("_", "_<wbr>"))


def short(number: int) -> str:
    """A large number in few digits."""
    if number < 100_000:
        return f"{number:,}"
    return (
        f"{number / 1e6:.1f}\u00a0M"
        if number >= 999_500
        else f"{number / 1e3:.0f}\u00a0k"
    )


def ago(moment: float) -> str:
    """How long a moment is past, such as `3 minutes ago`."""
    past = time.time() - moment
    units = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
    return next(
        (
            f"{counted(int(past // size), unit)} ago"
            for size, unit in units
            if past >= size
        ),
        "just now",
    )


def moment(time: str) -> float | None:
    """A time in seconds since 1970; `None` where somebody else wrote it in another form."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(time).timestamp()
    return None


def utc(moment: float, form: str = "%Y-%m-%d %H:%M UTC") -> str:
    """A moment, given in seconds since 1970, as a date."""
    return datetime.fromtimestamp(moment, UTC).strftime(form)


@cache
def assets() -> Mapping[str, bytes]:
    """Every shared file by its name. What is not in here cannot be asked for."""
    folder = Path(__file__).parent / "static"
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@cache
def assets_mark() -> str:
    """Changes whenever a shared file does."""
    digest = hashlib.sha256()
    for name, content in assets().items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]
