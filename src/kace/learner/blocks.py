r"""Tagged blocks: the form of a teacher's reply.

    <card>
    id: SOME_NAME
    problems: 1, 4
    payload:
    verbatim text, `\frac` and all
    </card>

Not JSON, where `\frac`, `\theta` and `\beta` are valid escapes and would be corrupted without a word. A tag stands
alone on its line; what stands between blocks (prose, code fences, thinking) is ignored; a bad block costs itself only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kace.redact import one_line
from kace.tree.card_text import stray_character

MAX_BLOCKS = 200
MAX_REPLY_CHARS = 1_000_000
EXCERPT_CHARS = 160

_TOO_MANY = f"the reply holds more than {MAX_BLOCKS} blocks, and this is one of the rest"
_TOO_LONG = f"the reply is longer than {MAX_REPLY_CHARS:,} characters, and the rest was not read"

_THOUGHT = re.compile(r"^[ \t]*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE | re.MULTILINE)
# Some servers put the opening tag into the prompt, so that the reply holds only the closing one.
_THOUGHT_END = re.compile(r"^[ \t]*</think(?:ing)?>", re.IGNORECASE | re.MULTILINE)
_FENCE = "```"
_NUMBERS = re.compile(r"#?([0-9]{1,4})(?:-#?([0-9]{1,4}))?")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The form of one kind of block."""

    tag: str
    name: str
    """The field that names a block; no two blocks of a reply may share it. Empty where blocks have no name."""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    text: str | None = None
    """The last field, whose value is every line up to the end tag, verbatim. Must not be empty if it is required."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block that has the form. Neither its fields nor its text hold control characters but newline and tab."""

    tag: str
    line: int
    """Where it opens in the reply, from 1."""
    fields: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class BadBlock:
    """Something in a reply that could not be used, and why. Safe to store and to show."""

    tag: str
    line: int
    name: str
    """As far as it could be read."""
    reason: str
    excerpt: str

    @property
    def mendable(self) -> bool:
        """Whether asking for it again makes sense."""
        return self.reason not in (_TOO_MANY, _TOO_LONG)

    @classmethod
    def of(cls, block: Block, name: str, reason: str) -> BadBlock:
        """A block that has the form but says something that cannot be accepted."""
        lines = (*(f"{key}: {value}" for key, value in block.fields.items()), block.text)
        return cls(block.tag, block.line, one_line(name, 64), reason, _excerpt(lines))


@dataclass(frozen=True, slots=True)
class _Raw:
    line: int
    lines: list[str]
    fault: str = ""


class _Fault(ValueError):
    """Why a block does not have the form."""


def read_blocks(reply: str, grammar: Grammar) -> tuple[tuple[Block, ...], tuple[BadBlock, ...]]:
    """The blocks of a reply in order, and what looked like one but is not. Never raises, never unescapes."""
    blocks: list[Block] = []
    bad: list[BadBlock] = []
    taken: dict[str, int] = {}
    for count, raw in enumerate(_raw_blocks(_spoken(reply[:MAX_REPLY_CHARS]), grammar.tag)):
        try:
            if count >= MAX_BLOCKS:
                raise _Fault(_TOO_MANY)
            block = _block(raw, grammar)
            if (name := _name(block, grammar)) and taken.setdefault(name, raw.line) != raw.line:
                raise _Fault(f"its {grammar.name} is that of the block at line {taken[name]}; names must differ")
            blocks.append(block)
        except _Fault as fault:
            bad.append(BadBlock(grammar.tag, raw.line, _guess(raw, grammar), str(fault), _excerpt(raw.lines)))
    if len(reply) > MAX_REPLY_CHARS:
        bad.append(BadBlock(grammar.tag, 0, "", _TOO_LONG, _excerpt([reply[MAX_REPLY_CHARS:]])))
    return tuple(blocks), tuple(bad)


def read_numbers(value: str, last: int) -> tuple[int, ...]:
    """The numbers of a list such as `1, 3, 7-9`, each once; raises `ValueError` with a reason for anything else."""
    found: dict[int, None] = {}
    for part in re.findall(r"[^,; ]+", re.sub(" ?[-–] ?", "-", " ".join(value.split()))):
        match = _NUMBERS.fullmatch(part)
        if match is None:
            raise ValueError(f"{one_line(part, 40)!r} is no number of a problem; write numbers such as 1, 3, 4")
        first, end = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= end <= last:
            raise ValueError(f"{match[0]} is not among the problems 1 to {last}")
        found |= dict.fromkeys(range(first, end + 1))
    return tuple(found)


def _spoken(reply: str) -> str:
    """The reply without its thinking, every line still where it was."""
    text = reply.removeprefix("\ufeff").replace("\r\n", "\n")
    text = _THOUGHT.sub(_blank, text)
    end = _THOUGHT_END.search(text)
    return "\n" * text.count("\n", 0, end.end()) + text[end.end() :] if end else text


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _raw_blocks(text: str, tag: str) -> Iterator[_Raw]:
    opening, closing = f"<{tag}>", f"</{tag}>"
    start, lines = 0, list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        mark = line.strip().lower()
        if mark == opening:
            if start:
                yield _Raw(start, lines, f"another {tag} opens before its end tag; the end tag is missing")
            start, lines = number, []
        elif mark == closing and start:
            yield _Raw(start, lines)
            start = 0
        elif start:
            lines.append(line)
    if start:
        yield _Raw(start, lines, "the reply ends before its end tag; the block is cut off")


def _block(raw: _Raw, grammar: Grammar) -> Block:
    if raw.fault:
        raise _Fault(raw.fault)
    if stray := stray_character("\n".join(raw.lines)):
        raise _Fault(f"it {stray.what}")
    fields: dict[str, str] = {}
    text = ""
    known = {grammar.name, *grammar.required, *grammar.optional} - {grammar.text, ""}
    for place, line in enumerate(raw.lines):
        key, colon, value = (part.strip() for part in line.partition(":"))
        key = key.lower()
        if colon and key == grammar.text:
            text = _verbatim([value, *raw.lines[place + 1 :]])
            break
        if colon and key in known:
            if key in fields:
                raise _Fault(f"the field {key} stands twice")
            fields[key] = value
        elif line.strip():
            raise _Fault(f"{one_line(line, 40)!r} is no field of a {grammar.tag}; {_form(grammar)}")
    given = {**fields, grammar.text or "": text}
    if missing := [name for name in (grammar.name, *grammar.required) if name and not given.get(name)]:
        raise _Fault(f"the field {missing[0]} is missing or empty; {_form(grammar)}")
    return Block(grammar.tag, raw.line, fields, text)


def _verbatim(lines: Sequence[str]) -> str:
    """The lines as they are, without blank ones around them and without a code fence around all of them."""
    kept = _trimmed(lines)
    fenced = len(kept) > 2 and kept[0].startswith(_FENCE) and kept[-1].strip() == _FENCE
    if fenced and not any(line.startswith(_FENCE) for line in kept[1:-1]):
        kept = _trimmed(kept[1:-1])
    return "\n".join(kept)


def _trimmed(lines: Sequence[str]) -> list[str]:
    filled = [place for place, line in enumerate(lines) if line.strip()]
    return list(lines[filled[0] : filled[-1] + 1]) if filled else []


def _form(grammar: Grammar) -> str:
    names = dict.fromkeys((grammar.name, *grammar.required, *grammar.optional, grammar.text or ""))
    return f"its fields are {', '.join(filter(None, names))}"


def _name(block: Block, grammar: Grammar) -> str:
    return block.text.split("\n")[0] if grammar.name == grammar.text else block.fields.get(grammar.name, "")


def _guess(raw: _Raw, grammar: Grammar) -> str:
    for line in raw.lines:
        key, colon, value = line.partition(":")
        if colon and key.strip().lower() == grammar.name:
            return one_line(value, 64)
    return ""


def _excerpt(lines: Sequence[str]) -> str:
    return one_line("\n".join(lines)[: 10 * EXCERPT_CHARS], EXCERPT_CHARS)
