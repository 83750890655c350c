"""The relevance gate: one scale for every tree, everyday words count little, and abstaining is an outcome."""

from __future__ import annotations

import asyncio

import pytest

from kace.cards.card import Card, Difficulty, Example, Provenance, Status
from kace.cards.tree import Domain, EpistemicTree
from kace.config import RetrievalConfig
from kace.ladder.policies import SkipEs
from kace.ladder.relevance import BACKGROUND, MOST_COMPARED, OWN_TEXT, BackgroundScore, Relevance, weight
from kace.ladder.retrieve import Retriever
from kace.ladder.tiers import FROM_MS, LOCKED, TierName
from kace.models.scripted import Scripted
from kace.problems import Problem

READING = RetrievalConfig(relevance_threshold=0.45, es_policy="skip")
AVERAGE = "A tram goes uphill at {} km/h and back downhill at {} km/h. What is its average speed for the whole way?"
TILES = "How many square tiles of side {} cm cover a courtyard of {} cm by 90 cm?"
DOMAINS = [Domain(name="rates", description="speed"), Domain(name="areas", description="surfaces")]


def card(name: str, told: str, domain: str = "rates", difficulty: Difficulty = Difficulty.MEDIUM) -> Card:
    made = Card(
        card_id=f"EXACT_{name}_RULE",
        payload=f"Useful when:\n- {name.lower()} is asked\n\nThink.",
        routing_conditions=(),
        difficulty_tag=difficulty,
        domain_tags=(domain,),
        helpfulness_score=0.0,
        provenance=Provenance(source="test"),
    )
    return made.illustrated([Example(told.format(12, 30), "So \\boxed{1}.")]) if told else made


SPEED, TILING = card("AVERAGE", AVERAGE), card("TILING", TILES, "areas")
TREE = EpistemicTree.of(DOMAINS, [SPEED, TILING])
LIKE = Problem("A cyclist rides uphill at 10 km/h and downhill at 40 km/h. What is her average speed for the whole way")
UNLIKE = Problem("Anna has 12 apples and gives 5 of them to each of her 2 friends. How many apples are left in total?")


def retriever(tree: EpistemicTree = TREE, **settings: object) -> Retriever:
    return Retriever(tree, Scripted(lambda _: "rates"), READING.model_copy(update=settings))


def read(tree: EpistemicTree, problem: Problem) -> tuple[tuple[str, ...], int]:
    found = asyncio.run(retriever(tree).retrieve(problem, TierName.MS, (), ()))
    assert found
    return tuple(card.card_id for card in found.cards), found.eligible


def test_a_card_is_shown_where_its_kind_is_asked_and_nowhere_else():
    assert read(TREE, LIKE) == (("EXACT_AVERAGE_RULE",), 1)
    assert read(TREE, UNLIKE)[0] == ()


def test_everyday_words_say_little_and_words_that_nobody_uses_say_one():
    assert weight("how") < 0.1 < weight("number") < weight("polygon") < weight("herring") <= 1.0
    assert weight("flumptious") == 1.0
    assert BACKGROUND.read_text().startswith("11450 problems\n")


def test_a_score_does_not_depend_on_the_other_cards():
    few = BackgroundScore(EpistemicTree.of(DOMAINS, [SPEED]))(LIKE.text)
    others = [card(f"OTHER_{n}", f"What is the average of the uphill speed {n} and {{}} and {{}}?") for n in range(999)]
    many = BackgroundScore(EpistemicTree.of(DOMAINS, [SPEED, *others]))(LIKE.text)
    assert len(many) == MOST_COMPARED and many["EXACT_AVERAGE_RULE"] == pytest.approx(few["EXACT_AVERAGE_RULE"])
    assert 0.45 <= few["EXACT_AVERAGE_RULE"] <= 1


def test_only_what_reaches_the_least_is_scored():
    score = BackgroundScore(TREE)
    every = score(LIKE.text)
    assert score(LIKE.text, 0.45) == {name: value for name, value in every.items() if value >= 0.45}
    assert score(LIKE.text, 1.1) == {} == score("", 0.0)


def test_both_the_words_and_the_meaning_must_agree():
    survey = "Of 300 pupils 40 % like downhill skiing, 20 % uphill walking, the rest a tram to the cinema with popcorn."
    words_only = Problem(f"{survey} How many pupils of the school chose popcorn if nobody chose two things?")
    meaning_only = Problem("Going there takes 3 hours, coming back 2. How fast was it altogether over 60 miles?")
    scores = [BackgroundScore(TREE)(each.text).get("EXACT_AVERAGE_RULE", 0.0) for each in (words_only, meaning_only)]
    assert max(scores) < 0.45


def test_a_card_without_a_demonstration_is_never_held_back():
    bare = EpistemicTree.of(DOMAINS, [card("BARE", "")])
    assert read(bare, Problem("What is the bare speed?")) == (("EXACT_BARE_RULE",), 1)


def test_skipping_es_asks_for_more_than_showing_and_never_for_less():
    def tiers(**settings: object) -> object:
        return asyncio.run(SkipEs(retriever(**settings))(LIKE))

    assert tiers() is FROM_MS and tiers(skip_threshold=0.99) is LOCKED
    assert Relevance(TREE, READING.model_copy(update={"skip_threshold": 0.1})).skip_threshold == 0.45
    retired = EpistemicTree.of(DOMAINS, [SPEED.with_status(Status.DEPRECATED)])
    assert asyncio.run(SkipEs(retriever(retired))(LIKE)) is LOCKED


def test_the_most_relevant_card_names_the_domain():
    nearer = card("NEARER", AVERAGE + " The tram goes uphill, then downhill.", "areas")
    both = EpistemicTree.of(DOMAINS, [nearer, SPEED])
    routed = asyncio.run(retriever(both).router(Problem(AVERAGE.format(10, 40))))
    assert routed.domains == ("rates",) and routed.calls == 0
    assert asyncio.run(retriever(both).router(Problem(TILES.format(9, 9)))).calls == 0


def test_a_card_is_found_in_the_stories_of_its_wordings_by_the_words_that_many_of_them_share():
    told = ("average speed of a ferry upstream and downstream", "a robot sweeps east and west: its average speed?")
    stories = (
        *told,
        "What is the mean velocity of a drone over both legs?",
        "average speed of a courier there and back",
    )
    worded = BackgroundScore(EpistemicTree.of(DOMAINS, [SPEED.worded(stories), TILING]))
    bare, name = BackgroundScore(TREE), SPEED.card_id
    other = "Over both legs of its flight, one with the wind and one against it, what mean velocity has a drone?"
    assert worded(other)[name] > bare(other).get(name, 0.0), "it is like a wording, and was not like the demonstration"
    shared, single = (worded.overlap(word)[1] / weight(word) for word in ("speed", "courier"))
    assert shared > single, "a word of one story says less than a word of most"


def test_wordings_do_not_hide_a_card_from_problems_like_its_own():
    apart = tuple(
        f"What is the mean velocity of a {thing} over both legs?" for thing in ("drone", "kite", "gull", "moth")
    )
    worded = BackgroundScore(EpistemicTree.of(DOMAINS, [SPEED.worded(apart), TILING]))
    assert worded(LIKE.text)[SPEED.card_id] >= OWN_TEXT * BackgroundScore(TREE)(LIKE.text)[SPEED.card_id]


def test_a_card_without_wordings_scores_as_if_there_were_none_in_the_tree():
    worded = EpistemicTree.of(DOMAINS, [SPEED, TILING.worded(("How many slabs pave a yard?",))])
    name = SPEED.card_id
    assert BackgroundScore(worded)(LIKE.text)[name] == BackgroundScore(TREE)(LIKE.text)[name]
