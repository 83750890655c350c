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
from typing import Literal, NamedTuple

from kace.cards.card import stray_character
from kace.errors import one_line
from kace.learning.steps import Kept

MAX_BLOCKS = 200
MAX_REPLY_CHARS = 1_000_000
EXCERPT_CHARS = 160
MAX_REASON = 400  # characters that are kept of a reason

_TOO_MANY = (
    f"the reply holds more than {MAX_BLOCKS} blocks, and this is one of the rest"
)
_TOO_LONG = f"the reply is longer than {MAX_REPLY_CHARS:,} characters, and the rest was not read"

_THOUGHT = re.compile(
    r"^[ \t]*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# Some servers put the opening tag into the prompt, so that the reply holds only the closing one.
_THOUGHT_END = re.compile(r"^[ \t]*</think(?:ing)?>", re.IGNORECASE | re.MULTILINE)
_FENCED = re.compile(r"```[^\n]*\n(.+)\n\s*```\s*", re.DOTALL)
_BLANK_ENDS = re.compile(r"\A(?:[^\S\n]*\n)+|(?:\n[^\S\n]*)+\Z|\A\s+\Z")
_NUMBERS = re.compile(r"#?([0-9]{1,4})(?:-#?([0-9]{1,4}))?")


class CardRefusal(Kept):
    """A proposal that did not become a card, by whom and why."""

    card_id: str  # as the teacher named it; empty where the block gave no name
    by: Literal["parser", "code", "teacher"]
    rule: str
    reason: str

    @classmethod
    def by_code(cls, card_id: str, rule: str, reason: str) -> CardRefusal:
        """A card that breaks a rule of code."""
        return cls(
            card_id=card_id, by="code", rule=rule, reason=one_line(reason, MAX_REASON)
        )


class Grammar(NamedTuple):
    """The form of one kind of block.

    `name` is the field that names a block, and no two blocks of a reply may share it; empty where blocks have no name.
    `text` is the last field, whose value is every line up to the end tag, verbatim.
    """

    tag: str
    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    text: str | None = None


class Block(NamedTuple):
    """A block that has the form. Neither its fields nor its text hold control characters but newline and tab."""

    line: int
    fields: Mapping[str, str]
    text: str


class BadBlock(NamedTuple):
    """Something in a reply that could not be used, and why. Safe to store and to show."""

    line: int
    name: str
    reason: str
    excerpt: str = ""
    rule: str = ""  # the rule of code that it breaks; empty where it could not be read as what was asked for

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}" if self.name else self.reason

    @property
    def mendable(self) -> bool:
        """Whether asking for it again makes sense."""
        return self.reason not in (_TOO_MANY, _TOO_LONG)

    def refusal(self, *, quote: bool = False) -> CardRefusal:
        """The block as the step log lists it; one that could not be read, or on request any, with its words."""
        said = (
            f" (it reads: {self.excerpt})"
            if self.excerpt and (quote or not self.rule)
            else ""
        )
        by: Literal["code", "parser"] = "code" if self.rule else "parser"
        return CardRefusal(
            card_id=self.name,
            by=by,
            rule=self.rule or "bad_block",
            reason=self.reason + said,
        )

    @classmethod
    def of(cls, block: Block, name: str, reason: str, rule: str = "") -> BadBlock:
        """A block that has the form but says something that cannot be accepted."""
        lines = (
            *(f"{key}: {value}" for key, value in block.fields.items()),
            block.text,
        )
        return cls(block.line, one_line(name, 64), reason, _excerpt(lines), rule)


def read_blocks(
    reply: str, grammar: Grammar
) -> tuple[tuple[Block, ...], tuple[BadBlock, ...]]:
    """The blocks of a reply in order, and what looked like one but is not. Never raises, never unescapes."""
    blocks: list[Block] = []
    bad: list[BadBlock] = []
    taken: dict[str, int] = {}
    for count, (start, lines, fault) in enumerate(
        _raw_blocks(_spoken(reply[:MAX_REPLY_CHARS]), grammar.tag)
    ):
        try:
            if fault or count >= MAX_BLOCKS:
                raise ValueError(_TOO_MANY if count >= MAX_BLOCKS else fault)
            block = _block(start, lines, grammar)
            if (name := block.fields.get(grammar.name)) and taken.setdefault(
                name, start
            ) != start:
                raise ValueError(
                    f"its {grammar.name} is that of the block at line {taken[name]}; names must differ"
                )
            blocks.append(block)
        except ValueError as error:
            parts = (line.partition(":") for line in lines)
            named = (
                value
                for key, colon, value in parts
                if colon and key.strip().lower() == grammar.name
            )
            bad.append(
                BadBlock(
                    start, one_line(next(named, ""), 64), str(error), _excerpt(lines)
                )
            )
    if len(reply) > MAX_REPLY_CHARS:
        bad.append(BadBlock(0, "", _TOO_LONG, _excerpt([reply[MAX_REPLY_CHARS:]])))
    return tuple(blocks), tuple(bad)


def declines(reply: str, grammar: Grammar) -> bool:
    """Whether a line of a reply says that there is nothing to write, such as `no card`."""
    line = rf"^\W*no {grammar.tag}s?(?: needed)?\W*$"
    return (
        re.search(line, _spoken(reply[:MAX_REPLY_CHARS]), re.IGNORECASE | re.MULTILINE)
        is not None
    )


def read_numbers(value: str, last: int) -> tuple[int, ...]:
    """The numbers of a list such as `1, 3, 7-9`, each once; raises `ValueError` with a reason for anything else."""
    found: dict[int, None] = {}
    for part in re.findall(
        r"[^,; ]+", re.sub(" ?[-–] ?", "-", " ".join(value.split()))
    ):
        match = _NUMBERS.fullmatch(part)
        if match is None:
            raise ValueError(
                f"{one_line(part, 40)!r} is no number of a problem; write numbers such as 1, 3, 4"
            )
        first = int(match[1])
        end = int(match[2] or match[1])
        if not 1 <= first <= end <= last:
            raise ValueError(f"{match[0]} is not among the problems 1 to {last}")
        found |= dict.fromkeys(range(first, end + 1))
    return tuple(found)


def _spoken(reply: str) -> str:
    """The reply without its thinking, every line still where it was."""
    text = reply.removeprefix("\ufeff").replace("\r\n", "\n")
    text = _THOUGHT.sub(lambda thought: "\n" * thought[0].count("\n"), text)
    end = _THOUGHT_END.search(text)
    return "\n" * text.count("\n", 0, end.end()) + text[end.end() :] if end else text


def _raw_blocks(text: str, tag: str) -> Iterator[tuple[int, list[str], str]]:
    """Where each block opens, its lines, and what is wrong with its tags."""
    start = 0
    lines = list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        mark = line.strip().lower()
        if mark == f"<{tag}>":
            if start:
                yield (
                    start,
                    lines,
                    f"another {tag} opens before its end tag; the end tag is missing",
                )
            start = number
            lines = []
        elif mark == f"</{tag}>" and start:
            yield start, lines, ""
            start = 0
        elif start:
            lines.append(line)
    if start:
        yield start, lines, "the reply ends before its end tag; the block is cut off"


def _block(start: int, lines: Sequence[str], grammar: Grammar) -> Block:
    if stray := stray_character("\n".join(lines)):
        raise ValueError(f"it {stray.what}")
    fields: dict[str, str] = {}
    text = ""
    names = dict.fromkeys(
        filter(None, (grammar.name, *grammar.required, *grammar.optional, grammar.text))
    )
    form = f"its fields are {', '.join(names)}"
    for place, line in enumerate(lines):
        key, colon, value = (part.strip() for part in line.partition(":"))
        key = key.lower()
        if colon and key == grammar.text:
            text = _verbatim([value, *lines[place + 1 :]])
            break
        if colon and key in names:
            if key in fields:
                raise ValueError(f"the field {key} appears twice")
            fields[key] = value
        elif line.strip():
            raise ValueError(
                f"{one_line(line, 40)!r} is no field of a {grammar.tag}; {form}"
            )
    given = {**fields, grammar.text or "": text}
    if missing := [
        name
        for name in (grammar.name, *grammar.required)
        if name and not given.get(name)
    ]:
        raise ValueError(f"the field {missing[0]} is missing or empty; {form}")
    return Block(start, fields, text)


def _verbatim(lines: Sequence[str]) -> str:
    """The lines as they are, without blank ones around them and without a code fence around all of them."""
    text = _BLANK_ENDS.sub("", "\n".join(lines))
    fenced = _FENCED.fullmatch(text)
    return (
        _BLANK_ENDS.sub("", fenced[1])
        if fenced and "\n```" not in f"\n{fenced[1]}"
        else text
    )


def _excerpt(lines: Sequence[str]) -> str:
    return one_line("\n".join(lines)[: 10 * EXCERPT_CHARS], EXCERPT_CHARS)
