"""A teacher request as `kace.models.exchange` writes it, taken apart for reading: who says what, and what is quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kace.retrieval.fence import TAGS
from kace.words import counted

GIST = 90
"""Characters of a problem that tell it from others."""
ROLES = ("system", "user", "assistant")
_HEADING = re.compile(r"^## This request(?: once more)?: *(.+)$", re.MULTILINE)
_DOMAIN = re.compile(r"^Domain: (\S{1,80})$", re.MULTILINE)
_DIFFICULTY = re.compile(r"^Difficulty: (\w{1,20})", re.MULTILINE)
_EPOCH = re.compile(r"^epoch-(\d{1,3})-")
_LIMIT = re.compile(r"\(([\d,]{1,12} tokens at most)\)")
_CARD_ID = re.compile(r"^(?:id: |\[)([A-Z0-9_]{1,80})\]?$")


@dataclass(frozen=True, slots=True)
class Quote:
    """Text from outside that a request quotes, and what it is: a problem, an attempt, a card."""

    tag: str
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the request."""

    role: str
    text: str

    @property
    def parts(self) -> tuple[str | Quote, ...]:
        """Its own words and its quotations, in order. A quotation cannot end itself early: see `fence.py`."""
        return tuple(_parts(self.text.split("\n")))

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """What it quotes."""
        return tuple(part for part in self.parts if isinstance(part, Quote))


@dataclass(frozen=True, slots=True)
class RequestText:
    """A request to read."""

    name: str
    opening: str
    """The line before the first turn; all of the text where it is none of ours."""
    messages: tuple[Message, ...]

    @property
    def rules(self) -> str:
        """What the reply must be like, in the words of the request."""
        return "\n\n".join(message.text for message in self.messages if message.role == "system")

    @property
    def turns(self) -> tuple[Message, ...]:
        """What is asked; in a second round also what was replied in the first, and what was wrong with it."""
        return tuple(message for message in self.messages if message.role != "system")

    @property
    def asks(self) -> str:
        """What kind of request it is, as its rules head it; empty where they do not."""
        found = _HEADING.search(self.rules)
        return found[1].strip() if found else ""

    @property
    def domain(self) -> str:
        """The domain it is about, where it names one."""
        return _first(_DOMAIN, self._asked)

    @property
    def difficulty(self) -> str:
        """The difficulty it is about, where it names one."""
        return _first(_DIFFICULTY, self._asked)

    @property
    def epoch(self) -> int | None:
        """The learner's epoch, as the name has it."""
        found = _EPOCH.match(self.name)
        return int(found[1]) if found else None

    @property
    def limit(self) -> str:
        """How long the reply may be, in words."""
        return _first(_LIMIT, self.opening)

    @property
    def again(self) -> bool:
        """Whether it is a second round about a reply that could not be used whole."""
        return any(message.role == "assistant" for message in self.messages)

    @property
    def cards(self) -> tuple[str, ...]:
        """The ids of the cards it quotes, each once."""
        quoted = (
            quote.text.split("\n", 1)[0] for turn in self.turns[:1] for quote in turn.quotes if quote.tag == "card"
        )
        return tuple(dict.fromkeys(found[1] for line in quoted if (found := _CARD_ID.match(line))))

    @property
    def about(self) -> str:
        """What it is about, in a few words: its place, or else the beginning of the first problem it quotes."""
        if self.domain:
            return ", ".join(part for part in (self.domain, self.difficulty) if part)
        first = next((quote.text for turn in self.turns[:1] for quote in turn.quotes if quote.tag == "problem"), "")
        words = " ".join(first[: 4 * GIST].split())
        return f"{words[:GIST].rstrip()}…" if len(words) > GIST else words

    @property
    def holds(self) -> str:
        """What it quotes to be judged, counted."""
        tags = [quote.tag for turn in self.turns[:1] for quote in turn.quotes]
        return ", ".join(counted(tags.count(tag), tag) for tag in ("problem", "card") if tags.count(tag))

    @property
    def _asked(self) -> str:
        """The words of the first turn before anything is quoted."""
        first = next(iter(self.turns), None)
        return next((part for part in first.parts if isinstance(part, str)), "") if first else ""


def read_request(name: str, text: str) -> RequestText:
    """A request taken apart. One that is not in our form is all opening.

    The lines between turns carry the request's hash, which its name ends with, so that no text inside can imitate them.
    """
    ruling = re.compile(rf"^===== {re.escape(name[-8:])} ({'|'.join(ROLES)}|end) =====$", re.MULTILINE)
    marks = list(ruling.finditer(text))
    if not marks:
        return RequestText(name, text.strip(), ())
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    turns = [
        Message(m[1], text[m.end() : end].strip("\n")) for m, end in zip(marks, ends, strict=True) if m[1] != "end"
    ]
    return RequestText(name, text[: marks[0].start()].strip(), tuple(turns))


def _parts(lines: list[str]) -> Iterator[str | Quote]:
    said: list[str] = []
    place = 0
    while place < len(lines):
        tag = _opens(lines[place])
        end = _closing(lines, tag, place + 1) if tag else None
        if tag and end is not None:
            if any(map(str.strip, said)):
                yield "\n".join(said).strip("\n")
            said = []
            yield Quote(tag, "\n".join(lines[place + 1 : end]))
            place = end
        else:
            said.append(lines[place])
        place += 1
    if any(map(str.strip, said)):
        yield "\n".join(said).strip("\n")


def _opens(line: str) -> str | None:
    return next((tag for tag in TAGS if line == f"<{tag}>"), None)


def _closing(lines: list[str], tag: str, start: int) -> int | None:
    try:
        return lines.index(f"</{tag}>", start)
    except ValueError:
        return None


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
