"""Pages of large trees come when they are drawn, and a page in between until then."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kace.view import patience
from kace.view.links import Links
from kace.view.page import Ask, NotHere, Page
from kace.view.shelf import Shelf
from kace.web.markup import tag
from tests.view.samples import a_tree


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setattr(patience, "SMALL", 0)
    return Shelf((a_tree(tmp_path / "oak"),))


def ask(shelf: Shelf, **query: str) -> Ask:
    return Ask(shelf, Links(), {"tree": "oak"}, query)


def test_a_slow_page_is_announced_drawn_once_and_then_given(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    go, drawn = threading.Event(), []

    @patience.patient
    def view(asked: Ask) -> Page:
        drawn.append(asked)
        go.wait(60)
        return Page("drawn", tag("p", "at last"))

    monkeypatch.setattr(patience, "PATIENCE", 0.01)
    between = [view(ask(shelf)) for _ in range(3)]
    assert {page.title for page in between} == {"Reading oak"}
    assert all(page.refresh for page in between)
    go.set()
    monkeypatch.setattr(patience, "PATIENCE", 60)
    assert view(ask(shelf)).title == "drawn"
    assert len(drawn) == 1


def test_a_quick_page_comes_at_once_and_is_drawn_anew_each_time(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 60)
    drawn = []

    @patience.patient
    def view(asked: Ask) -> Page:
        drawn.append(asked)
        return Page(asked.query["q"], tag("p"))

    assert [view(ask(shelf, q=q)).title for q in ("a", "b", "a")] == ["a", "b", "a"]
    assert len(drawn) == 3


def test_what_a_view_trips_over_reaches_whoever_asked(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 60)

    @patience.patient
    def view(asked: Ask) -> Page:
        raise NotHere("no such card")

    with pytest.raises(NotHere, match="no such card"):
        view(ask(shelf))


def test_a_page_that_nobody_fetched_is_drawn_anew(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    go, drawn = threading.Event(), []

    @patience.patient
    def view(asked: Ask) -> Page:
        drawn.append(asked)
        go.wait(60)
        return Page(str(len(drawn)), tag("p"))

    monkeypatch.setattr(patience, "PATIENCE", 0.01)
    monkeypatch.setattr(patience, "KEPT", -1.0)
    assert view(ask(shelf)).title == "Reading oak"
    waiting = list(patience._waiting.values())
    go.set()
    waiting[0].page.result(60)
    monkeypatch.setattr(patience, "PATIENCE", 60)
    assert view(ask(shelf)).title == "2"


def test_a_small_tree_and_an_export_never_see_the_page_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.0)
    shelf = Shelf((a_tree(tmp_path / "oak"),))

    @patience.patient
    def view(asked: Ask) -> Page:
        return Page(threading.current_thread().name, tag("p"))

    here = threading.current_thread().name
    assert view(ask(shelf)).title == here
    monkeypatch.setattr(patience, "SMALL", 0)
    assert view(Ask(shelf, Links(static=True), {"tree": "oak"})).title == here
