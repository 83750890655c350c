"""The figures add up, and are in the form that Prometheus reads."""

from __future__ import annotations

import re
import urllib.request

import openai
import pytest
from openai import OpenAI

from kace.models.base import Usage
from kace.models.budget import Ledger, Spent
from kace.serve.metrics import Histogram, Metrics
from kace.solver.tiers import ExitPath
from tests.serve.running import Running, Watched

SAMPLE = re.compile(r"[a-z_]+(\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\})? \d+(\.\d+)?")


def read(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in lines)
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_every_request_is_counted_once_where_it_belongs():
    messages = [{"role": "user", "content": "?"}]
    with Running(Watched()) as server, OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
        for _ in range(3):
            client.chat.completions.create(model="kace", messages=messages)
        list(client.chat.completions.create(model="kace", messages=messages, stream=True))
        for model, extra in (("other", {}), ("kace", {"n": 2}), ("kace", {"extra_body": {"kace": {"max_calls": 1}}})):
            with pytest.raises(openai.APIStatusError):
                client.chat.completions.create(model=model, messages=messages, **extra)
        with urllib.request.urlopen(f"{server.url}/metrics") as response:
            figures = read(response.read().decode())
    assert figures['kace_requests_total{kind="solve",status="200"}'] == 4
    assert figures['kace_requests_total{kind="solve",status="402"}'] == 1
    assert figures['kace_errors_total{code="model_not_found"}'] == 1
    assert figures['kace_errors_total{code="unsupported_parameter"}'] == 1
    assert figures['kace_errors_total{code="budget_exceeded"}'] == 1
    assert figures['kace_exits_total{path="es_unanimous"}'] == 4
    assert figures['kace_model_calls_total{role="solver"}'] == 9
    assert figures['kace_tokens_total{role="solver",kind="output"}'] == 9 * 4
    assert figures["kace_request_seconds_count"] == 4
    assert figures["kace_requests_in_flight"] == 0


def test_a_histogram_counts_up():
    histogram = Histogram()
    for seconds in (0.05, 0.06, 700.0):
        histogram.add(seconds)
    lines = list(histogram.lines("h"))
    assert lines[0] == 'h_bucket{le="0.05"} 1', "a bound belongs to its bucket"
    assert lines[1] == 'h_bucket{le="0.1"} 2'
    assert lines[-4:] == ['h_bucket{le="600.0"} 2', 'h_bucket{le="+Inf"} 3', "h_sum 700.110000", "h_count 3"]


def test_every_family_says_what_it_is():
    ledger = Ledger(roles={"solver": Spent(calls=2, failed=1, usage=Usage(10, 4, 3), usd=0.5)})
    metrics = Metrics(ledger)
    metrics.exits[ExitPath.MS_MAJORITY] += 1
    text = metrics.text()
    assert text.endswith("\n")
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    assert families == set(re.findall(r"^# HELP (\w+) ", text, re.MULTILINE))
    for name in read(text):
        assert re.sub(r"_(bucket|sum|count)$", "", name.partition("{")[0]) in families
    assert "kace_usd_total 0.500000" in text
