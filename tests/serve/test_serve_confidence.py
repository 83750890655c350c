"""The endpoint under confidence: the voted answer is the weighted one, with a tree and without."""

from __future__ import annotations

import pytest
from openai import OpenAI

from kace.cards.tree import EpistemicTree
from kace.models.base import Confidence, Request
from tests.card_samples import small_tree
from tests.serve.running import Running, Watched

ANSWERS = {"ES": ("7", "3"), "MS": ("5", "5", "7")}


def unsure_of_five(request: Request) -> Confidence:
    sure = ANSWERS[request.attempt.tier][request.attempt.index] == "7"
    return Confidence(logprob=-0.5 if sure else -1.5, overall=6.0, tail=6.0, worst=5.0)


@pytest.mark.parametrize("tree", [None, small_tree()])
def test_sure_answers_outweigh_a_majority(tree: EpistemicTree | None):
    model = Watched(lambda asked: f"It is \\boxed{{{ANSWERS[asked.attempt.tier][asked.attempt.index]}}}")
    model.confidence = unsure_of_five
    with Running(model, tree=tree, vote="confidence") as server:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
            reply = client.chat.completions.create(model="kace", messages=[{"role": "user", "content": "What is it?"}])
    assert reply.choices[0].message.content == r"It is \boxed{7}"
    assert reply.kace["exit_path"] == "ms_majority"  # type: ignore[attr-defined]
