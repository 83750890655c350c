"""The figures add up, and are in the form that Prometheus reads."""

from __future__ import annotations

import re

import openai
import pytest
from openai import OpenAI

from kace.cards.card import UNIVERSAL, Difficulty
from kace.cards.tree import EpistemicTree
from kace.ladder.tiers import ExitPath
from kace.models.base import Request, Usage
from kace.models.budget import Ledger, Spent
from kace.serve.app import ServerMetrics
from tests.card_samples import ALGEBRA, card
from tests.serve.running import Running, Watched, read_figures


def test_every_request_is_counted_once_where_it_belongs():
    messages = [{"role": "user", "content": "?"}]
    with Running(Watched()) as server, OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
        for _ in range(3):
            client.chat.completions.create(model="kace", messages=messages)
        list(client.chat.completions.create(model="kace", messages=messages, stream=True))
        for model, extra in (("other", {}), ("kace", {"n": 2}), ("kace", {"extra_body": {"kace": {"max_calls": 1}}})):
            with pytest.raises(openai.APIStatusError):
                client.chat.completions.create(model=model, messages=messages, **extra)
        figures = server.figures()
    assert figures['kace_requests_total{kind="solve",status="200"}'] == 4
    assert figures['kace_requests_total{kind="solve",status="402"}'] == 1
    assert figures['kace_errors_total{code="model_not_found"}'] == 1
    assert figures['kace_errors_total{code="unsupported_parameter"}'] == 1
    assert figures['kace_errors_total{code="budget_exceeded"}'] == 1
    assert figures['kace_exits_total{path="es_unanimous"}'] == 4
    assert figures['kace_model_calls_total{role="solver"}'] == 9
    assert figures['kace_tokens_total{kind="output",role="solver"}'] == 9 * 4
    assert figures["kace_request_seconds_count"] == 4
    assert figures["kace_requests_in_flight"] == 0


def doubtful(request: Request) -> str:
    """No two attempts agree, so every tier is climbed."""
    return f"\\boxed{{{request.attempt.tier.encode().hex()}{request.attempt.index}}}"


def test_card_tiers_are_counted_by_whether_they_showed_a_card_or_abstained():
    worked = "Example:\nTwo dice are thrown. How many results?\nWorked:\n6 * 6 = 36.\n\\boxed{36}"
    payload = f"Useful when:\n- several dice are thrown\n\nCount the sides first.\n\n{worked}"
    dice = card(
        "EXACT_COUNT_DICE_SIDES", payload=payload, difficulty_tag=Difficulty.UNIVERSAL, domain_tags=(UNIVERSAL,)
    )
    told = []
    with Running(Watched(doubtful), tree=EpistemicTree.of((ALGEBRA,), (dice,))) as server:
        with OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
            assert server.figures()['kace_card_tiers_total{outcome="abstained"}'] == 0, "known before the first"
            for problem in ("Three dice are thrown. How many results?", "Find the slope of the line $y = 3x$."):
                messages = [{"role": "user", "content": problem}]
                for chunk in client.chat.completions.create(model="kace", messages=messages, stream=True):
                    told.append(getattr(chunk.choices[0].delta, "reasoning_content", None) or "")
            figures = server.figures()
    assert figures['kace_card_tiers_total{outcome="shown"}'] == 2
    assert figures['kace_card_tiers_total{outcome="abstained"}'] == 2
    lines = [line for line in "".join(told).splitlines() if " card" in line]
    steps = ("reads 1 card of algebra.", "abstains from 1 card.")
    assert lines == [f"{tier} {step}" for step in steps for tier in ("MS", "HS")]


def test_a_histogram_counts_up():
    metrics = ServerMetrics(Ledger())
    for seconds in (0.05, 0.06, 700.0):
        metrics.seconds.observe(seconds)
    figures = read_figures(metrics.text().decode())
    buckets = {name: count for name, count in figures.items() if name.startswith("kace_request_seconds_bucket")}
    assert list(buckets.values()) == sorted(buckets.values())
    assert buckets['kace_request_seconds_bucket{le="0.05"}'] == 1, "a bound belongs to its bucket"
    assert buckets['kace_request_seconds_bucket{le="0.1"}'] == 2
    assert buckets['kace_request_seconds_bucket{le="600.0"}'] == 2
    assert buckets['kace_request_seconds_bucket{le="+Inf"}'] == figures["kace_request_seconds_count"] == 3
    assert figures["kace_request_seconds_sum"] == pytest.approx(700.11)


def test_every_family_says_what_it_is():
    ledger = Ledger(roles={"solver": Spent(calls=2, failed=1, usage=Usage(10, 4, 3), usd=0.5)})
    metrics = ServerMetrics(ledger)
    metrics.exits.labels(ExitPath.MS_MAJORITY.value).inc()
    text = metrics.text().decode()
    assert text.endswith("\n")
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    assert families == set(re.findall(r"^# HELP (\w+) ", text, re.MULTILINE))
    for name in read_figures(text):
        assert re.sub(r"_(bucket|sum|count)$", "", name.partition("{")[0]) in families
    assert read_figures(text)["kace_usd_total"] == 0.5
    assert len(families) == 12


def test_two_servers_in_one_process_count_apart():
    first, second = ServerMetrics(Ledger()), ServerMetrics(Ledger())
    first.disconnects.inc()
    assert read_figures(first.text().decode())["kace_disconnects_total"] == 1
    assert read_figures(second.text().decode())["kace_disconnects_total"] == 0
