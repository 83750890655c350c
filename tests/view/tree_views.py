"""Trees for tests of their pages, and pages as a person would read them."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

from kace.tree.card import Card, Provenance, Status
from kace.tree.tree import EpistemicTree
from kace.view.links import Links
from kace.view.page import Page
from kace.view.routing import Router, all_routes
from kace.view.shelf import Shelf
from tests.card_examples import DOMAINS, a_card
from tests.view.samples import a_tree

ROUTER = Router(all_routes())


def measured(card_id: str, effect: float, low: float, high: float, **fields: object) -> Card:
    """A card with a lift in points, written as the learner writes it."""
    record = {
        "source": "teacher",
        "supporting_problems": ("P1", "P2"),
        "validated_lift": f"{effect:+.1f} points [{low:+.1f}, {high:+.1f}], 12 attempts with, 9 without, "
        "5 problems, leave-one-out, epoch 2",
        "promotion_status": Status.EXPERIMENTAL,
        "n_uses": 8,
        "n_wins": 6,
        "n_losses": 2,
        "epoch_introduced": 1,
    }
    record |= {name: fields.pop(name) for name in tuple(fields) if name in record}
    return a_card(card_id, provenance=Provenance.model_validate(record), helpfulness_score=effect / 100, **fields)


def page_of(shelf: Shelf, path: str, *, static: bool = False, **query: str) -> Page:
    """The page at a canonical path."""
    return ROUTER.page(path, shelf, Links(static=static), query)


def said(page: Page) -> str:
    """The words of a page, without its marks, in single spaces."""
    plain = re.sub(r"<(?:[a-z][a-z0-9]*|/[a-z][a-z0-9]*)[^<>]*>", " ", page.body.replace("<wbr>", ""))
    return " ".join(html.unescape(plain).split())


def shelf_of(*paths: Path) -> Shelf:
    """A shelf of what lies at the paths."""
    return Shelf(paths)


@cache
def many(count: int) -> EpistemicTree:
    """A tree of that many cards, quickly made, with a lift on each."""
    one = measured("EXACT_CARD_N0", 1, -1, 3)
    made = (
        one.model_copy(
            update={
                "card_id": f"EXACT_CARD_N{n:06}",
                "provenance": one.provenance.model_copy(
                    update={
                        "n_uses": n % 97,
                        "validated_lift": one.provenance.validated_lift.replace("+1.0", f"{n / 1e4:+.4f}"),
                    }
                ),
            }
        )
        for n in range(count)
    )
    return EpistemicTree.of(DOMAINS, made)


class Grown(Shelf):
    """A shelf with one tree that lies nowhere."""

    def __init__(self, tree: EpistemicTree, folder: Path) -> None:
        super().__init__((a_tree(folder / "large"),))
        self.grown = tree

    def tree(self, name: str) -> EpistemicTree:
        self.item("tree", name)
        return self.grown


def ids(body: str) -> list[str]:
    """The cards of a list, in order."""
    return re.findall(r'<td class="what"><a href="/?[^"]*card[/-]([A-Z0-9_]+)[^"]*"', body)
