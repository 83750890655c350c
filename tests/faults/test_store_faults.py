"""A tree survives kills, crowds, full disks, damage and other versions: it opens whole, or one line says why not."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import Add, Deprecate, Edit, EpistemicTree
from kace.errors import DataError, KaceError
from tests.card_samples import DOMAINS, a_card
from tests.disk import no_file_grows_past
from tests.faults.children import forked


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    store = TreeStore.create(tmp_path / "tree", DOMAINS, [a_card(f"EXACT_N_{n}") for n in range(5)])
    for n in range(5, 10):
        store.apply(Add(a_card(f"EXACT_N_{n}")), author="ada")
    return store


def journal_lines(store: TreeStore) -> list[bytes]:
    return store.journal_path.read_bytes().split(b"\n")[:-1]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def add_fifty(folder: Path, writer: int) -> None:
    store = TreeStore.open(folder)
    for n in range(50):
        store.apply(Add(a_card(f"EXACT_P{writer}_N{n}")), author=f"writer {writer}")


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_eight_processes_of_fifty_edits_lose_none(tmp_path: Path, record_property: Callable[[str, object], None]):
    record_property("tries", 400)
    store = TreeStore.create(tmp_path / "tree", DOMAINS)
    writers = [forked(lambda n=n: add_fifty(store.folder, n)) for n in range(8)]
    sizes = []
    while os.waitid(os.P_PID, writers[-1], os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        sizes.append(len(TreeStore.open(store.folder).load()))  # a reader never waits and never sees a broken tree
        time.sleep(0.05)
    assert [os.waitpid(writer, 0)[1] for writer in writers] == [0] * 8
    assert sizes == sorted(sizes)
    assert len(store.load()) == store.generation == 400


def edit_for_ever(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    store = TreeStore.open(folder)
    while True:
        card = a_card(f"EXACT_N_{chance.randrange(40)}", helpfulness_score=chance.random())
        store.apply(Edit(card) if card.card_id in store.load() else Add(card), author="victim")


def killed_after(seconds: float, work: Callable[[], None]) -> None:
    child = forked(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child must die at work for this to test anything"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_killed_at_fifty_instants_the_tree_agrees_with_its_journal(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    record_property("tries", 50)
    folder = TreeStore.create(tmp_path / "tree", DOMAINS, [a_card(f"EXACT_N_{n}") for n in range(20)]).folder
    instants = random.Random(5)
    generation = 0
    for seed in range(50):
        killed_after(instants.uniform(0.002, 0.05), lambda seed=seed: edit_for_ever(folder, seed))
        store = TreeStore.open(folder)
        tree = store.load()
        assert store.generation >= generation, "nothing acknowledged is lost"
        generation = store.generation
        cards = {change.card_id: change.after for entry in store.log() for change in entry.cards}
        assert EpistemicTree.of(DOMAINS, cards.values()) == tree
    assert generation > 5, "some children must get some work done"
    store.apply(Deprecate("EXACT_N_0"), author="ada")
    assert sorted(path.name for path in folder.iterdir()) == ["cards.jsonl", "journal.jsonl", "lock"], "no litter"


def test_a_kill_between_the_journal_and_the_cards_is_a_change_that_was_not_made(store: TreeStore):
    before = store.cards_path.read_bytes()
    tree = store.load()
    store.apply(Deprecate("EXACT_N_3"), author="ada")
    store.cards_path.write_bytes(before)
    killed = TreeStore.open(store.folder)
    assert killed.load() == tree and len(killed.log()) == 6
    killed.apply(Deprecate("EXACT_N_4"), author="ada")
    assert (store.generation, store.log()[-1].cards[0].card_id) == (6, "EXACT_N_4")


def test_a_kill_during_creation_leaves_a_tree_or_nothing(tmp_path: Path):
    whole = TreeStore.create(tmp_path / "whole", DOMAINS, [a_card()])
    line = whole.journal_path.read_bytes()
    for size in (0, 1, len(line) - 1):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(line[:size])
        with pytest.raises(KaceError, match="no tree"):
            TreeStore.open(folder)
        assert list(TreeStore.create(folder, DOMAINS, [a_card()]).load()) == [a_card()]


@pytest.mark.parametrize("tail", [b"x", b'{"v":1,"generation":6', b"\x00" * 5_000])
def test_a_torn_journal_tail_is_ignored_and_cut(store: TreeStore, tail: bytes):
    before = store.load()
    with store.journal_path.open("ab") as file:
        file.write(tail)
    assert TreeStore.open(store.folder).load() == before
    TreeStore.open(store.folder).apply(Deprecate("EXACT_N_0"), author="ada")
    assert [entry.generation for entry in TreeStore.open(store.folder).log()] == list(range(7))


@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing"])
def test_damage_in_the_middle_of_the_journal_costs_only_its_own_line(store: TreeStore, damage: str):
    lines = journal_lines(store)
    hurt = {
        "flipped": [lines[2].replace(b'"generation"', b'"generatiom"')],
        "truncated": [lines[2][:50]],
        "missing": [],
    }
    store.journal_path.write_bytes(b"\n".join([*lines[:2], *hurt[damage], *lines[3:], b""]))
    fresh = TreeStore.open(store.folder)
    assert len(fresh.load()) == 10, "the cards are whole, so the tree opens"
    assert [entry.generation for entry in fresh.log()] == [0, 1, 3, 4, 5]
    fresh.apply(Deprecate("EXACT_N_0"), author="ada")
    assert TreeStore.open(store.folder).generation == 6


@pytest.mark.parametrize("content", [b"", b"\n", b"garbage\n", b'{"kace_tree":1}\n', b"[" * 100_000, b"\x00" * 100])
def test_cards_that_are_no_longer_a_tree_are_refused_with_the_way_back(store: TreeStore, content: bytes):
    store.cards_path.write_bytes(content)
    with pytest.raises(DataError, match=r"cards\.jsonl:1: .*restore the file"):
        TreeStore.open(store.folder).load()


def test_a_newer_format_is_refused_and_left_untouched(store: TreeStore):
    header, _, rest = store.cards_path.read_text().partition("\n")
    newer = json.dumps({**json.loads(header), "kace_tree": 2, "colour": "red"})
    store.cards_path.write_text(f"{newer}\n{rest}")
    before = contents(store.folder)
    refused = {
        "open": lambda: open_tree(store.folder),
        "apply": lambda: TreeStore.open(store.folder).apply(Deprecate("EXACT_N_0"), author="ada"),
        "freeze": lambda: TreeStore.open(store.folder).freeze(),
        "create": lambda: TreeStore.create(store.folder, DOMAINS),
        "file": lambda: open_tree(store.cards_path),
    }
    for name, attempt in refused.items():
        with pytest.raises(KaceError, match="already holds" if name == "create" else "of a newer kace"):
            attempt()
    assert contents(store.folder) == before


def test_a_full_disk_refuses_the_change_and_keeps_the_tree(store: TreeStore):
    before = contents(store.folder)
    room = store.journal_path.stat().st_size + 100
    with no_file_grows_past(room), pytest.raises(KaceError, match=r"cannot write .*journal\.jsonl"):
        store.apply(Deprecate("EXACT_N_0"), author="ada")
    assert contents(store.folder) == before
    assert TreeStore.open(store.folder).load() == store.load()


def test_a_change_that_only_the_journal_had_room_for_is_not_made(store: TreeStore):
    for n in range(10, 60):  # cards.jsonl now outgrows what the disk has left, the journal of a fresh store does not
        store.apply(Add(a_card(f"EXACT_N_{n}")), author="ada")
    store.journal_path.write_bytes(journal_lines(store)[-1] + b"\n")
    before = store.cards_path.read_bytes()
    with no_file_grows_past(8_000):
        with pytest.raises(KaceError, match=r"cannot write .*cards\.jsonl"):
            TreeStore.open(store.folder).apply(Deprecate("EXACT_N_0"), author="ada")
    assert store.cards_path.read_bytes() == before
    assert not list(store.folder.glob(".*.tmp"))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_read_only_store_is_read_and_refuses_changes(store: TreeStore):
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    folder = place / "tree"
    shutil.copytree(store.folder, folder)
    (folder / "lock").unlink()
    folder.chmod(0o555)

    def ask() -> None:
        if os.geteuid() == 0:  # the superuser may write anywhere, so ask as somebody else
            os.setuid(65_534)
        assert len(TreeStore.open(folder).load()) == 10
        with pytest.raises(KaceError, match="cannot write"):
            TreeStore.open(folder).apply(Deprecate("EXACT_N_0"), author="ada")

    assert os.waitpid(forked(ask), 0)[1] == 0
    assert TreeStore.open(folder).load() == store.load()
    folder.chmod(0o755)
    shutil.rmtree(place)


def test_a_writer_that_never_ends_is_named(store: TreeStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kace.cards.store.LOCK_SECONDS", 0.05)
    with store._lock(), pytest.raises(KaceError, match="is being written by another process"):
        TreeStore.open(store.folder).apply(Deprecate("EXACT_N_0"), author="ada")
    assert len(store.load()) == 10
