from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from kace.errors import UsageError
from kace.tree.store import Add, TreeStore
from kace.view import shelf as shelf_module
from kace.view.page import NotHere
from kace.view.shelf import open_shelf
from tests.card_examples import a_card
from tests.view.samples import a_learner, a_run, a_shelf_of_all, a_solve, a_tree, an_inbox


@pytest.fixture(autouse=True)
def looking_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shelf looks again whenever it is asked."""
    monkeypatch.setattr(shelf_module, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(shelf_module, "SLOWER", 0.0)


def names(shelf, kind):
    return [item.name for item in shelf.items(kind)]


def test_each_kind_is_known_by_what_lies_in_it(tmp_path):
    shelf = open_shelf([a_tree(tmp_path / "oak"), a_run(tmp_path / "first"), an_inbox(tmp_path / "letters")])
    assert [names(shelf, kind) for kind in ("tree", "run", "learner", "inbox")] == [["oak"], ["first"], [], ["letters"]]


def test_a_folder_of_things_is_looked_through(tmp_path):
    a_shelf_of_all(tmp_path)
    a_run(tmp_path / "sweep" / "one")
    a_run(tmp_path / "far" / "too" / "deep")
    a_tree(tmp_path / "sweep" / "tree-two-down")
    shelf = open_shelf([tmp_path])
    assert names(shelf, "tree") == ["oak"]
    assert names(shelf, "run") == ["first", "oak.epoch-1-add-MS-run", "one"]
    assert names(shelf, "inbox") == ["letters"]


def test_a_tree_that_learned_is_a_learner_too_and_brings_its_runs(tmp_path):
    shelf = open_shelf([a_learner(tmp_path / "oak")])
    assert names(shelf, "learner") == names(shelf, "tree") == ["oak"]
    assert names(shelf, "run") == ["oak.epoch-1-add-MS-run"]


def test_a_tree_in_one_file_has_no_store(tmp_path):
    path = tmp_path / "cards.json"
    path.write_text(json.dumps([a_card().model_dump(mode="json")]), encoding="utf-8")
    shelf = open_shelf([path])
    assert len(shelf.tree("cards")) == 1
    assert shelf.store("cards") is None
    path.write_text(json.dumps([a_card(f"EXACT_CARD_NO_{n}").model_dump(mode="json") for n in range(3)]))
    assert len(shelf.tree("cards")) == 3


@pytest.mark.parametrize("text", ['{"v":1,"domains":[]}', "[]", '[{"id":1}]', '{"config":{"cards":1}}', ""])
def test_other_json_is_no_tree(tmp_path, text):
    a_run(tmp_path / "first")
    (tmp_path / "other.json").write_text(text)
    assert names(open_shelf([tmp_path]), "tree") == []


def test_a_snapshot_can_be_opened(tmp_path):
    snapshot = TreeStore(a_tree(tmp_path / "oak")).snapshot("before")
    assert len(open_shelf([snapshot]).tree("before")) == 2


def test_a_tree_is_read_again_when_it_has_changed(tmp_path):
    shelf = open_shelf([a_tree(tmp_path / "oak")])
    assert len(shelf.tree("oak")) == 2
    assert shelf.tree("oak") is shelf.tree("oak")
    TreeStore(tmp_path / "oak").apply(Add(a_card("EXACT_ONE_MORE_CARD")), author="test")
    assert len(shelf.tree("oak")) == 3


def test_names_are_safe_in_an_address_and_differ(tmp_path):
    for folder in ("a", "b", "c"):
        a_run(tmp_path / folder / '<b> "run"')
    shelf = open_shelf([tmp_path])
    assert names(shelf, "run") == ["b-run", "b-b-run", "c-b-run"]
    assert len({item.path for item in shelf.items("run")}) == 3


def test_a_name_stays_when_something_new_takes_its_place_in_the_order(tmp_path):
    a_run(tmp_path / "z" / "run")
    shelf = open_shelf([tmp_path])
    before = shelf.item("run", "run").path
    a_run(tmp_path / "a" / "run")
    assert names(shelf, "run") == ["a-run", "run"]
    assert shelf.item("run", "run").path == before


def test_what_is_new_in_an_opened_folder_appears(tmp_path):
    a_run(tmp_path / "first")
    shelf = open_shelf([tmp_path])
    a_run(tmp_path / "second")
    assert names(shelf, "run") == ["first", "second"]
    assert shelf.item("run", "second").path == tmp_path / "second"


def test_a_run_is_indexed_once(tmp_path):
    shelf = open_shelf([a_run(tmp_path / "first", [a_solve("b" * 16), a_solve("c" * 16)])])
    assert shelf.runs() == {}
    index = shelf.run("first")
    index.wait()
    assert len(index.rows) == 2
    assert shelf.run("first") is index
    assert shelf.runs() == {"first": index}
    shelf.close()


def test_threads_that_ask_at_once_get_the_same_index(tmp_path):
    shelf = open_shelf([a_run(tmp_path / "first")])
    found = []
    threads = [threading.Thread(target=lambda: found.append(shelf.run("first"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    shelf.close()


def test_the_one_thing_that_was_opened_is_known_as_such(tmp_path):
    learner = open_shelf([a_learner(tmp_path / "oak")]).only()
    assert learner is not None and (learner.kind, learner.name) == ("tree", "oak")
    run = open_shelf([a_run(tmp_path / "first")]).only()
    assert run is not None and run.kind == "run"
    assert open_shelf([tmp_path]).only() is None


def test_warming_reads_the_one_thing_and_survives_a_damaged_one(tmp_path):
    shelf = open_shelf([a_run(tmp_path / "first")])
    shelf.warm()
    assert list(shelf.runs()) == ["first"]
    shelf.close()
    a_tree(tmp_path / "oak")
    (tmp_path / "oak" / "cards.jsonl").write_text("{}")
    open_shelf([tmp_path / "oak"]).warm()


def test_what_is_not_there_is_not_here(tmp_path):
    shelf = open_shelf([a_tree(tmp_path / "oak")])
    for kind in ("tree", "run", "learner", "inbox"):
        with pytest.raises(NotHere):
            shelf.item(kind, "../oak")


@pytest.mark.parametrize("made", ["empty", "text", "missing", "file", "loop", "nul"])
def test_a_path_with_nothing_to_look_at_is_refused_in_one_line(tmp_path, made):
    path = tmp_path / ("a\0b" if made == "nul" else made)
    if made == "empty":
        path.mkdir()
    elif made == "text":
        path.mkdir()
        (path / "notes.txt").write_text("hello")
    elif made == "file":
        path.write_text("hello")
    elif made == "loop":
        path.symlink_to(path)
    with pytest.raises(UsageError) as refused:
        open_shelf([path])
    assert refused.value.fix and "\n" not in str(refused.value)


def test_nothing_at_all_is_refused():
    with pytest.raises(UsageError):
        open_shelf([])


def test_an_unreadable_folder_among_others_is_passed_over(tmp_path):
    a_run(tmp_path / "first")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / ".hidden").mkdir()
    assert names(open_shelf([tmp_path]), "run") == ["first"]


# Nothing outside the opened folders is read.


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    a_run(outside / "run")
    a_tree(outside / "tree")
    (outside / "secret.txt").write_text("secret")
    return outside


def test_a_link_to_an_item_outside_is_passed_over(tmp_path, secret):
    opened = tmp_path / "opened"
    a_run(opened / "first")
    (opened / "run").symlink_to(secret / "run")
    (opened / "tree").symlink_to(secret / "tree")
    (opened / "deep").mkdir()
    (opened / "deep" / "run").symlink_to(secret / "run")
    shelf = open_shelf([opened])
    assert names(shelf, "run") == ["first"] and names(shelf, "tree") == []


def test_a_link_within_the_opened_folder_is_followed_once(tmp_path):
    a_run(tmp_path / "first")
    (tmp_path / "again").symlink_to(tmp_path / "first")
    assert names(open_shelf([tmp_path]), "run") == ["first"]


@pytest.mark.parametrize("name", ["traces.jsonl", "calls", "run.json"])
def test_a_run_whose_files_lie_outside_is_not_read(tmp_path, secret, name):
    opened = tmp_path / "opened"
    a_run(opened / "first")
    (opened / "first" / name).unlink(missing_ok=True)
    (opened / "first" / name).symlink_to(secret if name == "calls" else secret / "run" / name)
    with pytest.raises(NotHere, match="leads out"):
        open_shelf([opened]).run("first")
    with pytest.raises(UsageError, match="link out"):
        open_shelf([opened / "first"])


def test_a_tree_whose_files_lie_outside_is_not_read(tmp_path, secret):
    opened = tmp_path / "opened"
    a_tree(opened / "oak")
    shelf = open_shelf([opened])
    assert len(shelf.tree("oak")) == 2
    (opened / "oak" / "journal.jsonl").unlink()
    (opened / "oak" / "journal.jsonl").symlink_to(secret / "tree" / "journal.jsonl")
    for read in (shelf.tree, shelf.store):
        with pytest.raises(NotHere, match="leads out"):
            read("oak")


def test_an_item_that_is_exchanged_for_a_link_later_is_not_read(tmp_path, secret):
    opened = tmp_path / "opened"
    a_run(opened / "other")
    a_run(opened / "first")
    shelf = open_shelf([opened])
    shelf.item("run", "first")
    (opened / "first").rename(tmp_path / "away")
    (opened / "first").symlink_to(secret / "run")
    with pytest.raises(NotHere):
        shelf.run("first")


@pytest.mark.parametrize(
    "path", ["../outside/secret.txt", "first/../../outside/secret.txt", "/etc/passwd", "link", "first/a\0b", "loop"]
)
def test_a_path_out_of_the_opened_folder_is_not_inside(tmp_path, secret, path):
    opened = tmp_path / "opened"
    a_run(opened / "first")
    (opened / "link").symlink_to(secret / "secret.txt")
    (opened / "loop").symlink_to(opened / "loop")
    shelf = open_shelf([opened])
    assert shelf.inside(opened / "first" / "run.json") == opened / "first" / "run.json"
    with pytest.raises(NotHere):
        shelf.inside(opened / path)
