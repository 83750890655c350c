"""`kace tree` as a person or a pipe uses it."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from kace.cards.card import card_line
from kace.cards.formats import to_json
from kace.cards.store import TreeStore
from tests.card_samples import ALGEBRA, GEOMETRY, card, small_tree
from tests.command import Kace

GOLDEN = Path(__file__).parents[1] / "golden"
NEW = card("MICRO_NEW_CARD")


@pytest.fixture
def kace(kace: Kace) -> Kace:
    """Run `kace tree` in an empty folder."""
    return partial(kace, "tree", PYTHONUTF8="1")


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    """The small tree on disk, as `small`."""
    return TreeStore.create(tmp_path / "small", small_tree().domains, small_tree())


@pytest.fixture
def spec_json(tmp_path: Path) -> Path:
    """The small tree as a JSON file, `small.json`."""
    path = tmp_path / "small.json"
    path.write_text(to_json(small_tree()), encoding="utf-8")
    return path


def refused(done: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    """The command ended with the code and one line that says all of this."""
    assert done.returncode == code, done.stderr
    last = done.stderr.strip().split("\n")[-1]
    assert last.startswith("kace: ")
    for words in said:
        assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_tree_begins_with_its_domains(kace, tmp_path: Path):
    rows = [domain.model_dump() for domain in (ALGEBRA, GEOMETRY)]
    assert kace("init", "t", "-", stdin=json.dumps({"domains": rows})).returncode == 0
    assert TreeStore.open(tmp_path / "t").load().domains == (ALGEBRA, GEOMETRY)
    refused(kace("init", "t", "starter"), 2, "already holds a tree")
    assert kace("init", "s", "starter").returncode == 0
    assert "house_conventions" in TreeStore.open(tmp_path / "s").load().domain_names


def test_a_tree_with_bad_domains_does_not_begin(kace, tmp_path: Path):
    refused(kace("init", "t", "absent.json"), 2, "absent.json: no such file")
    refused(kace("init", "t", "-", stdin='{"domains": [{"name": "Bad Name"}]}'), 2, "snake_case")
    refused(kace("init", "t", "-", stdin="[{}"), 2, "not valid JSON")
    assert not (tmp_path / "t").exists()


def test_show_lists_places_and_figures_in_80_columns(kace, store: TreeStore):
    done = kace("show", "small")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (GOLDEN / "tree_show.txt").read_text(encoding="utf-8")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_show_says_when_a_tree_is_frozen_and_gives_figures_to_programs(kace, store: TreeStore):
    printed = kace("freeze", "small").stdout.strip()
    assert printed == store.load().content_hash()
    assert f"frozen       {printed}" in kace("show", "small").stdout
    figures = json.loads(kace("show", "small", "--json").stdout)
    assert figures["frozen"] == printed
    assert figures["cards"] == 4
    assert figures["status"] == {"experimental": 2, "validated": 1, "deprecated": 1}
    assert figures["places"][-1] == {"place": "all", "cards": 3, "tokens": 97, "tokens per card": 32}


def test_cards_are_listed_one_a_line(kace, store: TreeStore):
    def ids(*arguments: str) -> list[str]:
        done = kace("show", "small", *arguments)
        assert done.returncode == 0, done.stderr
        return [line.split()[0] for line in done.stdout.splitlines()]

    assert ids("cards") == list(small_tree().cards)
    refused(kace("show", "small", "algebar"), 2, "the tree has no card 'algebar'")


def test_a_card_is_shown_whole_and_its_history_logged(kace, store: TreeStore):
    kace("edit", "small", "EXACT_SUM_OF_SQUARES", "--deprecate", "--note", "it misleads\nat MS")
    shown = kace("show", "small", "EXACT_SUM_OF_SQUARES").stdout
    for words in ("+2/6 -> +4/6 on P026 (k=6)", "P026; P031", "Use n(n+1)(2n+1)/6.", "deprecated"):
        assert words in shown
    changes = kace("log", "small", "EXACT_SUM_OF_SQUARES").stdout.splitlines()
    assert "deprecate" in changes[0] and changes[0].endswith("it misleads at MS")
    kace("add", "small", "-", "--note", "from a colleague", stdin=card_line(NEW))
    rows = kace("log", "small").stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["2", "1", "0"]
    assert rows[0].endswith("MICRO_NEW_CARD  from a colleague")
    (entry,) = map(json.loads, kace("log", "small", NEW.card_id, "--json").stdout.splitlines())
    assert entry["cards"][0]["before"] is None
    assert kace("log", "small", "MICRO_NOT_HERE").stdout == ""
    assert kace("show", "small", "MICRO_OLD_TRICK", "--json").stdout.strip() == card_line(
        small_tree().card("MICRO_OLD_TRICK")
    )
    refused(kace("show", "small", "MICRO_NOT_HERE"), 2, "no card 'MICRO_NOT_HERE'")


def test_card_text_cannot_drive_the_terminal(kace, store: TreeStore):
    before = store.load()
    spoof = {**json.loads(card_line(NEW)), "payload": "Useful when:\n- al\u200bways\n\nRead\ufeff \x1b[2Jthis\u200f."}
    done = kace("add", "small", "-", stdin=json.dumps(spoof))
    refused(done, 2, "U+200B")
    assert not set(done.stdout + done.stderr) & set("\u200b\ufeff\u200f\x1b")
    assert store.load() == before


def with_another(fields: dict[str, object]) -> str:
    """A good card, and the same with other fields."""
    good = json.loads(card_line(NEW))
    return json.dumps([good, {**good, **fields}])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        (with_another({"card_id": "MICRO_LONG_BODY", "payload": NEW.payload + "\nline" * 9}), "card 2: card 'MICRO_"),
        (with_another({"card_id": "MICRO_WRONG_TAG", "domain_tags": ["topology"]}), "no domain 'topology'"),
        (with_another({"card_id": "EXACT_SUM_OF_SQUARES"}), "already has a card EXACT_SUM_OF_SQUARES"),
        (with_another({}), "already has a card MICRO_NEW_CARD"),
        (card_line(NEW).replace("sum of squares", "x" * 10_000_000), "at most 8000 characters"),
    ],
)
def test_a_file_with_a_bad_card_is_one_line_and_nothing_is_added(kace, store, tmp_path: Path, content: str, said: str):
    (tmp_path / "cards.json").write_text(content)
    done = kace("add", "small", "cards.json")
    refused(done, done.returncode, said)
    assert done.returncode in (1, 2)
    assert store.load() == small_tree()
    assert store.generation == 0


def test_a_card_is_edited_by_its_text_or_whole(kace, store: TreeStore):
    kace("add", "small", "-", stdin=card_line(NEW))
    payload = "Useful when:\n- cubes\n\nUse the square of n(n+1)/2."
    done = kace("edit", "small", NEW.card_id, "-", stdin=payload + "\n")
    assert done.returncode == 0, done.stderr
    assert store.load().card(NEW.card_id).payload == payload
    assert kace("edit", "small", NEW.card_id, "-", stdin=card_line(NEW)).returncode == 0
    assert store.load().card(NEW.card_id) == NEW
    other = card_line(card("MICRO_OTHER_NAME"))
    refused(kace("edit", "small", NEW.card_id, "-", stdin=other), 2, "not MICRO_NEW_CARD")
    refused(kace("edit", "small", NEW.card_id, "-", stdin="no header"), 2, "trigger header")
    refused(kace("edit", "small", NEW.card_id), 2, "name a FILE")
    refused(kace("edit", "small", NEW.card_id, "small.txt", "--deprecate"), 2, "one at a time")
    refused(kace("edit", "small", NEW.card_id, "--deprecate"), 2, "--note")
    refused(kace("edit", "small", "MICRO_NOT_HERE", "-", stdin="x"), 2, "no card")
    assert store.generation == 3


def test_a_frozen_tree_refuses_changes_until_it_is_thawed(kace, store: TreeStore):
    kace("freeze", "small")
    refused(kace("add", "small", "-", stdin=card_line(NEW)), 2, "frozen")
    assert kace("thaw", "small").returncode == 0
    assert kace("add", "small", "-", stdin=card_line(NEW)).returncode == 0


def test_export_and_import_give_the_same_bytes(kace, spec_json: Path, tmp_path: Path):
    kace("init", "t", "small.json")
    done = kace("add", "t", "small.json")
    assert done.returncode == 0, done.stderr
    assert kace("export", "t").stdout == spec_json.read_text(encoding="utf-8")
    assert "4 already there" in kace("add", "t", "small.json").stderr
    assert TreeStore.open(tmp_path / "t").generation == 1


def test_a_json_file_can_be_read_but_not_changed(kace, spec_json: Path, store: TreeStore):
    assert "generation   no" in kace("show", "small.json").stdout
    assert len(kace("show", "small.json", "cards").stdout.splitlines()) == 4
    assert kace("show", "small.json", "MICRO_OLD_TRICK").returncode == 0
    assert kace("export", "small.json").stdout == spec_json.read_text(encoding="utf-8")
    before = spec_json.read_bytes()
    refused(kace("add", "small.json", "-", stdin=card_line(NEW)), 2, "no tree in small.json")
    refused(kace("log", "small.json"), 2, "no tree in small.json")
    assert spec_json.read_bytes() == before
    spec_json.write_text('{"cards": [{}]}')
    assert kace("show", "small.json").returncode == 2


@pytest.mark.parametrize("verb", ["show", "log"])
def test_a_path_without_a_tree_is_one_clear_line(kace, tmp_path: Path, verb: str):
    (tmp_path / "empty").mkdir()
    refused(kace(verb, "empty"), 2, "empty")
    refused(kace(verb, "absent"), 2, "absent")
    assert list(tmp_path.iterdir()) == [tmp_path / "empty"]
    assert not list((tmp_path / "empty").iterdir())
