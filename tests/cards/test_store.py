"""The tree on disk: its history, freezing it, and files that open or say why not."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from kace.cards.card import Difficulty, card_line, read_card
from kace.cards.store import TreeStore, open_state, open_tree
from kace.cards.tree import Add, Deprecate, Edit, EpistemicTree, SetDomains, applied
from kace.errors import DataError, KaceError
from tests.card_samples import DOMAINS, a_card, with_body

A, B = a_card("EXACT_A_A"), a_card("EXACT_B_B", difficulty_tag=Difficulty.HARD)
BETTER = A.revised(payload="Useful when:\n- better\n\nDo it well.")


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    """Five generations: created, two cards added, one edited, one moved, one deprecated."""
    store = TreeStore.create(tmp_path / "tree", DOMAINS)
    for change in (
        *(Add(A), Add(B), Edit(BETTER)),
        *(Edit(B.revised(difficulty_tag=Difficulty.UNIVERSAL, domain_tags=("geometry",))), Deprecate("EXACT_B_B")),
    ):
        store.apply(change, author="ada", note="why not")
    return store


def test_a_store_opens_as_it_was_left_with_one_card_a_line_in_order_of_id(store: TreeStore):
    again = TreeStore.open(store.folder)
    assert again.load() == store.load() and again.load().content_hash() == store.load().content_hash()
    assert again.generation == store.generation == 5
    header, *lines, end = store.cards_path.read_text().split("\n")
    assert lines == [card_line(card) for card in store.load()]
    assert end == ""
    assert json.loads(header)["generation"] == 5
    assert sorted(path.name for path in store.folder.iterdir()) == ["cards.jsonl", "journal.jsonl", "lock"]


def test_the_log_says_who_did_what_and_what_was_there_before(store: TreeStore):
    log = store.log()
    assert [entry.kind for entry in log] == ["create", "add", "add", "edit", "edit", "deprecate"]
    assert [entry.generation for entry in log] == list(range(6))
    edit = log[3]
    assert (edit.author, edit.note) == ("ada", "why not")
    assert (edit.cards[0].before, edit.cards[0].after) == (A, BETTER)
    assert edit.time.endswith("+00:00")


def test_domains_are_part_of_history(store: TreeStore):
    store.apply(SetDomains(DOMAINS[:2]), author="ada")
    assert store.load().domain_names == ("algebra", "geometry")
    (entry,) = store.log()[6:]
    assert entry.domains and (entry.domains.before, entry.domains.after) == (DOMAINS, DOMAINS[:2])


def test_a_batch_is_its_changes_in_order(store: TreeStore):
    new, newer = a_card("MICRO_N_N"), a_card("MICRO_N_N", helpfulness_score=2.0)
    changes = (Add(new), Edit(newer), Deprecate("MICRO_N_N"), Add(a_card("MICRO_O_O")), Edit(A))
    tree = store.load()
    for change in changes:
        tree = applied(tree, change)
    assert store.apply(*changes, author="ada") == tree
    for wrong in ((Add(new), Add(new)), (Edit(a_card("MICRO_Z_Z")), Add(a_card("MICRO_Z_Z")))):
        with pytest.raises(DataError):
            store.apply(*wrong, author="ada")
    assert store.generation == 6
    assert [change.card_id for change in store.log()[-1].cards] == ["EXACT_A_A", "MICRO_N_N", "MICRO_O_O"]
    with pytest.raises(KaceError, match="already holds a tree"):
        TreeStore.create(store.folder, DOMAINS)


def test_a_change_that_alters_nothing_leaves_no_trace(store: TreeStore):
    store.apply(Edit(BETTER), author="ada")
    store.apply(Deprecate("EXACT_B_B"), author="ada")
    assert store.generation == 5


BAD_CHANGES = {
    "unknown tag": lambda: Add(a_card("EXACT_N_N", domain_tags=("topology",))),
    "duplicate id": lambda: Add(A),
    "no such card": lambda: Deprecate("EXACT_Z_Z"),
    "path in an id": lambda: Deprecate("../X"),
    "registry without a used domain": lambda: SetDomains(DOMAINS[2:]),
}


@pytest.mark.parametrize("why", BAD_CHANGES)
def test_a_bad_change_is_one_clear_line_and_changes_nothing(store: TreeStore, why: str):
    store.apply(Add(read_card(json.dumps(with_body(12, Difficulty.HARD)))), author="ada")
    before = {path: path.read_bytes() for path in store.folder.iterdir()}
    with pytest.raises(KaceError) as caught:
        store.apply(BAD_CHANGES[why](), author="ada")
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in store.folder.iterdir()} == before


@pytest.mark.parametrize("author", ["a\nb", "x" * 301, "\x1b[31m"])
def test_an_author_that_cannot_stand_in_a_log_is_refused(store: TreeStore, author: str):
    with pytest.raises(KaceError, match="author"):
        store.apply(Add(a_card("EXACT_N_N")), author=author)
    assert store.generation == 5


def test_a_frozen_store_refuses_changes_until_it_is_thawed(store: TreeStore):
    digest = store.freeze()
    assert (
        digest
        == store.load().content_hash()
        == store.read().frozen
        == open_state(store.folder).frozen
        == store.freeze()
    )
    with pytest.raises(KaceError, match=r"frozen at .*thaw"):
        store.apply(Deprecate("EXACT_A_A"), author="ada")
    store.thaw(author="ada")
    assert open_state(store.folder).frozen is None
    store.apply(Deprecate("EXACT_A_A"), author="ada")
    assert [entry.kind for entry in store.log()][-3:] == ["freeze", "thaw", "deprecate"]


@pytest.mark.parametrize("frozen", [False, True])
def test_cards_edited_by_hand_are_refused_until_they_are_restored(store: TreeStore, frozen: bool):
    if frozen:
        store.freeze()
    kept = store.load()
    text = store.cards_path.read_text()
    store.cards_path.write_text(text.replace("Do it well", "Do it by hand"))
    before = store.cards_path.read_bytes()
    change = partial(store.apply, Add(a_card("MICRO_N_N")), author="ada")
    for attempt in (store.load, store.freeze, partial(store.thaw, author="ada"), change):
        with pytest.raises(DataError, match=r"changed by hand.*restore the file.*kace tree edit"):
            attempt()
    assert store.cards_path.read_bytes() == before
    store.cards_path.write_text(text)
    assert open_tree(store.folder) == kept


def test_a_snapshot_keeps_a_tree_under_a_name(store: TreeStore):
    path = store.snapshot("epoch-1")
    kept = store.load()
    assert store.snapshot("epoch-1") == path
    store.apply(Deprecate("EXACT_A_A"), author="ada")
    assert open_tree(path) == kept != store.load()
    with pytest.raises(KaceError, match="already holds another tree"):
        store.snapshot("epoch-1")
    path.write_text(path.read_text().replace("well", "ill"))
    with pytest.raises(KaceError, match=r"epoch-1\.jsonl: .*changed by hand"):
        open_tree(path)


def test_the_specs_json_opens_as_a_list_or_with_its_domains(tmp_path: Path):
    records = [A.model_dump(mode="json"), B.model_dump(mode="json")]
    bare, full = tmp_path / "bare.json", tmp_path / "full.json"
    bare.write_text(json.dumps(records))
    full.write_text(json.dumps({"domains": [d.model_dump(mode="json") for d in DOMAINS], "cards": records}))
    assert open_tree(bare).domain_names == ("algebra",)
    assert open_tree(full) == EpistemicTree.of(DOMAINS, [A, B])
    assert dict(open_tree(bare).cards) == dict(open_tree(full).cards)
    assert open_state(full).frozen is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ("{}", "without an id"),
        ('{"cards": [], "colour": 1}', "unknown fields"),
        ('{"cards": {}}', "no list"),
        ('[{"card_id": "../X"}]', "card 1"),
        ("[" * 100_000, "recursion limit exceeded"),
        ('{"cards": [], "domains": [{"name": "A B", "description": "x"}]}', "wrong form"),
    ],
)
def test_a_json_file_that_is_no_tree_is_refused_in_one_line(tmp_path: Path, text: str, words: str):
    path = tmp_path / "tree.json"
    path.write_text(text)
    with pytest.raises(KaceError, match=words) as caught:
        open_tree(path)
    assert "tree.json" in str(caught.value) and "\n" not in str(caught.value)


def test_paths_that_hold_no_tree_are_named(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("missing", "empty", "file", "loop", "file/below"):
        for opened in (open_tree, lambda path: TreeStore.open(path).load()):
            with pytest.raises(KaceError, match=name):
                opened(tmp_path / name)
    with pytest.raises(KaceError, match="cannot write"):
        TreeStore.create(tmp_path / "file", DOMAINS)
