from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kace.cards.store import TreeStore
from kace.cards.tree import Add
from kace.errors import KaceError, UsageError
from kace.report import workspace as module
from kace.report.render import NotHere
from kace.report.workspace import Workspace
from tests.card_samples import a_card
from tests.report.samples import a_run, a_shelf_of_all, a_solve, a_tree


@pytest.fixture(autouse=True)
def looking_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace looks again whenever it is asked."""
    monkeypatch.setattr(module, "LOOK_AGAIN", 0.0)


def names(workspace, kind):
    return [item.name for item in workspace.items(kind)]


def test_a_folder_of_things_is_looked_through(tmp_path):
    a_shelf_of_all(tmp_path)
    a_run(tmp_path / "sweep" / "one")
    a_run(tmp_path / "far" / "too" / "deep")
    workspace = Workspace([tmp_path])
    assert names(workspace, "tree") == names(workspace, "learner") == ["oak"]
    assert names(workspace, "run") == ["first", "oak.epoch-1-add-MS-run", "sweep.one"]
    assert names(workspace, "inbox") == ["letters"]


def test_a_tree_in_one_file_has_no_journal(tmp_path):
    path = tmp_path / "cards.json"
    path.write_text(json.dumps([a_card().model_dump(mode="json")]), encoding="utf-8")
    workspace = Workspace([path])
    assert len(workspace.tree("cards.json").tree) == 1
    path.write_text(json.dumps([a_card(f"EXACT_CARD_NO_{n}").model_dump(mode="json") for n in range(3)]))
    assert len(workspace.tree("cards.json").tree) == 3


def test_a_file_in_a_folder_is_no_tree(tmp_path):
    a_run(tmp_path / "first")
    (tmp_path / "cards.json").write_text(json.dumps([a_card().model_dump(mode="json")]))
    assert names(Workspace([tmp_path]), "tree") == []


def test_a_tree_is_read_again_when_it_has_changed(tmp_path):
    workspace = Workspace([a_tree(tmp_path / "oak")])
    assert len(workspace.tree("oak").tree) == 2
    assert workspace.tree("oak") is workspace.tree("oak")
    TreeStore(tmp_path / "oak").apply(Add(a_card("EXACT_ONE_MORE_CARD")), author="test")
    assert len(workspace.tree("oak").tree) == 3


def test_what_lies_in_a_folder_of_every_study_is_named_by_the_study(tmp_path):
    for study in ("one", "two"):
        a_tree(tmp_path / study / "tree")
        a_run(tmp_path / study / "runs" / "kace")
    workspace = Workspace([tmp_path / "one", tmp_path / "two"])
    assert names(workspace, "tree") == ["one", "two"]
    assert names(workspace, "run") == ["kace", "kace-2"]


def test_what_is_new_in_an_opened_folder_appears(tmp_path):
    a_run(tmp_path / "first")
    workspace = Workspace([tmp_path])
    a_run(tmp_path / "second")
    assert names(workspace, "run") == ["first", "second"]
    assert workspace.item("run", "second").path == tmp_path / "second"


@pytest.mark.parametrize("made", ["empty", "text", "missing", "file", "loop", "nul"])
def test_a_path_with_nothing_to_look_at_is_refused_in_one_line(tmp_path, made):
    path = tmp_path / ("a\0b" if made == "nul" else made)
    if made in ("empty", "text"):
        path.mkdir()
    if made == "text":
        (path / "notes.txt").write_text("hello")
    elif made == "file":
        path.write_text("hello")
    elif made == "loop":
        path.symlink_to(path)
    with pytest.raises(UsageError) as refused:
        Workspace([path])
    assert refused.value.fix and "\n" not in str(refused.value)


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
    workspace = Workspace([opened])
    assert names(workspace, "run") == ["first"] and names(workspace, "tree") == []


@pytest.mark.parametrize("name", ["traces.jsonl", "calls", "run.json"])
def test_a_run_whose_files_lie_outside_is_not_read(tmp_path, secret, name):
    opened = tmp_path / "opened"
    a_run(opened / "first")
    a_run(opened / "second")
    (opened / "first" / name).unlink(missing_ok=True)
    (opened / "first" / name).symlink_to(secret if name == "calls" else secret / "run" / name)
    workspace = Workspace([opened])
    if name == "calls":
        assert workspace.table("first").calls_folder is None
    else:
        with pytest.raises(KaceError):
            workspace.table("first")


def test_a_tree_whose_files_lie_outside_is_not_read(tmp_path, secret):
    opened = tmp_path / "opened"
    a_tree(opened / "oak")
    workspace = Workspace([opened])
    assert len(workspace.tree("oak").tree) == 2
    (opened / "oak" / "cards.jsonl").unlink()
    (opened / "oak" / "cards.jsonl").symlink_to(secret / "tree" / "cards.jsonl")
    with pytest.raises(KaceError):
        workspace.tree("oak")


def test_an_item_that_is_exchanged_for_a_link_later_is_not_read(tmp_path, secret):
    opened = tmp_path / "opened"
    a_run(opened / "other")
    a_run(opened / "first")
    workspace = Workspace([opened])
    workspace.item("run", "first")
    (opened / "first").rename(tmp_path / "away")
    (opened / "first").symlink_to(secret / "run")
    with pytest.raises(NotHere):
        workspace.table("first")


def test_a_run_that_another_one_replaced_is_opened_anew(tmp_path):
    a_run(tmp_path / "all" / "run", [a_solve("a" * 16)])
    workspace = Workspace([tmp_path / "all"])
    assert workspace.table("run").manifest.system == "tiered"
    shutil.rmtree(tmp_path / "all" / "run")
    a_run(tmp_path / "all" / "run", [a_solve("b" * 16), a_solve("c" * 16)], system={"name": "kace"})
    table = workspace.table("run")
    assert table.manifest.system == "kace"
    assert [row.problem[0] for row in table] == ["b", "c"]
