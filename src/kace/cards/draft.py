"""A card as a person writes it: a name, when it helps, the rule, examples. The rest has a default. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from kace.cards.card import (
    BODY_CAPS,
    ID,
    PREFIXES,
    UNIVERSAL,
    Card,
    CardError,
    Difficulty,
    card_of,
)
from kace.cards.card_text import (
    EXAMPLE,
    USEFUL,
    WORKED,
    CardText,
    TextError,
    examined,
    line_count,
)
from kace.cards.loose import loosened

DIFFICULTY = Difficulty.MEDIUM  # read from MS on, the first tier that reads cards
PREFIX = "RUBRIC"
NAME_WORDS = 5
TEMPLATE = f"""\
# <a name of 2 to {NAME_WORDS} words>

{USEFUL}
- <what such a problem says, in at most 5 words>
- <another sign of it>

<the rule, in at most {BODY_CAPS[DIFFICULTY]} lines>

{EXAMPLE}
<a problem of this kind>
{WORKED}
<its solution in short lines, as the model shall write its own>
The answer is \\boxed{{<answer>}}.

{EXAMPLE}
<another one, with other numbers and another story>
{WORKED}
<its solution>
The answer is \\boxed{{<answer>}}.
"""
"""What an editor opens on. A part in <...> that is left as it is counts as missing."""
_OPEN = tuple(dict.fromkeys(re.findall(r"<[^<>\n]+>", TEMPLATE)))


class Draft(NamedTuple):
    """What a draft came to: the card, or every fault of it; and what was changed to make it fit."""

    card: Card | None
    faults: tuple[TextError, ...] = ()
    changes: tuple[str, ...] = ()


def read_draft(text: str, source: str, known: Container[str] = ()) -> Draft:
    """Read a card that a person wrote, for a tree that has cards of the `known` ids. Lists every fault at once."""
    title, payload = _titled(text)
    record, changes = loosened(
        {
            "payload": payload,
            "provenance": {"source": source},
            "routing_conditions": [],
            "helpfulness_score": 0.0,
        }
    )
    assert isinstance(record, dict)
    content, faults = examined(record["payload"])
    card_id = _card_id(title, content)
    faults = [*_name_faults(card_id, title, known), *faults, *_faults(text, content)]
    if faults:
        return Draft(None, tuple(faults))
    record |= {
        "card_id": card_id,
        "difficulty_tag": DIFFICULTY.value,
        "domain_tags": [UNIVERSAL],
    }
    try:
        return Draft(card_of(record), (), changes)
    except CardError as error:
        return Draft(
            None,
            (TextError(error.message.removeprefix(f"card {card_id!r}: "), error.fix),),
        )


def _titled(text: str) -> tuple[str, str]:
    """The name in a first line `# NAME`, if there is one, and the rest."""
    first, _, rest = text.strip().partition("\n")
    return (
        (first.lstrip("# ").strip(), rest.strip())
        if first.startswith("#")
        else ("", text.strip())
    )


def _card_id(title: str, content: CardText) -> str:
    """The id that a name, or else the triggers, make; a name that is an id already stays as it is."""
    if re.fullmatch(ID, title) and title.startswith(PREFIXES):
        return title
    words = re.findall("[A-Z0-9]+", (title or " ".join(content.useful)).upper())
    return "_".join((PREFIX, *words[:NAME_WORDS]))


def _name_faults(
    card_id: str, title: str, known: Container[str]
) -> Iterator[TextError]:
    if not re.fullmatch(ID, card_id) and title not in _OPEN:
        yield TextError(
            f"has no name of 2 to {NAME_WORDS} words",
            "write it in the first line: # average speed there and back",
        )
    if card_id in known:
        yield TextError(
            f"has the name of a card that is there, {card_id}",
            f"choose another, or: kace tree edit TREE {card_id}",
        )


def _faults(text: str, content: CardText) -> Iterator[TextError]:
    """What a draft must have beyond the rules of every card: all of it filled in, and examples that show the form."""
    for part in (part for part in _OPEN if part in text):
        yield TextError(f"still has {part}", "write it, or remove the line")
    lines = line_count(content.body)
    cap = BODY_CAPS[DIFFICULTY]
    if broken := re.search(rf"^{EXAMPLE}$", content.body, re.MULTILINE):
        yield TextError(
            f"has an '{EXAMPLE}' that is not whole",
            f"write a problem, a line '{WORKED}' and a solution; a blank line before '{EXAMPLE}'",
        )
    elif not content.examples:
        yield TextError(
            f"has no '{EXAMPLE}'",
            f"add two, each with '{WORKED}' and a solution: small models follow examples, not rules",
        )
    if lines > cap and not broken:
        yield TextError(f"has a rule of {lines} lines", f"use at most {cap}")
    for number, example in enumerate(content.examples, 1):
        if r"\boxed{" not in example.worked:
            yield TextError(
                f"has no answer in example {number}",
                r"end its solution with: The answer is \boxed{42}.",
            )
