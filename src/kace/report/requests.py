"""A teacher's request taken apart for reading, and its reply read by the grammar that the learner reads it by."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from kace.baselines.ace import NOTES
from kace.baselines.ace import REVISION as PLAYBOOK
from kace.ladder.prompt import TAGS, template
from kace.learning.accept import GAP, REVISION
from kace.learning.admit import RULING, read_rulings
from kace.learning.propose import CARD
from kace.learning.teacher import DOMAIN, BadBlock, Grammar, read_blocks, read_partition
from kace.learning.wordings import EXAMPLES, WORDINGS
from kace.words import counted

GIST = 90  # characters of a problem that tell it from others
_TAG = re.compile(rf"^<(/?)({'|'.join(TAGS)})>$", re.MULTILINE)
CARD_ID = r"\A(?:id: |\[)([A-Z0-9_]{1,80})\]?$"
HEADING = r"^## This request(?: once more)?: *(.*\S)"
_CARD_BODY = "\nUseful when:\n- \n\n"


class ReplyForm(NamedTuple):
    """The form of one kind of reply."""

    prompt: str
    title: str
    blocks: tuple[Grammar, ...]
    fields: str  # of an empty block, one by one
    body: str = ""  # what the last field begins with, on lines of its own
    for_each_card: bool = False

    def skeleton(self, card: str = "") -> str:
        """An empty block to fill in."""
        *names, last = self.fields.split()
        lines = "".join(f"{name}: {card if name == 'id' else ''}\n" for name in names)
        return f"<{self.blocks[0].tag}>\n{lines}{last}:{self.body or ' '}\n</{self.blocks[0].tag}>"


FORMS = (
    ReplyForm(
        "teacher/propose",
        "New cards",
        (CARD,),
        "id difficulty problems payload",
        _CARD_BODY,
    ),
    ReplyForm(
        "teacher/imagine", "Further cards", (CARD,), "id difficulty payload", _CARD_BODY
    ),
    ReplyForm(
        "teacher/illustrate",
        "Worked examples",
        (EXAMPLES,),
        "id text",
        "\n\nWorked:\n",
        for_each_card=True,
    ),
    ReplyForm(
        "teacher/wordings",
        "Wordings of cards",
        (WORDINGS,),
        "id text",
        "\n",
        for_each_card=True,
    ),
    ReplyForm(
        "teacher/judge",
        "Rulings on cards",
        (RULING,),
        "id verdict rule reason",
        for_each_card=True,
    ),
    ReplyForm(
        "teacher/revise",
        "Revisions of cards",
        (REVISION, GAP),
        "id action reason",
        for_each_card=True,
    ),
    ReplyForm(
        "teacher/partition",
        "Domains",
        (DOMAIN,),
        "name description problems signals",
        "\n",
    ),
    ReplyForm(
        "ace/reflect", "Notes on an attempt", (NOTES,), "mistake helpful lesson", "\n"
    ),
    ReplyForm(
        "ace/curate",
        "Changes to the playbook",
        (PLAYBOOK,),
        "action section reason text",
    ),
)


class Quote(NamedTuple):
    """Text from outside that a request quotes, and what it is: a problem, an attempt, a card."""

    tag: str
    text: str


class Turn(NamedTuple):
    """One message of a request."""

    role: str
    text: str

    @property
    def parts(self) -> tuple[str | Quote, ...]:
        """Its own words and its quotes, in order. A quote cannot end itself early: see `fence.py`."""
        tags = list(_TAG.finditer(self.text))
        last = {tag[2]: tag.start() for tag in tags if tag[1]}
        found: list[str | Quote] = []
        begun = 0
        inside = ""
        for tag in tags:
            if not inside and not tag[1] and last.get(tag[2], 0) > tag.start():
                found.append(self.text[begun : tag.start()].strip("\n"))
                begun = tag.end()
                inside = tag[2]
            elif inside and tag[1] and tag[2] == inside:
                found.append(Quote(inside, self.text[begun + 1 : tag.start() - 1]))
                begun = tag.end()
                inside = ""
        found.append(self.text[begun:].strip("\n"))
        return tuple(part for part in found if isinstance(part, Quote) or part.strip())

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """What it quotes."""
        return tuple(part for part in self.parts if isinstance(part, Quote))


class RequestText:
    """A request taken apart for reading; what it does not say is empty. One that is not in our form is all opening."""

    def __init__(self, name: str, text: str) -> None:
        # The lines between turns carry the request's hash, which its name ends with: no text inside can imitate them.
        mark = rf"^===== {re.escape(name[-8:])} (system|user|assistant|end) =====$"
        opening, *said = re.split(mark, text, flags=re.MULTILINE)
        pairs = zip(said[::2], said[1::2], strict=True)
        self.name = name
        self.opening = opening.strip()
        self.messages = tuple(
            Turn(role, words.strip("\n")) for role, words in pairs if role != "end"
        )
        self.turns = tuple(
            turn for turn in self.messages if turn.role != "system"
        )  # the instruction, later rounds
        self.again = any(
            turn.role == "assistant" for turn in self.messages
        )  # about a reply of no use as it was
        self.rules = "\n\n".join(
            turn.text for turn in self.messages if turn.role == "system"
        )
        self.heading = _first(HEADING, self.rules)
        about, _, task = (
            self.rules.partition("## This request")
            if self.heading
            else (self.rules, "", "")
        )
        # of every request, of this one
        self.about_replies = about.strip()
        self.task = task.partition("\n")[2].strip()
        self.whole = (
            "\n\n".join(turn.text for turn in self.messages) or self.opening
        )  # to be given to somebody
        self.form = _forms().get(
            self.heading
        )  # none where the request comes from no prompt of ours
        self.title = self.form.title if self.form else self.heading[:80] or "Request"
        words = next(
            (
                part
                for turn in self.turns[:1]
                for part in turn.parts
                if isinstance(part, str)
            ),
            "",
        )
        self.domain = _first(r"^Domain: (\S{1,80})$", words)
        self.difficulty = _first(r"^Difficulty: (\w{1,20})", words)
        self.place = ", ".join(filter(None, (self.domain, self.difficulty)))
        self.epoch = (
            int(epoch) if (epoch := _first(r"^epoch-(\d{1,3})-", name)) else None
        )
        self.limit = _first(r"\(([\d,]{1,12} tokens at most)\)", opening)
        quoted = [quote for turn in self.turns[:1] for quote in turn.quotes]
        quotes = {
            tag: [quote.text for quote in quoted if quote.tag == tag]
            for tag in ("problem", "card")
        }
        self.holds = ", ".join(
            counted(len(texts), tag) for tag, texts in quotes.items() if texts
        )
        self.cards = tuple(
            dict.fromkeys(
                filter(None, (_first(CARD_ID, text) for text in quotes["card"]))
            )
        )
        gist = " ".join("".join(quotes["problem"][:1])[: 4 * GIST].split())
        self.about = (
            self.place
            if self.domain
            else gist
            if len(gist) <= GIST
            else f"{gist[:GIST].rstrip()}…"
        )
        form = None if self.again else self.form
        blocks = self.cards if form and form.for_each_card and self.cards else ("",)
        self.draft = (
            "\n\n".join(map(form.skeleton, blocks)) if form else ""
        )  # what a reply begins as


class ReplyCheck(NamedTuple):
    """What a reader finds in a reply: the blocks that have the form, each by its name or number, and the others."""

    found: tuple[str, ...]
    faults: tuple[BadBlock, ...]

    @property
    def usable(self) -> bool:
        """Whether the learner could use all of it, as far as its form goes."""
        return bool(self.found) and not self.faults


def check(reply: str, request: RequestText) -> ReplyCheck | None:
    """What the learner would find in a reply, as far as its form goes; `None` where the form is not known."""
    if request.form is None:
        return None
    forms = request.form.blocks
    read = [(form, *read_blocks(reply, form)) for form in forms]
    found = [
        b.fields.get(form.name) or f"{form.tag} {n}"
        for form, good, _ in read
        for n, b in enumerate(good, 1)
    ]
    faults = [each for *_, bad in read for each in bad]
    problems = sum(
        quote.tag == "problem" for turn in request.turns for quote in turn.quotes
    )
    if (
        not faults and not request.again
    ):  # what is left out, where the reply alone lets the learner's own reader tell
        if RULING in forms and request.cards:
            faults = [*read_rulings(reply, request.cards).bad]
        elif DOMAIN in forms and problems:
            faults = [*read_partition(reply, problems).bad]
    return ReplyCheck(tuple(found), tuple(sorted(faults, key=lambda bad: bad.line)))


@cache
def _forms() -> dict[str, ReplyForm]:
    """The forms by the headings that their prompts have."""
    return {_first(HEADING, template(form.prompt)): form for form in FORMS}


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""
