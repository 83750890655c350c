"""An evaluation as Markdown, for a README, an issue or an appendix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kace.evaluation.charts import NAMES
from kace.evaluation.compare import p_text
from kace.evaluation.report import Evaluation, lead
from kace.web.markup import seen
from kace.words import points

TEMPLATES = Path(__file__).parent / "templates"
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_SPECIAL = str.maketrans({**{char: f"\\{char}" for char in "\\`*_{}[]#|~!$"}, **_ENTITIES})


def markdown(found: Evaluation, pictures: Mapping[str, str] | None = None) -> str:
    """The whole report. `pictures` are links to the plots' files by name; text from outside is never markup."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else plain(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters |= {
        "percent": lambda share: "–" if share is None else f"{share:.1%}",
        "percents": lambda interval: "–" if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}",
        "points": points,
        "whole": lambda value: f"{value:,.0f}",
        "usd": lambda value: "–" if value is None else f"{value:,.2f}",
        "chance": lambda p: Markup(p_text(p).removeprefix("p ").removeprefix("= ")),
    }
    return pages.get_template("report.md").render(found=found, lead=lead(found), exits=NAMES, pictures=pictures or {})


def plain(text: str) -> str:
    """Text from outside on one line, with every character that Markdown or HTML reads escaped."""
    return " ".join(seen(text).split()).translate(_SPECIAL)
