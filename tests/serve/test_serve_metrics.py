"""The figures add up, and are in the form that Prometheus reads."""

from __future__ import annotations

import re

import openai
import pytest
from openai import OpenAI

from kace.models.base import Usage
from kace.models.budget import Ledger, Spent
from kace.serve.app import ServerMetrics
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
    assert figures['kace_requests_total{status="200"}'] == 4
    assert figures['kace_requests_total{status="402"}'] == 1
    assert figures['kace_errors_total{code="model_not_found"}'] == 1
    assert figures['kace_errors_total{code="invalid_value"}'] == 1
    assert figures['kace_errors_total{code="budget_exceeded"}'] == 1
    assert figures['kace_exits_total{path="es_unanimous"}'] == 4
    assert figures['kace_model_calls_total{role="solver"}'] == 9
    assert figures['kace_output_tokens_total{role="solver"}'] == 9 * 4
    assert figures["kace_requests_in_flight"] == 0


def test_every_family_has_its_type():
    ledger = Ledger(roles={"solver": Spent(calls=2, failed=1, usage=Usage(10, 4, 3), usd=0.5)})
    text = ServerMetrics(ledger).text()
    families = set(re.findall(r"^# TYPE (\w+) (?:counter|gauge)$", text, re.MULTILINE))
    assert {name.partition("{")[0] for name in read_figures(text)} <= families
    assert read_figures(text)["kace_usd_total"] == 0.5
