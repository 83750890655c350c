from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from kace.errors import KaceError, UsageError
from kace.report import pages as pages_module
from kace.report.pages import export
from kace.report.render import FILE_POLICY, LEFT_OUT, file_name
from kace.report.workspace import Workspace
from tests.report.samples import a_run, a_shelf_of_all, a_solve, a_tree


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace([a_shelf_of_all(tmp_path / "opened")])


@pytest.fixture
def folder(workspace: Workspace, tmp_path: Path) -> Path:
    export(workspace, tmp_path / "out")
    return tmp_path / "out"


def pages(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.html"))


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


def test_a_folder_with_something_else_in_it_is_left_alone(workspace, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        export(workspace, tmp_path / "mine")
    assert (tmp_path / "mine" / "index.html").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_one_line(workspace, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KaceError):
        export(workspace, tmp_path / "file")


def test_what_is_left_out_leads_to_a_page_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(pages_module, "IN_FILES", 5)
    solves = [a_solve(f"{number:016x}") for number in range(20)]
    workspace = Workspace([a_run(tmp_path / "long", solves), a_run(tmp_path / "short")])
    export(workspace, tmp_path / "out")
    run = (tmp_path / "out" / file_name("/run/long")).read_text(encoding="utf-8")
    assert len(set(re.findall(r'href="(run-long-problem-[^"]*)"', run))) == 5
    assert "The first 5 are in these files" in run
    assert "open the original with: kace view" in (tmp_path / "out" / LEFT_OUT).read_text(encoding="utf-8")


def test_a_damaged_item_does_not_stop_the_others(tmp_path):
    a_run(tmp_path / "opened" / "first")
    a_tree(tmp_path / "opened" / "oak")
    (tmp_path / "opened" / "oak" / "cards.jsonl").write_text('{"kace_tree":99}\n')
    workspace = Workspace([tmp_path / "opened"])
    export(workspace, tmp_path / "out")
    assert (tmp_path / "out" / file_name("/run/first")).exists()
    assert "This cannot be shown" in (tmp_path / "out" / file_name("/tree/oak")).read_text(encoding="utf-8")
