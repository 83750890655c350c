"""Text that a model or a person wrote, as safe HTML: a small part of Markdown, with the TeX left for the browser.

Paragraphs, headings, lists, quotes, rules, code and emphasis. A link or an image is shown as its words and its address,
never as something to click or to fetch. Maths becomes `<span class="math" data-display="true|false">TeX</span>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kace.web.markup import Html, join, tag, text

MAX_CHARS = 200_000
"""A longer text is shown as it is, without being read for structure."""
MAX_TEX = 4_000
MAX_DEPTH = 4

_HELD = "\ue000{}\ue001"
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)[ \t]*([\w+-]{0,20})[^\n`]*$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_ITEM = re.compile(r"^( {0,12})(?:[-*+\u2022]|(\d{1,6})[.)])[ \t]+(?=\S)")
_RULE = re.compile(r"^ {0,3}(?:-[ \t]*){3,}$|^ {0,3}(?:\*[ \t]*){3,}$")
_QUOTE = re.compile(r"^ {0,3}>[ ]?")
_OPENER = re.compile(
    r"(?P<escape>\\[$`])|(?P<code>`{1,3})|(?P<display>\$\$|\\\[)|\\begin\{(?P<env>[a-z]{1,16}\*?)\}"
    r"|(?P<inline>\\\()|(?P<dollar>\$(?=[^\s$]))|(?P<boxed>\\boxed(?=\{))"
)
_ENVIRONMENTS = frozenset(
    (
        *("align", "alignat", "aligned", "equation", "gather", "gathered", "multline", "split", "cases", "array"),
        *("matrix", "bmatrix", "pmatrix", "vmatrix"),
    )
)
_INLINE = re.compile(
    r"!?\[(?P<words>[^\[\]\n]{0,300})\]\((?P<address>[^()\s]{0,500})[^()\n]{0,200}\)"
    r"|\*\*(?=\S)(?P<bold>(?:(?!\*\*).){1,600}?)(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=[^\s*])(?P<em>[^*\n]{1,400}?)(?<=\S)\*(?![\w*])"
    r"|(?<![\w_])_(?=[^\s_])(?P<under>[^_\n]{1,400}?)(?<=\S)_(?![\w_])",
    re.DOTALL,
)


@dataclass(slots=True)
class _Kept:
    """Pieces that are HTML already, each held in the text by a mark."""

    pieces: list[Html] = field(default_factory=list)

    def hold(self, piece: Html) -> str:
        self.pieces.append(piece)
        return _HELD.format(len(self.pieces) - 1)

    def freed(self, escaped: str) -> Html:
        return Html(re.sub("\ue000([0-9]+)\ue001", lambda mark: self.pieces[int(mark[1])], escaped))


def prose(value: str) -> Html:
    """The text as HTML. Whatever it says, nothing in it runs, loads or leads anywhere."""
    plain = _PRIVATE.sub("", value.replace("\r\n", "\n").replace("\r", "\n"))
    if len(plain) > MAX_CHARS:
        return tag("pre", plain, class_="code long")
    kept = _Kept()
    return tag("div", _blocks(_without_maths(_without_fences(plain, kept), kept).split("\n"), kept), class_="prose")


def maths(tex: str, *, display: bool = False) -> Html:
    """TeX for the browser to set; readable as it is where it does not."""
    return tag("span", tex, class_="math", data_display="true" if display else "false")


def inline(value: str) -> Html:
    """One line of text with its maths, code and emphasis; no paragraphs."""
    kept = _Kept()
    plain = _PRIVATE.sub("", " ".join(value.split()))
    return _words(_without_maths(plain, kept), kept) if len(plain) <= MAX_CHARS else text(plain)


def _without_fences(plain: str, kept: _Kept) -> str:
    """The text with every fenced block held."""
    lines: list[str] = []
    fence, language = "", ""
    inside: list[str] = []
    for line in plain.split("\n"):
        mark = _FENCE.match(line)
        if not fence and mark:
            fence, language, inside = mark[1], mark[2], []
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            lines += ["", kept.hold(_code(inside, language)), ""]
            fence = ""
        elif fence:
            inside.append(line)
        else:
            lines.append(line)
    if fence:
        lines += ["", kept.hold(_code(inside, language)), ""]
    return "\n".join(lines)


def _code(lines: list[str], language: str) -> Html:
    return tag("pre", tag("code", "\n".join(lines)), class_="code", data_language=language or None)


def _without_maths(plain: str, kept: _Kept) -> str:
    """The text with code and maths held, read from left to right so that neither hides in the other."""
    out: list[str] = []
    at = 0
    while opener := _OPENER.search(plain, at):
        out.append(plain[at : opener.start()])
        piece, at = _piece(plain, opener)
        out.append(kept.hold(piece) if isinstance(piece, Html) else piece)
    out.append(plain[at:])
    return "".join(out)


def _piece(plain: str, opener: re.Match[str]) -> tuple[str | Html, int]:
    """What begins at an opener and where it ends; the opener itself as text where nothing closes it."""
    start, end = opener.start(), opener.end()
    kind = opener.lastgroup
    if kind == "escape":
        return opener[0][1], end
    if kind == "code":
        close = _find(plain, opener[0], end)
        return (opener[0], end) if close < 0 else (tag("code", plain[end:close].strip()), close + len(opener[0]))
    if kind in {"display", "inline"}:
        mark = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}[opener[0]]
        close = _find(plain, mark, end)
        tex = plain[end:close].strip() if close >= 0 else ""
        return (maths(tex, display=kind == "display"), close + len(mark)) if tex else (opener[0], end)
    if kind == "env":
        mark = f"\\end{{{opener['env']}}}"
        close = _find(plain, mark, end) if opener["env"].rstrip("*") in _ENVIRONMENTS else -1
        return (
            (opener[0], end)
            if close < 0
            else (maths(plain[start : close + len(mark)], display=True), close + len(mark))
        )
    return _boxed(plain, start, end) if kind == "boxed" else _dollar(plain, end)


def _find(plain: str, mark: str, start: int) -> int:
    return plain.find(mark, start, start + MAX_TEX)


def _dollar(plain: str, start: int) -> tuple[str | Html, int]:
    """`$x$`, but not `$5 and $6`: nothing blank inside its ends, no digit after it, no empty line in it."""
    close = _find(plain, "$", start)
    tex = plain[start:close] if close >= 0 else " "
    if tex[-1:].isspace() or plain[close + 1 : close + 2].isdigit() or "\n\n" in tex:
        return "$", start
    return maths(tex), close + 1


def _boxed(plain: str, start: int, end: int) -> tuple[str | Html, int]:
    """A `boxed` answer that stands outside maths, as models like to end."""
    depth = 0
    for place in range(end, min(len(plain), end + 400)):
        depth += {"{": 1, "}": -1}.get(plain[place], 0)
        if depth == 0:
            return maths(plain[start : place + 1]), place + 1
    return plain[start:end], end


def _blocks(lines: list[str], kept: _Kept, depth: int = 0) -> Html:
    out: list[Html] = []
    paragraph: list[str] = []

    def close() -> None:
        if paragraph:
            out.append(_paragraph(paragraph, kept))
            paragraph.clear()

    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            close()
            at += 1
        elif heading := _HEADING.match(line):
            close()
            out.append(tag(f"h{min(6, len(heading[1]) + 2)}", _words(heading[2], kept)))
            at += 1
        elif _RULE.match(line):
            close()
            out.append(Html("<hr>"))
            at += 1
        elif (_ITEM.match(line) or _QUOTE.match(line)) and depth < MAX_DEPTH:
            close()
            made, at = (_list if _ITEM.match(line) else _quote)(lines, at, kept, depth)
            out.append(made)
        else:
            paragraph.append(line)
            at += 1
    close()
    return join(out)


def _list(lines: list[str], at: int, kept: _Kept, depth: int) -> tuple[Html, int]:
    """A list from its first line, and the line after it. What is indented under an item belongs to it."""
    first = _ITEM.match(lines[at])
    assert first is not None
    indent, ordered = len(first[1]), first[2]
    items: list[list[str]] = []
    while at < len(lines):
        line = lines[at]
        mark = _ITEM.match(line)
        inner = len(line) - len(line.lstrip(" ")) > indent
        if mark and len(mark[1]) <= indent:
            if len(mark[1]) < indent or bool(mark[2]) != bool(ordered):
                break
            items.append([line[mark.end() :]])
        elif inner or (line.strip() and lines[at - 1].strip() and not mark and not _HEADING.match(line)):
            items[-1].append(line[min(indent + 2, len(line) - len(line.lstrip(" "))) :])
        elif not line.strip() and _goes_on(lines, at + 1, indent):
            items[-1].append("")
        else:
            break
        at += 1
    made = [tag("li", _tight(item, kept, depth + 1)) for item in items]
    start = ordered if ordered and ordered != "1" else None
    return tag("ol" if ordered else "ul", *made, start=start), at


def _goes_on(lines: list[str], at: int, indent: int) -> bool:
    """Whether a list goes on after an empty line."""
    if at >= len(lines):
        return False
    mark = _ITEM.match(lines[at])
    return (mark is not None and len(mark[1]) >= indent) or len(lines[at]) - len(lines[at].lstrip(" ")) > indent


def _tight(lines: list[str], kept: _Kept, depth: int) -> Html:
    """An item's content; one that is a single paragraph is not set apart as one."""
    while lines and not lines[-1].strip():
        lines.pop()
    plain = all(line.strip() and not _ITEM.match(line) and not _QUOTE.match(line) for line in lines)
    return _lines(lines, kept) if plain else _blocks(lines, kept, depth)


def _quote(lines: list[str], at: int, kept: _Kept, depth: int) -> tuple[Html, int]:
    inside: list[str] = []
    while at < len(lines) and (mark := _QUOTE.match(lines[at])):
        inside.append(lines[at][mark.end() :])
        at += 1
    return tag("blockquote", _blocks(inside, kept, depth + 1)), at


def _paragraph(lines: list[str], kept: _Kept) -> Html:
    alone = re.fullmatch("\ue000([0-9]+)\ue001", "".join(lines).strip())
    piece = kept.pieces[int(alone[1])] if alone else None
    return piece if piece is not None and piece.startswith("<pre") else tag("p", _lines(lines, kept))


def _lines(lines: list[str], kept: _Kept) -> Html:
    """Lines of one paragraph. A line break stays one: answers are laid out in lines more often than in sentences."""
    return _words("\n".join(line.strip() for line in lines), kept)


def _words(plain: str, kept: _Kept, depth: int = 0) -> Html:
    """Emphasis and links in a line, escaped; then what was held comes back."""
    out: list[Html] = []
    at = 0
    while found := _INLINE.search(plain, at):
        out.append(_escaped(plain[at : found.start()]))
        out.append(
            _marked(found, lambda inner: _words(inner, _Kept(), depth + 1) if depth < MAX_DEPTH else text(inner))
        )
        at = found.end()
    out.append(_escaped(plain[at:]))
    return kept.freed(join(out)) if depth == 0 else join(out)


def _escaped(plain: str) -> Html:
    return Html(text(plain).replace("\n", "<br>\n"))


def _marked(found: re.Match[str], words: Callable[[str], Html]) -> Html:
    kind = found.lastgroup
    if kind == "bold":
        return tag("strong", words(found["bold"]))
    if kind in {"em", "under"}:
        return tag("em", words(found[kind]))
    said, address = found["words"] or "", found["address"] or ""
    return join([words(said), tag("span", f" ({address})" if said else address, class_="address")])
