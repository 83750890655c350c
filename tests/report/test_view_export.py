from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from kace.errors import KaceError, UsageError
from kace.report import export as export_module
from kace.report.export import LIST, export
from kace.report.page import FILE_POLICY, assets, file_name
from kace.report.workspace import Workspace
from tests.report.samples import a_run, a_shelf_of_all, a_solve, a_tree


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    workspace = Workspace([a_shelf_of_all(tmp_path / "opened")])
    yield workspace
    workspace.close()


@pytest.fixture
def folder(workspace: Workspace, tmp_path: Path) -> Path:
    export(workspace, tmp_path / "out")
    return tmp_path / "out"


def pages(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.html"))


def test_every_item_has_its_pages(folder):
    names = {path.name for path in pages(folder)}
    for path in (
        *("/", "/tree/oak", "/tree/oak/card/EXACT_SUM_OF_SQUARES", "/tree/oak/cell/algebra/medium", "/run/first"),
        *(f"/run/first/problem/{'b' * 16}/0", "/learner/oak", "/inbox/letters"),
        *("/inbox/letters/propose-1",),
    ):
        assert file_name(path) in names


def test_all_solves_of_a_problem_are_one_file(tmp_path):
    """Of several runs and seeds: each has its place there, and links of every page lead to it."""
    solves = [a_solve(problem * 16, seed=seed) for problem in "bc" for seed in (0, 1)]
    workspace = Workspace([a_run(tmp_path / name, solves) for name in ("first", "second")])
    done = export(workspace, tmp_path / "out")
    workspace.close()
    first, second = (file_name(f"/run/first/problem/{problem * 16}/0") for problem in "bc")
    assert file_name(f"/run/second/problem/{'b' * 16}/1") == first != second
    assert {path.name for path in pages(tmp_path / "out") if path.name.startswith("problem-")} == {first, second}
    text = (tmp_path / "out" / first).read_text(encoding="utf-8")
    assert re.findall(r'<article class="solve" id="([^"]*)"', text) == ["first~0", "first~1", "second~0", "second~1"]
    assert len(re.findall(r' id="([^"]*)"', text)) == len(set(re.findall(r' id="([^"]*)"', text)))
    assert f'href="{first}#second~1"' in (tmp_path / "out" / file_name("/run/second")).read_text(encoding="utf-8")
    assert len(done.paths) > len(done.files)


def test_every_link_leads_to_a_file_that_is_there(folder):
    for page in pages(folder):
        for address in re.findall(r'(?:href|src|action)="([^"]*)"', page.read_text(encoding="utf-8")):
            target, _, anchor = unescape(address).partition("#")
            assert not target or (folder / target).is_file(), f"{page.name}: {address}"
            if anchor:
                said = (folder / target if target else page).read_text(encoding="utf-8")
                assert f'id="{anchor}"' in said, f"{page.name}: {address}"


def test_every_file_carries_the_policy_and_nothing_for_a_server(folder):
    for page in pages(folder):
        text = page.read_text(encoding="utf-8")
        assert unescape(text).count(FILE_POLICY) == 1
        assert "data-refresh" not in text and 'method="post"' not in text.lower() and '"/assets' not in text
        assert "<form" not in text


def test_no_file_tells_where_the_originals_lie(folder, tmp_path):
    for page in pages(folder):
        assert str(tmp_path) not in page.read_text(encoding="utf-8"), page.name


def test_the_assets_are_there(folder):
    for name, content in assets().items():
        assert (folder / "assets" / name).read_bytes() == content


def test_a_second_export_takes_away_what_is_gone_and_nothing_else(workspace, folder, tmp_path):
    (folder / "mine.txt").write_text("keep me")
    fewer = Workspace([a_tree(tmp_path / "elm")])
    done = export(fewer, folder)
    assert not (folder / file_name("/tree/oak")).exists()
    assert (folder / file_name("/tree/elm")).exists()
    assert (folder / "mine.txt").read_text() == "keep me"
    assert done.index.is_file() and not list(folder.glob(".*"))


def test_a_list_made_up_by_somebody_else_takes_nothing_away(workspace, folder, tmp_path):
    (tmp_path / "precious").write_text("keep me")
    (folder / LIST).write_text(json.dumps(["../precious", str(tmp_path / "precious"), "assets/../../precious", 7]))
    export(workspace, folder)
    assert (tmp_path / "precious").exists()


def test_an_export_that_was_cut_short_can_be_made_again(workspace, tmp_path, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(export_module, "_asked", stop)
        with pytest.raises(KeyboardInterrupt):
            export(workspace, tmp_path / "out")
    assert not (tmp_path / "out" / "index.html").exists()
    export(workspace, tmp_path / "out")
    assert (tmp_path / "out" / "index.html").exists()
    assert not [path for path in (tmp_path / "out").rglob("*") if path.name.startswith(".")]


def test_a_folder_with_something_else_in_it_is_left_alone(workspace, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    with pytest.raises(UsageError, match="no export of ours"):
        export(workspace, tmp_path / "mine")
    assert (tmp_path / "mine" / "index.html").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_one_line(workspace, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KaceError):
        export(workspace, tmp_path / "file")


def test_what_is_left_out_is_said_on_the_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(export_module, "PAGES_OF_ITEM", 5)
    solves = [a_solve(f"{number:016x}") for number in range(20)]
    workspace = Workspace([a_run(tmp_path / "long", solves), a_run(tmp_path / "short")])
    done = export(workspace, tmp_path / "out")
    workspace.close()
    assert done.left_out == ["Of run long, the first 5 pages are here."]
    index = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "Of run long, the first 5 pages are here." in index
    run = (tmp_path / "out" / file_name("/run/long")).read_text(encoding="utf-8")
    assert file_name("/left-out") in run
    assert "Of run long" in (tmp_path / "out" / file_name("/left-out")).read_text(encoding="utf-8")


def test_a_large_item_leaves_room_for_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(export_module, "PAGES", 60)
    solves = [a_solve(f"{number:016x}") for number in range(200)]
    workspace = Workspace([a_run(tmp_path / "long", solves), a_tree(tmp_path / "oak")])
    done = export(workspace, tmp_path / "out")
    workspace.close()
    assert len(done.paths) == 60
    assert (tmp_path / "out" / file_name("/tree/oak")).exists()


def test_on_several_cores_the_same_files_are_written(tmp_path, monkeypatch):
    shelf = tmp_path / "opened"
    a_shelf_of_all(shelf)
    monkeypatch.setattr(export_module, "PAGES_OF_ITEM", 5)
    for cores, many in ((1, 1_000), (2, 2)):
        monkeypatch.setattr(export_module, "MANY", many)
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        workspace = Workspace([shelf])
        export(workspace, tmp_path / f"on-{cores}")
        workspace.close()
    one, two = ({path.name: path.read_bytes() for path in pages(tmp_path / f"on-{cores}")} for cores in (1, 2))
    assert one == two and len(one) > 8


def test_a_damaged_item_does_not_stop_the_others(tmp_path):
    a_run(tmp_path / "opened" / "first")
    a_tree(tmp_path / "opened" / "oak")
    (tmp_path / "opened" / "oak" / "cards.jsonl").write_text('{"kace_tree":99}\n')
    workspace = Workspace([tmp_path / "opened"])
    done = export(workspace, tmp_path / "out")
    workspace.close()
    assert (tmp_path / "out" / file_name("/run/first")).exists()
    assert any("oak" in line for line in done.left_out)
