"""The relevance gate: a card is shown where its kind is asked, and abstaining is an outcome."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from kace.cards.card import Card, Example, Provenance, Status
from kace.cards.store import INDEX_FILE, TreeStore, open_tree
from kace.cards.tree import Add, Domain, EpistemicTree
from kace.config import RetrievalConfig
from kace.errors import DataError
from kace.ladder import relevance
from kace.ladder.policies import begin_with_cards
from kace.ladder.relevance import (
    Relevance,
    RelevanceIndex,
    TextTable,
    everyday_problems,
    has_minilm,
    open_index,
    softmax,
    terms,
)
from kace.ladder.retrieve import Retriever
from kace.ladder.tiers import LADDERS, LOCKED, TierName
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.card_samples import card as sample

READING = RetrievalConfig(relevance_threshold=0.3, es_policy="skip")
AVERAGE = "A tram goes uphill at {} km/h and back downhill at {} km/h. What is its average speed for the whole way?"
TILES = "How many square tiles of side {} cm cover a courtyard of {} cm by 90 cm?"
DOMAINS = [Domain(name="rates", description="speed"), Domain(name="areas", description="surfaces")]
STORIES = (
    "A gull flies out over the bay at 12 m/s and home at 6 m/s. Find its average speed.",
    "What is the mean velocity of a drone over both legs, 9 m/s there and 18 m/s back?",
    "A courier rides to a village at 20 km/h and returns at 30 km/h. Average speed?",
    "Upstream a ferry makes 8 km/h and downstream 24 km/h. Find its average speed there and back.",
)


def card(name: str, told: str, domain: str = "rates", sources: tuple[str, ...] = ()) -> Card:
    own = Provenance(source="test", supporting_problems=sources)
    payload = f"Useful when:\n- {name.lower()} is asked\n\nThink."
    made = sample(f"EXACT_{name}_RULE", payload=payload, domain_tags=(domain,), provenance=own)
    return made.illustrated([Example(told.format(12, 30), "So \\boxed{1}.")]) if told else made


SPEED, TILING = card("AVERAGE", AVERAGE), card("TILING", TILES, "areas")
TREE = EpistemicTree.of(DOMAINS, [SPEED, TILING])
LIKE = Problem("A cyclist rides uphill at 10 km/h and downhill at 40 km/h. What is her average speed for the whole way")
UNLIKE = Problem("Anna has 12 apples and gives 5 of them to each of her 2 friends. How many apples are left in total?")


def retriever(tree: EpistemicTree = TREE, **settings: object) -> Retriever:
    return Retriever(tree, Scripted(lambda _: "rates"), READING.model_copy(update=settings))


def read(tree: EpistemicTree, problem: Problem, **settings: object) -> tuple[tuple[str, ...], int]:
    found = asyncio.run(retriever(tree, **settings).retrieve(problem, TierName.MS, (), ()))
    assert found
    return tuple(card.card_id for card in found.cards), found.eligible


def test_a_card_is_shown_where_its_kind_is_asked_and_nowhere_else():
    assert read(TREE, LIKE) == (("EXACT_AVERAGE_RULE",), 1)
    assert read(TREE, UNLIKE)[0] == ()
    assert open_index(TREE).probabilities(UNLIKE.text)[-1] > 0.5, "the last is that of no card"


def test_a_card_with_one_demonstration_of_an_invented_word_is_found_by_that_word():
    custom = card("GLIMMET", "In Orlo a glimmet of {} lamps is lit for {} nights. How many glimmets are counted?")
    tree = EpistemicTree.of(DOMAINS, [custom])
    assert read(tree, Problem("The harbour of Orlo lights a glimmet of 7 lamps. How many glimmets is that?"))[0]
    assert not any(read(tree, Problem(text))[0] for text in everyday_problems()[::20])


def test_of_very_many_cards_those_with_the_best_words_are_compared(monkeypatch: pytest.MonkeyPatch):
    worded = EpistemicTree.of(DOMAINS, [*TREE, *(card(f"BARE_{n}", "") for n in range(9))])
    monkeypatch.setattr(relevance, "MOST_COMPARED", 3)
    shares = open_index(worded).probabilities(LIKE.text)
    assert np.count_nonzero(shares) == 4 and shares[-1] > 0, "the three and the class of no card"
    assert read(TREE, LIKE)[0] == (SPEED.card_id,)


def test_numbers_are_masked_and_pairs_of_words_count():
    assert terms("12 apples, 3.5 apples") == ["#", "apple", "#", "apple", "# apple", "apple #", "# apple"]


def test_wordings_find_a_card_in_other_stories():
    worded = EpistemicTree.of(DOMAINS, [SPEED.revised(wordings=STORIES), TILING])
    other = "On the way out a kite surfer makes 15 knots, on the way home 10 knots. Find the mean speed of the trip."
    name = SPEED.card_id
    assert open_index(worded)(other)[name] > 2 * open_index(TREE)(other).get(name, 0.0)


def test_cards_of_one_problem_do_not_halve_each_other():
    first = card("AVERAGE", AVERAGE, sources=("p1",))
    second = card("MEAN", STORIES[0], sources=("p1",))
    cards = ([first], [first, second], [SPEED, card("MEAN", STORIES[0])])
    alone, both, apart = (open_index(EpistemicTree.of(DOMAINS, shown))(LIKE.text) for shown in cards)
    assert min(both.values()) > 0.8 * alone[first.card_id]
    assert sum(apart.values()) <= 1.0 + 1e-5, "of other problems, they share the probability"


def test_training_problems_without_a_card_are_examples_of_none_unless_they_look_like_a_card():
    def scores(text: str) -> tuple[float, float]:
        trained = TextTable(TREE, [Problem(text, "1", "p9")]).index()
        return open_index(TREE)(text)[SPEED.card_id], trained(text)[SPEED.card_id]

    before, after = scores("What is the speed of a tram uphill?")
    assert after < before / 2
    before, after = scores("A tram goes uphill at 5 km/h. What is its speed downhill?")
    assert after >= before > 0.3, "the solver may have solved it without a card"


def test_a_problem_is_scored_as_if_its_technique_were_unknown():
    sources = EpistemicTree.of(DOMAINS, [card("AVERAGE", AVERAGE, sources=("p1",)), TILING])
    problem = Problem(AVERAGE.format(14, 35), "20", "p1")
    table = TextTable(sources, [problem])
    assert table.index()(problem.text)["EXACT_AVERAGE_RULE"] > 0.3
    scores = table.without([problem], ["EXACT_AVERAGE_RULE"])[problem.id]
    assert set(scores) == {"EXACT_TILING_RULE"} and scores["EXACT_TILING_RULE"] < 0.2


def test_the_fit_reaches_the_least_of_its_loss():
    """At the minimum, the penalty on a text's weight is what its prediction lacks."""
    table = TextTable(EpistemicTree.of(DOMAINS, [SPEED.revised(wordings=STORIES), TILING]))
    found = table.fit(np.arange(len(table.texts)))
    gradient = softmax(table.likeness @ found) - table.labels + found / relevance.STRENGTH
    assert np.abs(gradient).max() < 0.02


def test_at_most_so_many_cards_are_shown_the_most_relevant_first():
    cards = [card(f"MEAN_{n}", AVERAGE + " " * n, sources=("p1",)) for n in range(1, 4)]
    nearer = card(
        "AVERAGE",
        "A rider goes uphill at 8 km/h and downhill at 24 km/h. Find her average speed for the whole way.",
        sources=("p1",),
    )
    tree = EpistemicTree.of(DOMAINS, [*cards, nearer])
    shown = read(tree, LIKE)[0]
    assert len(shown) == 2 and "EXACT_AVERAGE_RULE" in shown
    assert len(read(tree, LIKE, max_cards=9)[0]) == 4


def test_a_card_without_a_demonstration_is_never_held_back():
    bare = EpistemicTree.of(DOMAINS, [card(f"BARE_{n}", "") for n in range(3)])
    assert len(read(bare, Problem("What is the bare speed?"))[0]) == 3


def test_skipping_es_requires_more_than_showing_and_never_less():
    def tiers(**settings: object) -> object:
        return asyncio.run(begin_with_cards(retriever(**settings))(LIKE))

    assert tiers() is LADDERS["skip"] and tiers(skip_threshold=1.0) is LOCKED
    assert Relevance(TREE, READING.model_copy(update={"skip_threshold": 0.1})).skip_threshold == 0.3
    retired = EpistemicTree.of(DOMAINS, [SPEED.with_status(Status.DEPRECATED)])
    assert asyncio.run(begin_with_cards(retriever(retired))(LIKE)) is LOCKED


def test_the_most_relevant_card_names_the_domain():
    nearer = card("NEARER", "How many tiles pave a yard of {} m by {} m?", "areas")
    both = EpistemicTree.of(DOMAINS, [nearer, SPEED])
    routed = asyncio.run(retriever(both).router(Problem(AVERAGE.format(10, 40))))
    assert routed.domains == ("rates",) and routed.calls == 0


def test_a_kept_index_scores_as_the_trained_one_and_is_read_with_the_tree(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    TreeStore.create(tmp_path / "tree", DOMAINS, [SPEED, TILING])
    table = TextTable(TREE, [UNLIKE])
    index = table.index()
    index.save(tmp_path / "tree" / INDEX_FILE)
    tree = open_tree(tmp_path / "tree")
    kept = open_index(tree)
    assert kept(LIKE.text) == index(LIKE.text) != open_index(TREE)(LIKE.text)
    store = TreeStore.open(tmp_path / "tree")
    store.apply(Add(card("MORE", STORIES[0])), author="test")
    more = open_index(open_tree(tmp_path / "tree"))
    assert set(more.cards) > set(kept.cards), "a card that was added is in no class of the file"
    assert "lacks cards of its tree" in caplog.text


SPOILED = {
    "shape": ("shared", lambda part: np.zeros(4, dtype=np.float32)),
    "classes": ("classes", lambda part: part + 10_000),
    "starts": ("starts", lambda part: part[::-1]),
    "not finite": ("meaning", lambda part: part * np.float16(np.inf)),
    "encoder": ("facts", lambda part: np.frombuffer(part.tobytes().replace(b"wordllama", b"../evil"), np.uint8)),
    "list": ("facts", lambda part: np.frombuffer(b"[%b]" % part.tobytes(), np.uint8)),
    "pickle": ("facts", lambda part: np.array([{"a": 1}], dtype=object)),
    "between classes": ("shared", lambda part: np.array([[0.5, 1, 1]], dtype=np.float32)),
}


@pytest.mark.parametrize("spoil", ["text", "bytes", *SPOILED])
def test_a_damaged_or_hostile_index_is_refused_in_one_line(tmp_path: Path, spoil: str):
    path = tmp_path / INDEX_FILE
    open_index(TREE).save(path)
    if spoil in SPOILED:
        with np.load(path) as arrays:
            parts = dict(arrays)
        name, change = SPOILED[spoil]
        np.savez(path, **{**parts, name: change(parts[name])})
    else:
        content = path.read_bytes()
        path.write_bytes(content[:200] + bytes(700) + content[900:] if spoil == "bytes" else b"no index")
    with pytest.raises(DataError, match=r"relevance\.npz: not a relevance index"):
        RelevanceIndex.read(path)


def test_an_index_of_an_encoder_that_is_missing_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    TreeStore.create(tmp_path / "tree", DOMAINS, [SPEED])
    index = open_index(EpistemicTree.of(DOMAINS, [SPEED]))
    object.__setattr__(index, "encoder", "minilm")
    index.save(tmp_path / "tree" / INDEX_FILE)
    monkeypatch.setattr(relevance, "has_minilm", lambda: False)
    with pytest.raises(DataError) as raised:
        open_index(open_tree(tmp_path / "tree"))
    assert "kace[meaning]" in str(raised.value.fix)


@pytest.mark.skipif(not has_minilm(), reason="kace[meaning] is not installed")
def test_sentence_embeddings_know_synonyms_better():
    pair = ("What is the mean velocity of the boat?", "Find the average speed of the ship.")
    first, second = relevance.embed_by_minilm(pair)
    assert first @ first == pytest.approx(1, abs=1e-3)
    static = relevance.embed(pair)
    assert first @ second > static[0] @ static[1]
