"""Domains and cards read from one file, with what had to be refused: the SPEC's JSON, or JSON lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kace.errors import DataError
from kace.tree.card import Card, CardError, card_of, read_card, read_json
from kace.tree.tree import Domain, domain_of

NOT_CARDS = 'give a card, a list of cards, {"domains": [...], "cards": [...]}, JSON lines, or an ACE playbook'


@dataclass(frozen=True, slots=True)
class Refused:
    """A card that was left out: where it stood in the file, and why."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a file holds that fits the rules, and the rest with reasons."""

    domains: tuple[Domain, ...]
    cards: tuple[Card, ...]
    refused: tuple[Refused, ...] = ()


def read_bundle(text: str) -> Bundle:
    """Cards from JSON: one card, a list of them, the SPEC's object, or one card a line.

    A bad card is refused with its place and reason while the others are kept; a bad domain, or a text that is not
    JSON at all, raises `DataError`.
    """
    if not text.strip():
        raise DataError("no cards: the input is empty", fix=NOT_CARDS)
    if _is_lines(text):
        return _read_lines(text)
    value = read_json(text)
    if isinstance(value, dict) and "cards" in value:
        return _read_object(value)
    return _bundle((), value if isinstance(value, list) else [value])


def read_domains(text: str) -> tuple[Domain, ...]:
    """A registry from JSON: a list of domains, or an object that holds one under `domains`."""
    value = read_json(text)
    return _domains(value.get("domains") if isinstance(value, dict) else value)


def _is_lines(text: str) -> bool:
    """Whether the first line is a whole JSON object and is not the last: then every line is a card."""
    first, _, rest = text.strip().partition("\n")
    if not rest or not first.startswith("{"):
        return False
    try:
        return isinstance(read_json(first), dict)
    except CardError:
        return first.rstrip().endswith("}")


def _read_object(value: Mapping[str, object]) -> Bundle:
    unknown = sorted(set(value) - {"domains", "cards"})
    if unknown:
        raise DataError(f"unknown field '{unknown[0]}' beside domains and cards", fix="remove it")
    cards = value["cards"]
    if not isinstance(cards, list):
        raise DataError(f"'cards' is a {type(cards).__name__}, not a list", fix=NOT_CARDS)
    return _bundle(_domains(value.get("domains", [])), cards)


def _read_lines(text: str) -> Bundle:
    cards: list[Card] = []
    refused: list[Refused] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            cards.append(read_card(line))
        except CardError as error:
            refused.append(Refused(f"line {number}", str(error)))
    return Bundle((), tuple(cards), tuple(refused))


def _bundle(domains: tuple[Domain, ...], values: Iterable[object]) -> Bundle:
    cards: list[Card] = []
    refused: list[Refused] = []
    for number, value in enumerate(values, start=1):
        try:
            cards.append(card_of(value))
        except CardError as error:
            refused.append(Refused(f"card {number}", str(error)))
    return Bundle(domains, tuple(cards), tuple(refused))


def _domains(value: object) -> tuple[Domain, ...]:
    if not isinstance(value, list):
        raise DataError("the domains are not a list", fix='write [{"name": "geometry", "description": "..."}]')
    return tuple(map(domain_of, value))
