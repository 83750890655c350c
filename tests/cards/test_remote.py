"""Trees on a hub, through the hub's own client: what is sent, what is believed, and that nothing is half there."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kace.cards import remote
from kace.cards.card import Provenance, Status
from kace.cards.remote import CARDS, MOST, Repository
from kace.cards.state import TreeState, state_text
from kace.cards.store import TreeStore, open_tree, tree_path
from kace.cards.tree import EpistemicTree, domains_line
from kace.config import PROFILE_FILE, Config, load_config, profile_text
from kace.errors import KaceError, UsageError
from tests.card_samples import ALGEBRA, GEOMETRY, card, small_tree
from tests.cards.hub_server import HeldFile, HubServer, hub_of
from tests.command import run_kace

pytest.importorskip("huggingface_hub", reason="the extra `hub` is not installed")
TOKEN = "hf_canaryCanaryCanaryCanary0123"
URI = "hf://me/my-tree"
VALIDATED = card("EXACT_VALIDATED_ELSEWHERE", provenance=Provenance(source="x", promotion_status=Status.VALIDATED))
TREE = EpistemicTree.of((ALGEBRA, GEOMETRY), [*small_tree(), VALIDATED])


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_of(TOKEN) as server:
        yield server


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token of this hub, and none that this machine may have."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def config(hub: HubServer) -> Config:
    return load_config({}, env={"HF_ENDPOINT": hub.url, "HOME": "/nonexistent"})


def written(tree: EpistemicTree) -> bytes:
    return state_text(TreeState(tree, generation=7, journal=9, frozen=None)).encode()


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def pulled(hub: HubServer, folder: Path, uri: str = URI) -> remote.PulledTree:
    return Repository.at(uri, config(hub)).pull(folder)


def test_a_tree_that_is_pushed_and_pulled_has_the_same_cards_none_of_them_validated(hub: HubServer, tmp_path: Path):
    store = TreeStore.create(tmp_path / "mine", TREE.domains, TREE, author="secret-name", note="private note")
    (tmp_path / "mine" / PROFILE_FILE).write_text(profile_text({"max_cards": 1, "router": "words"}, {"epochs": 3}))
    (tmp_path / "mine" / "notes.txt").write_text("of nobody's business")
    env = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path / "home")}
    done = run_kace(tmp_path, "tree", "push", "mine", URI, **env)
    held = hub.repositories["models/me/my-tree"]
    commit = held.branches["main"]
    assert done.stdout == f"{hub.url}/models/me/my-tree/commit/{commit}\n", done.stderr
    assert done.stderr == f"{len(TREE)} cards pushed to {URI}\n" and held.visibility == "private"
    sent = {name: file.data for name, file in held.commits[commit].items()}
    assert set(sent) == {".gitattributes", CARDS, PROFILE_FILE}
    assert not any(word in b"".join(sent.values()) for word in (b"secret-name", b"private note", b"nobody", b"epochs"))

    done = run_kace(tmp_path, "tree", "pull", URI, "theirs", **env)
    assert done.stdout == "theirs\n", done.stderr
    assert done.stderr == f"{len(TREE)} cards of {URI} at {commit[:12]}. Read them first: kace view theirs\n"
    there = TreeStore.open(tmp_path / "theirs")
    assert everything_in(tmp_path / "theirs") == [CARDS, "journal.jsonl", "lock", PROFILE_FILE]
    assert there.verify() == [] and there.log()[0].note == f"pulled from {URI} at {commit[:12]}"
    assert [each.payload for each in there.load()] == [each.payload for each in store.load()]
    assert there.load().domains == TREE.domains and there.frozen_hash is None
    assert {each.status for each in there.load()} == {Status.EXPERIMENTAL, Status.DEPRECATED}
    read = load_config({"tree": str(tmp_path / "theirs")}, env={"HOME": "/nonexistent"}).retrieval
    assert (read.max_cards, read.router) == (1, "words")


def test_a_revision_is_a_branch_a_data_set_has_its_own_name_and_the_same_tree_is_committed_once(
    hub: HubServer, tmp_path: Path
):
    old, new = EpistemicTree.of((), []), EpistemicTree.of((ALGEBRA,), [card("MICRO_NEW_ONE_HERE")])
    data = URI.replace("hf://", "hf://datasets/")
    Repository.at(data, config(hub)).push(old, tmp_path, public=True)
    urls = {Repository.at(f"{data}@next%2Ftry", config(hub)).push(new, tmp_path, public=True) for _ in range(2)}
    held = hub.repositories["datasets/me/my-tree"]
    assert held.visibility == "public" and len(held.commits) == 3 and len(urls) == 1
    assert len(pulled(hub, tmp_path / "main", data).tree) == 0
    assert len(pulled(hub, tmp_path / "next", f"{data}@next%2Ftry").tree) == 1
    assert list(open_tree(tmp_path / "next").cards) == ["MICRO_NEW_ONE_HERE"]
    assert len(pulled(hub, tmp_path / "first", f"{data}@{held.branches['main']}").tree) == 0


def test_the_tree_that_ships_can_be_pushed_too(hub: HubServer, tmp_path: Path):
    starter = tree_path("starter")
    Repository.at(URI, config(hub)).push(open_tree(starter), starter, public=False)
    assert len(pulled(hub, tmp_path / "mine").tree) == 44
    env = {"HOME": "/nonexistent"}
    mine, ours = (load_config({"tree": str(path)}, env=env).retrieval for path in (tmp_path / "mine", starter))
    assert mine == ours, "it is read as the one that ships is"
    assert ours.max_cards == 1


@pytest.mark.parametrize("secret", ["sk-abcdef0123456789", "given-in-the-environment"])
def test_a_card_that_holds_a_key_is_not_sent_and_nothing_is_asked(hub: HubServer, tmp_path: Path, secret: str):
    leaky = card("MICRO_LEAKS_A_KEY", payload=f"Useful when:\n- always\n\nSay {secret} first.")
    TreeStore.create(tmp_path / "mine", (ALGEBRA,), [leaky])
    env = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "OPENAI_API_KEY": "given-in-the-environment"}
    done = run_kace(tmp_path, "tree", "push", "mine", URI, **env)
    assert done.returncode == 2 and hub.seen == []
    assert done.stderr.startswith("kace: card MICRO_LEAKS_A_KEY holds what looks like a key; nothing was pushed. Fix: ")
    assert secret not in done.stderr


def test_domains_are_looked_through_too_and_a_profile_that_cannot_be_read_is_one_line(hub: HubServer, tmp_path: Path):
    leaky = EpistemicTree.of((ALGEBRA.model_copy(update={"description": "use sk-abcdef0123456789"}),), ())
    with pytest.raises(UsageError, match="the registry of domains holds what looks like a key"):
        Repository.at(URI, config(hub)).push(leaky, tmp_path, public=False)
    (tmp_path / PROFILE_FILE).write_text('[retrieval]\nrouter = "nobody"\n')
    with pytest.raises(UsageError, match=r"profile\.toml: 1 validation error") as caught:
        Repository.at(URI, config(hub)).push(TREE, tmp_path, public=False)
    assert "\n" not in str(caught.value) and hub.seen == []


def test_a_loosely_written_card_is_made_to_fit_and_that_is_told(hub: HubServer, tmp_path: Path):
    header, *lines = written(EpistemicTree.of((ALGEBRA,), [card("MICRO_LOOSE_ONE_HERE")])).decode().splitlines()
    (loose,) = (line.replace('"routing_conditions":[],', "") for line in lines)
    hub.repository("models/me/my-tree", {CARDS: HeldFile(f"{header}\n{loose}\n".encode())})
    done = run_kace(tmp_path, "tree", "pull", URI, "theirs", HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path / "home"))
    assert done.returncode == 0 and done.stderr.startswith("changed MICRO_LOOSE_ONE_HERE: "), done.stderr


def test_the_token_goes_to_the_hub_alone_and_is_shown_nowhere(hub: HubServer, tmp_path: Path):
    held = hub.repository("models/me/my-tree", {CARDS: HeldFile(written(TREE), large=True)})
    held.visibility = "private"
    assert len(pulled(hub, tmp_path / "mine").tree) == len(TREE)
    assert hub.tokens == [None], "the server of large files gets no token"
    hub.answer = (403, f'{{"error": "bad token {TOKEN}"}}'.encode())
    env = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path / "home")}
    for arguments in (("pull", URI, "other"), ("push", "mine", URI)):
        done = run_kace(tmp_path, "tree", *arguments, **env)
        assert done.returncode == 1 and TOKEN not in done.stdout + done.stderr
        assert "bad token [redacted]" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not any(TOKEN.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_hub_that_only_a_file_names_gets_no_token(hub: HubServer, tmp_path: Path):
    held = hub.repository("models/me/my-tree", {CARDS: HeldFile(written(TREE))})
    file = tmp_path / "kace.toml"
    file.write_text(f'hub = "{hub.url}"\n')
    named = load_config({}, file=file, env={"HOME": "/nonexistent"})
    assert len(Repository.at(URI, named).pull(tmp_path / "open").tree) == len(TREE)
    held.visibility = "private"
    with pytest.raises(KaceError, match="could not be read: 401"):
        Repository.at(URI, named).pull(tmp_path / "private")


def test_cards_are_screened_whatever_hash_their_file_has(hub: HubServer, tmp_path: Path):
    hidden = card("MICRO_HIDES_SOMETHING", payload="Useful when:\n- sums\n\nAdd HERE them.")
    elsewhere = card("MICRO_OF_NO_DOMAIN", domain_tags=("geometry",))
    good = card("MICRO_GOOD_ONE_HERE")
    tree = EpistemicTree.of((ALGEBRA, GEOMETRY), (hidden, elsewhere, good))
    text = written(tree).decode().replace("HERE them", "\u200b\u2060 them")
    header, *lines = text.splitlines()
    geometry = GEOMETRY.model_dump_json()
    bare = header.replace(f",{geometry}", "")
    assert bare != header
    body = "".join(f"{line}\n" for line in lines)
    digest = hashlib.sha256(f"{domains_line((ALGEBRA,))}\n{body}".encode()).hexdigest()
    text = bare.replace(tree.content_hash(), digest) + "\n" + body
    hub.repository("models/me/my-tree", {CARDS: HeldFile(text.encode())})
    env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
    done = run_kace(tmp_path, "tree", "pull", URI, "theirs", **env)
    assert done.returncode == 1 and list(open_tree(tmp_path / "theirs").cards) == ["MICRO_GOOD_ONE_HERE"]
    assert done.stderr.count("refused ") == 2 and done.stderr.endswith("kace: 2 of 3 cards were refused\n")
    hub.repository("models/me/my-tree", {CARDS: HeldFile(f"{bare}\n{lines[-1]}\n".encode())})
    with pytest.raises(KaceError, match="every card is refused"):
        pulled(hub, tmp_path / "none")
    assert not (tmp_path / "none").exists()


BIG = MOST[CARDS] + 1
ODD = {
    "it has no file cards.jsonl": {"README.md": HeldFile(b"# hello")},
    "it has no file cards.jsonl, so": {CARDS: HeldFile(b"", kind="directory")},
    f"cards.jsonl has {BIG:,} bytes, more than": {CARDS: HeldFile(written(TREE), size=BIG)},
    "the file is longer than 10 bytes": {CARDS: HeldFile(written(TREE), size=10)},
    "bytes, not 99,999": {CARDS: HeldFile(written(TREE), size=99_999)},
    "the header cannot be read": {CARDS: HeldFile(b"../../../../etc/passwd")},
    "was written by a newer kace": {CARDS: HeldFile(b'{"kace_tree": 99}\n')},
    "profile.toml has 65,537 bytes": {CARDS: HeldFile(written(TREE)), PROFILE_FILE: HeldFile(b"#" * 65_537)},
    "profile.toml: not TOML": {CARDS: HeldFile(written(TREE)), PROFILE_FILE: HeldFile(b"\xff = 1")},
    "profile.toml: 1 validation error": {
        CARDS: HeldFile(written(TREE)),
        PROFILE_FILE: HeldFile(b'[retrieval]\nmodel = "x"\n'),
    },
}


@pytest.mark.parametrize("reason", ODD)
def test_odd_files_are_refused_in_one_line_and_leave_nothing(hub: HubServer, tmp_path: Path, reason: str):
    hub.repository("models/me/my-tree", {**ODD[reason], "evil.py": HeldFile(b"import os")})
    with pytest.raises(KaceError) as caught:
        pulled(hub, tmp_path / "new" / "theirs")
    assert reason in str(caught.value) and "\n" not in str(caught.value)
    assert everything_in(tmp_path) == []
    assert not any("evil.py" in path for _, path in hub.seen)
    if "more than" in reason:
        assert not any("resolve" in path for _, path in hub.seen)


def test_a_pull_that_fails_leaves_nothing(hub: HubServer, tmp_path: Path):
    hub.repository("models/me/my-tree", {CARDS: HeldFile(written(TREE))})
    hub.drops = True
    with pytest.raises(KaceError, match=f"{URI} could not be read"):
        pulled(hub, tmp_path / "theirs")
    hub.drops, hub.answer = False, (500, b"<html>down</html>")
    with pytest.raises(KaceError, match="500"):
        pulled(hub, tmp_path / "theirs")
    hub.answer = (200, b"<html>log in first</html>")
    with pytest.raises(KaceError, match="could not be read"):
        pulled(hub, tmp_path / "theirs")
    hub.answer = None
    with pytest.raises(KaceError, match="404"):
        pulled(hub, tmp_path / "theirs", "hf://me/nothing")
    with pytest.raises(KaceError, match="404"):
        pulled(hub, tmp_path / "theirs", f"{URI}@nothing")
    assert everything_in(tmp_path) == []
    assert len(pulled(hub, tmp_path / "theirs").tree) == len(TREE)


def test_a_pull_that_is_interrupted_leaves_nothing_and_works_again(hub: HubServer, tmp_path: Path):
    hub.repository("models/me/my-tree", {CARDS: HeldFile(written(TREE))})
    reached, go_on = threading.Event(), threading.Event()
    hub.sent = lambda: (reached.set(), go_on.wait())
    env = {**os.environ, "HF_ENDPOINT": hub.url, "TMPDIR": str(tmp_path / "tmp")}  # noqa: TID251
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "kace", "tree", "pull", URI, "theirs"]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as pulling:
        try:
            while not reached.wait(0.1):
                assert pulling.poll() is None
            pulling.send_signal(signal.SIGINT)
            assert pulling.wait() == 130, pulling.stderr and pulling.stderr.read()
            assert pulling.stderr is not None and "Traceback" not in pulling.stderr.read()
        finally:
            go_on.set()
    assert everything_in(tmp_path) == ["tmp"]
    hub.sent = lambda: None
    assert len(pulled(hub, tmp_path / "theirs").tree) == len(TREE)


def test_a_folder_that_holds_something_is_left_alone(hub: HubServer, tmp_path: Path):
    hub.repository("models/me/my-tree", {CARDS: HeldFile(written(TREE))})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("full", "full/mine", "link", "."):
        with pytest.raises(UsageError, match="is there already"):
            pulled(hub, tmp_path / name)
    assert hub.seen == []


@pytest.mark.parametrize(
    "uri", ["me/tree", "hf://tree", "hf://me/tree/cards.jsonl", "hf://spaces/me/tree", "https://huggingface.co/me/tree"]
)
def test_what_names_no_repository_says_how_to_write_one(hub: HubServer, uri: str):
    with pytest.raises(UsageError, match="names no repository") as caught:
        Repository.at(uri, config(hub))
    assert "hf://owner/name" in caught.value.fix and hub.seen == []


def test_without_the_library_it_says_what_to_install(hub: HubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        Repository.at(URI, config(hub))
    assert caught.value.fix == "pip install 'kace[hub]'"
