"""The endpoint on the real engine, with the smallest real model."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from openai import OpenAI

from tests.e2e.test_embedded import weights  # noqa: F401 - a fixture
from tests.serve.test_serve_keys import kace_serve


@pytest.mark.model
@pytest.mark.slow
def test_a_client_gets_an_answer_and_a_stream_from_the_embedded_model(weights: Path, tmp_path: Path):  # noqa: F811
    with kace_serve(tmp_path, "--model", f"local/{weights}", "--set", "max_tokens=24") as (_, url):
        with OpenAI(base_url=url, api_key="none", timeout=200, max_retries=0) as client:
            problem = [{"role": "user", "content": "What is 2+2?"}]
            reply = client.chat.completions.create(model="kace", messages=problem)
            assert reply.kace["exit_path"]
            assert reply.usage is not None
            assert reply.usage.completion_tokens > 0
            stream = client.chat.completions.create(model="kace", messages=problem, stream=True)
            told = [getattr(chunk.choices[0].delta, "reasoning_content", None) for chunk in stream]
            assert any(text and text.startswith("ES attempt 2: ") for text in told)
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not any("run_engine" in line and str(weights) in line for line in running.splitlines())
