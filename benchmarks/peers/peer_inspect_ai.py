"""The problems as an Inspect task: python peer_inspect_ai.py URL FILE ATTEMPTS CONNECTIONS."""

import json
import sys
import tempfile
from pathlib import Path

from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

url, file, attempts, connections = sys.argv[1:]
rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
samples = MemoryDataset([Sample(input=row["problem"], target=row["answer"]) for row in rows])
task = Task(dataset=samples, solver=generate(), scorer=match(), epochs=Epochs(int(attempts), "mode"))
model = get_model("openai-api/mock/m", base_url=url, api_key="none")
with tempfile.TemporaryDirectory() as folder:
    most = int(connections)
    eval(task, model=model, max_connections=most, max_samples=most, display="none", log_dir=folder)
