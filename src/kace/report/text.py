"""Text that a model or a person wrote, as safe HTML: Markdown, with the TeX left for the browser as `class="math"`.

A link or an image is shown as its words and its address, never as something to click or to fetch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from kace.markup import seen

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

MAX_CHARS = 200_000  # a longer text is shown as it is, without being read for structure
MAX_TEX = 4_000
MAX_DEPTH = 8  # levels of quotes and lists; what is nested deeper is text

_PRIVATE = re.compile("[\ue000-\uf8ff]")
_HELD = re.compile("\ue000([0-9]+)\ue001")
_BULLET = re.compile(r"^( *)\u2022(?=[ \t])", re.MULTILINE)
_OPENER = re.compile(
    r"(?P<fence>^ {0,3}(?P<bar>`{3,}|~{3,})[^\n`]*$)|(?P<escape>\\[$`])|(?P<code>`{1,3})|(?P<display>\$\$|\\\[)"
    r"|\\begin\{(?P<env>[a-z]{1,16}\*?)\}|(?P<inline>\\\()|(?P<dollar>\$(?=[^\s$]))|(?P<boxed>\\boxed(?=\{))"
    r"|!?\[(?P<words>[^\[\]\n]{0,300})\]\((?P<address>[^()\s]{0,500})[^()\n]{0,200}\)",
    re.MULTILINE,
)
_ENVIRONMENT = re.compile(
    r"(align(at|ed)?|equation|gather(ed)?|multline|split|cases|array|[bpv]?matrix)\*?"  # those that KaTeX knows
)
_CLOSERS = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}
_ALONE = ["list_item_open", "paragraph_open", "list_item_close"]


def prose(value: str) -> Markup:
    """The text as HTML. Whatever it says, nothing in it runs, loads or leads anywhere."""
    plain = _PRIVATE.sub("", seen(value.replace("\r\n", "\n").replace("\r", "\n")))
    if len(plain) > MAX_CHARS:
        return Markup('<pre class="code long">{}</pre>').format(plain)
    held: list[Markup] = []
    html = _parser().render(_without_maths(_BULLET.sub(r"\1-", plain), held))
    return Markup('<div class="prose">{}</div>').format(_freed(html, held))


def inline(value: str) -> Markup:
    """One line of text with its maths, code and emphasis; no paragraphs."""
    plain = _PRIVATE.sub("", seen(" ".join(value.split())))
    if len(plain) > MAX_CHARS:
        return Markup.escape(plain)
    held: list[Markup] = []
    return _freed(_parser().renderInline(_without_maths(plain, held)), held)


def maths(tex: str, *, display: bool = False) -> Markup:
    """TeX for the browser to set; readable as it is where it does not."""
    return Markup('<span class="math{}">{}</span>').format(
        " display" if display else "", seen(tex)
    )


def marked(line: str, pattern: re.Pattern[str]) -> Markup:
    """A line of text with what a pattern finds marked."""
    parts = re.compile(f"({pattern.pattern})", pattern.flags).split(
        line
    )  # every other one is a find
    shown = (
        Markup("<mark>{}</mark>" if n % 2 else "{}").format(seen(part))
        for n, part in enumerate(parts)
    )
    return Markup("").join(shown)


def _freed(html: str, held: Sequence[Markup]) -> Markup:
    """The HTML with what was held put back in; its marks stand in text only, which is escaped."""
    return Markup(_HELD.sub(lambda mark: held[int(mark[1])], html))


def _without_maths(plain: str, held: list[Markup]) -> str:
    """The text with maths and addresses held by marks, read from left to right so that none hides in code."""
    out: list[str] = []
    at = 0
    while opener := _OPENER.search(plain, at):
        out.append(plain[at : opener.start()])
        piece, at = _piece(plain, opener)
        if isinstance(piece, Markup):
            held.append(piece)
            piece = f"\ue000{len(held) - 1}\ue001"
        if opener["address"] is not None:
            piece = _without_maths(opener["words"], held) + piece
        out.append(piece)
    return "".join((*out, plain[at:]))


def _piece(plain: str, opener: re.Match[str]) -> tuple[str | Markup, int]:
    """What begins at an opener and where it ends; the opener itself as text where nothing closes it."""
    start = opener.start()
    end = opener.end()
    mark = opener[0]
    kind = opener.lastgroup
    if kind == "fence":
        close = re.compile(
            rf"^ {{0,3}}{re.escape(opener['bar'])}[`~]*[ \t]*$", re.MULTILINE
        ).search(plain, end)
        return plain[
            start : close.end() if close else len(plain)
        ], close.end() if close else len(plain)
    if kind == "escape":
        return Markup.escape(mark[1]), end
    if kind == "address":
        words = f" ({opener['address']})" if opener["words"] else opener["address"]
        return Markup('<span class="address">{}</span>').format(words), end
    if kind == "boxed":
        return _boxed(plain, start, end)
    closer = {"code": mark, "dollar": "$", "env": f"\\end{{{opener['env']}}}"}.get(
        str(kind)
    ) or _CLOSERS[mark]
    close_at = plain.find(closer, end, end + MAX_TEX)
    inside = plain[end : max(close_at, end)]
    stop = close_at + len(closer)
    if kind == "code":
        # Code that nothing closes is no code: its marks are held, so that they are only text.
        code = Markup("<code>{}</code>").format(inside.strip())
        return (Markup.escape(mark), end) if close_at < 0 else (code, stop)
    if (
        close_at < 0
        or not inside.strip()
        or (kind == "env" and not _ENVIRONMENT.fullmatch(opener["env"]))
    ):
        return mark, end
    if (
        kind == "dollar"
    ):  # `$x$`, but not `$5 and $6`: no blank at its end, no digit after it, no empty line in it
        money = (
            inside[-1].isspace() or plain[stop : stop + 1].isdigit() or "\n\n" in inside
        )
        return (mark, end) if money else (maths(inside), stop)
    return maths(
        plain[start:stop] if kind == "env" else inside.strip(), display=kind != "inline"
    ), stop


def _boxed(plain: str, start: int, end: int) -> tuple[str | Markup, int]:
    """A `boxed` answer that stands outside maths, as models like to end."""
    depth = 0
    for place in range(end, min(len(plain), end + 400)):
        depth += {"{": 1, "}": -1}.get(plain[place], 0)
        if depth == 0:
            return maths(plain[start : place + 1]), place + 1
    return plain[start:end], end


@cache
def _parser() -> MarkdownIt:
    """Markdown without HTML, links, images, escapes and indented code: texts of models use these for other things."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import emphasis

    made = MarkdownIt(
        "commonmark",
        {"html": False, "breaks": True, "maxNesting": 100, "xhtmlOut": False},
    )
    made.disable(
        [
            "code",
            "lheading",
            "reference",
            "html_block",
            "html_inline",
            "link",
            "image",
            "autolink",
            "entity",
        ]
    )
    made.disable(["escape", "backticks"])
    plainly = emphasis.tokenize
    deeper = made.block.tokenize

    def outside_words(state: StateInline, silent: bool) -> bool:
        """A single star inside a word is a product, not emphasis."""
        single = (
            state.src[state.pos] == "*"
            and state.scanDelims(state.pos, True).length == 1
        )
        beside = (
            state.src[state.pos - 1 : state.pos] if state.pos else "",
            state.src[state.pos + 1 : state.pos + 2],
        )
        return not (single and all(map(str.isalnum, beside))) and plainly(state, silent)

    def shallow(state: StateBlock, start: int, end: int) -> None:
        if state.level < MAX_DEPTH:
            deeper(state, start, end)
            return
        token = state.push("inline", "", 0)
        token.content = state.getLines(start, end, 0, False).strip()
        token.children = []
        state.line = end

    def below_the_page(state: StateCore) -> None:
        """Headings begin below those of the page; a paragraph that is all of a list item is not set apart."""
        for place, token in enumerate(state.tokens):
            if token.type.startswith("heading"):
                token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
            token.info = ""  # the language of a fence, which would become an attribute
            around = state.tokens[max(0, place - 1) : place + 4]
            if [around[0].type, token.type, around[-1].type] == _ALONE:
                around[1].hidden = around[3].hidden = True

    made.inline.ruler.at("emphasis", outside_words)
    made.block.tokenize = shallow  # type: ignore[method-assign,assignment]
    made.core.ruler.push("below_the_page", below_the_page)
    return made
