"""Keys reach the provider and nothing else: not one byte on disk, on a terminal or in a record."""

from __future__ import annotations

from pathlib import Path

from tests.command import run_kace
from tests.models.chat_server import Answer, ChatServer, says

CANARY = "sk-canary-0123456789abcdef"
PASSWORD = "hunter2hunter2"


def every_byte(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_good_run_a_failing_run_and_the_doctor_keep_the_key(tmp_path: Path):
    (tmp_path / "p.jsonl").write_text('{"problem": "6*7?", "answer": "42"}\n{"problem": "6*6?", "answer": "36"}\n')
    echo = Answer(status=401, body=f'{{"error": {{"message": "bad key {CANARY} for {PASSWORD}"}}}}'.encode())
    outputs = []
    for script in ([says("\\boxed{42}")], [echo]):
        with ChatServer(script) as server:
            url = server.url.replace("http://", f"http://user:{PASSWORD}@")
            shared = ["--model", "openai/m", "--base-url", url]
            for verb in (["solve", "--file", "p.jsonl"], ["solve", "6*7?", "--json", "--explain"], ["doctor"]):
                done = run_kace(tmp_path, *verb, *shared, OPENAI_API_KEY=CANARY)
                assert "Traceback" not in done.stderr
                outputs.append(done.stdout + done.stderr)
    shown = "\n".join(outputs)
    assert "42" in shown
    for secret in (CANARY, PASSWORD):
        assert secret not in shown
        assert secret.encode() not in every_byte(tmp_path)
