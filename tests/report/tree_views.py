"""Trees for tests of their pages, and pages as a person would read them."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.testclient import TestClient

from kace.cards.card import Card, Provenance, Status
from kace.cards.store import TreeState, state_text
from kace.cards.tree import EpistemicTree
from kace.files import write_atomic
from kace.report.pages import html_at, paths_of
from kace.report.render import Links
from kace.report.server import create_app
from kace.report.workspace import Workspace
from tests.card_samples import DOMAINS, a_card


@dataclass(frozen=True, slots=True)
class Shown:
    """A page as it was answered."""

    status: int
    body: str
    """What stands between the bar and the foot, without the way to the page."""
    crumbs: tuple[str, ...]
    refresh: float | None


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


def page_of(workspace: Workspace, path: str, *, static: bool = False, **query: str) -> Shown:
    """The page at a path."""
    client = TestClient(create_app(workspace), base_url="http://127.0.0.1")
    answer = client.get(path, params=query)
    text = answer.text
    if static and answer.status_code == 200:
        link = Links(frozenset(paths_of(workspace)))
        text = html_at(workspace, path, link=link)[0]
    refresh = re.search(r'<body data-refresh="([\d.]+)"', text)
    main = text.partition('<main id="content" tabindex="-1">')[2].rpartition("</main>")[0]
    way, found, body = main.partition("</ol></nav>")
    crumbs = re.findall(r"<li><a [^>]*>([^<]*)</a></li>", way) if found else []
    body = body if found and 'class="crumbs"' in way else main
    return Shown(answer.status_code, body, tuple(crumbs), float(refresh[1]) if refresh else None)


def said(page: Shown) -> str:
    """The words of a page, without its marks, in single spaces."""
    plain = re.sub(r"<(?:[a-z][a-z0-9]*|/[a-z][a-z0-9]*)[^<>]*>", " ", page.body.replace("<wbr>", ""))
    return " ".join(html.unescape(plain).split())


def workspace_of(*paths: Path) -> Workspace:
    """A workspace of what lies at the paths."""
    return Workspace(paths)


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


def grown(tree: EpistemicTree, folder: Path) -> Workspace:
    """A workspace with one tree, called large, whose cards nobody checked."""
    image = TreeState(tree, generation=0, frozen=None)
    write_atomic(folder / "large" / "cards.jsonl", state_text(image))
    return Workspace((folder / "large",))


def ids(body: str) -> list[str]:
    """The cards of a list, in order."""
    return re.findall(r'<td class="what"><a href="/?[^"]*card[/-]([A-Z0-9_]+)[^"]*"', body)
