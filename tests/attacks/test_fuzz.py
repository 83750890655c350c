"""Readers at the border take any bytes: they read them, or say in one line why not. `make fuzz` looks longer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kace.answers.extract import MAX_ANSWER_CHARS, Answer, last_boxed
from kace.cards.card import card_line, read_card
from kace.cards.formats import read_exchange, to_json, tree_from_json
from kace.cards.store import TreeStore, read_file
from kace.errors import DataError, KaceError
from kace.files import whole_lines
from kace.ladder.record import Solution, parse_solution
from kace.learning.teacher import MAX_BLOCKS, Grammar, read_blocks
from kace.models.cache import read_calls
from kace.problems import MAX_PROBLEM_CHARS, load_problems
from kace.runs import table
from kace.runs.table import row_of
from kace.serve.app import ApiError, ChatBody, problem_of, read_body
from tests.attacks.given import a_call, trees
from tests.card_samples import a_card, small_tree
from tests.report.samples import a_solve

patient = settings(deadline=None, suppress_health_check=list(HealthCheck))
NASTY = [
    *(b"\0", b"\n", b"\r", b'"', b"\\", b"\\u0000", b"\\ud800", b"{", b"[" * 2_000, b'{"a":' * 2_000, b"null", b"NaN"),
    *(b"-1", b"1e999", b"9" * 5_000, b"\xff", b"\xc2\x85", b"\xe2\x80\xae", b"\xf3\xa0\x81\x81", b"\xef\xbb\xbf"),
    *(b'"v":2,', b'"card_id":"X",', b"true", b"<card>", b"</card>", b"\\boxed{", b"\\frac", b"^", b"}" * 50),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def near(sample: bytes) -> st.SearchStrategy[bytes]:
    """A sample with some cuts and insertions; or anything at all."""
    piece = st.sampled_from(NASTY) | st.binary(max_size=12)
    edits = st.lists(st.tuples(st.integers(0, len(sample)), st.integers(0, 40), piece), max_size=4)

    def edited(changes: list[tuple[int, int, bytes]]) -> bytes:
        data = sample
        for at, cut, new in changes:
            data = data[:at] + new + data[at + cut :]
        return data

    return edits.map(edited) | st.binary()


def field_changed(sample: Mapping[str, object]) -> st.SearchStrategy[bytes]:
    """A record with one field of it anything that JSON can hold."""
    changed = st.tuples(st.sampled_from([*sample]), JSON)
    return changed.map(lambda change: json.dumps({**sample, change[0]: change[1]}).encode())


def lines_of(data: bytes, read: Callable[[Path], object], name: str = "x.jsonl") -> object:
    """What a reader of files says to some bytes; `None` where it refuses them in one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            return read(path)
        except KaceError as error:
            assert "\n" not in str(error)
            return None


SOLVE, CARD = a_solve().model_dump_json().encode(), card_line(a_card()).encode()
TREE = to_json(small_tree()).encode()
CALL, PROBLEM = a_call().encode(), b'{"id": "a", "problem": "What is 1 + 1?", "answer": 2, "domain": "x"}'
BODY = (
    b'{"model": "kace", "messages": [{"role": "user", "content": "1+1?"}], "temperature": 0, "stream": false, "n": 1}'
)
with tempfile.TemporaryDirectory() as made:
    trees(Path(made, "tree"))
    CARDS, JOURNAL = (Path(made, "tree", name).read_bytes() for name in ("cards.jsonl", "journal.jsonl"))


@patient
@given(near(SOLVE + b"\n") | field_changed(json.loads(SOLVE)))
def test_traces(data: bytes):
    found = lines_of(data + b"\n", lambda path: [parse_solution(line, "trace") for _, _, line in whole_lines(path)])
    for solution in found or ():
        if isinstance(solution, Solution):
            assert Solution.model_validate_json(solution.model_dump_json()) == solution
            row = row_of(solution)
            assert table.out_of_range(row) or [*table.Table.of([row], name="fuzzed")] == [row]


@patient
@given(near(CALL) | field_changed(json.loads(CALL)))
def test_recorded_calls(data: bytes):
    lines_of(data + b"\n", lambda path: list(read_calls(path)))


@patient
@given(near(PROBLEM) | field_changed(json.loads(PROBLEM)))
def test_problem_files(data: bytes):
    for problem in lines_of(data, load_problems) or ():
        assert 0 < len(problem.text) <= MAX_PROBLEM_CHARS and problem.text.encode()


@patient
@given(near(CARD) | field_changed(json.loads(CARD)))
def test_cards(data: bytes):
    try:
        card = read_card(data)
    except DataError as error:
        assert "\n" not in str(error)
    else:
        assert read_card(card_line(card)) == card


@patient
@given(near(TREE) | field_changed(json.loads(TREE)) | JSON.map(json.dumps).map(str.encode))
def test_card_files(data: bytes):
    try:
        tree = tree_from_json(data)
        assert tree_from_json(to_json(tree).encode()) == tree
    except DataError as error:
        assert "\n" not in str(error)
    try:
        bundle = read_exchange(data)
        assert all(read_card(card_line(card)) == card for card in bundle.cards)
    except DataError as error:
        assert "\n" not in str(error)


@patient
@given(near(CARDS), near(JOURNAL))
def test_the_files_of_a_tree(cards: bytes, journal: bytes):
    lines_of(cards, read_file, "cards.jsonl")

    def load(path: Path) -> None:
        path.with_name("journal.jsonl").write_bytes(journal)
        TreeStore.open(path.parent).log()

    lines_of(cards, load, "cards.jsonl")


@patient
@given(near(BODY) | field_changed(json.loads(BODY)) | JSON.map(json.dumps).map(str.encode))
@example(b'{"model": "kace", "messages": [{"role": "user", "content": "\\ud800"}]}')
def test_request_bodies(data: bytes):
    try:
        problem_of(read_body(data, ChatBody))
    except ApiError as error:
        assert 400 <= error.status_code < 500


TEXT = near(b"<card>\nid: EXACT_A_B\ntier: medium\npayload:\nUseful when:\n- x\n\nUse $x$.\n</card>\n")


@patient
@given(TEXT.map(lambda data: data.decode("utf-8", "surrogateescape")) | st.text(st.characters()))
def test_blocks(reply: str):
    for grammar in (Grammar("card", name="id", text="payload"), Grammar("card", name="")):
        blocks, bad = read_blocks(reply, grammar)
        assert len(blocks) <= MAX_BLOCKS and all(found.reason for found in bad)
        for block in blocks.values():
            "".join(block.values()).encode()


@patient
@given(
    near(rb"So $\boxed{\frac{1}{2}, \sqrt{3}\text{ cm}, 1.5\cdot 10^{-3}}$").map(
        lambda data: data.decode("utf-8", "ignore")
    )
)
def test_answers(reply: str):
    for text in (reply, rf"\boxed{{{reply}}}"):
        if boxed := last_boxed(text):
            answer = Answer.of(boxed)
            assert len(boxed) <= MAX_ANSWER_CHARS
            assert Answer.of(answer.text).key == answer.key
