"""Cards as papers and other stores write them, made to fit. Pure; what it cannot mend, the rules refuse."""

from __future__ import annotations

import re

from kace.cards.card import LEGACY
from kace.cards.card_text import (
    AVOID,
    BULLET,
    TRIGGER_WORDS,
    USEFUL,
    TextError,
    read_payload,
)

SOURCE = "imported"  # what a card names as its source where it names none
_HEADING = re.compile(rf"\s*({USEFUL[:-1]}|{AVOID[:-1]})\b\s*:?\s*(.*)", re.IGNORECASE)
_MARK = re.compile(r"\s*(?:(?:[-*•–]|\d+[.)])\s+)?")  # of a list, as anyone writes one


def loosened(value: object) -> tuple[object, tuple[str, ...]]:
    """The value as a card's record, and in words what was changed. What fits already comes back as it is."""
    if not isinstance(value, dict):
        return value, ()
    defaults = {
        "routing_conditions": [],
        "helpfulness_score": 0.0,
        "provenance": {"source": SOURCE},
    }
    given = {
        name: content
        for name, content in value.items()
        if content is not None or name not in defaults
    }
    record = defaults | given
    changes = [f"added {name}" for name in defaults if name not in given]
    if (
        isinstance(provenance := record["provenance"], dict)
        and provenance.get("source") is None
    ):
        record["provenance"] = {**provenance, "source": SOURCE}
        changes.append("added provenance.source")
    if "scope" in given:
        changes.append("read scope as domain tags")
    changes += [
        f"left out {name}" for name in LEGACY if name in given and name != "scope"
    ]
    if isinstance(payload := record.get("payload"), str):
        record["payload"], long, rewritten = _fitting(payload)
        if rewritten:
            changes.append("wrote the header as bullets")
        if long and isinstance(listed := record["routing_conditions"], list):
            record["routing_conditions"] = [
                *listed,
                *(trigger for trigger in long if trigger not in listed),
            ]
            cut = "a trigger" if len(long) == 1 else f"{len(long)} triggers"
            changes.append(
                f"cut {cut} to {TRIGGER_WORDS} words, whole among the routing conditions"
            )
    return record, tuple(changes)


def _fitting(payload: str) -> tuple[str, list[str], bool]:
    """The payload under a header of short bullets; the triggers that were cut; whether other bullets were written."""
    try:
        read_payload(payload)
        return payload, [], False
    except TextError:
        header, body = _parts(payload)
    bullets: dict[str, list[str]] = {}
    for line in header:
        heading = _HEADING.match(line)
        if heading:
            bullets[USEFUL if heading[1].lower() == USEFUL[:-1].lower() else AVOID] = []
        elif not bullets:
            return payload, [], False  # no header to speak of
        parts = heading[2].split(";") if heading else [line]
        bullets[next(reversed(bullets))] += [
            text for part in parts if (text := _MARK.sub("", part, count=1).strip())
        ]
    sections = {name: bullets[name] for name in (USEFUL, AVOID) if bullets.get(name)}
    rewritten = _lines(sections) != header
    long = [
        trigger
        for trigger in sections.get(USEFUL, [])
        if len(trigger.split()) > TRIGGER_WORDS
    ]
    sections |= {
        USEFUL: [
            " ".join(trigger.split()[:TRIGGER_WORDS])
            for trigger in sections.get(USEFUL, [])
        ]
    }
    return "\n".join((*_lines(sections), "", body)), long, rewritten


def _parts(payload: str) -> tuple[list[str], str]:
    """The lines of the header and the rest. A blank line before `Do not apply if:` does not end the header."""
    first, *rest = re.split(r"\n[ \t]*\n", payload.strip("\n"))
    header = first.split("\n")
    while rest and _HEADING.match(rest[0]):
        header += rest.pop(0).split("\n")
    return header, "\n\n".join(rest)


def _lines(sections: dict[str, list[str]]) -> list[str]:
    return [
        line
        for name, bullets in sections.items()
        for line in (name, *(f"{BULLET}{each}" for each in bullets))
    ]
