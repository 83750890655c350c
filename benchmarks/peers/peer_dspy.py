"""The problems through `dspy.Predict`: python peer_dspy.py URL FILE ATTEMPTS CONNECTIONS."""

import json
import sys
from pathlib import Path

import dspy

url, file, attempts, connections = sys.argv[1:]
dspy.configure(lm=dspy.LM("openai/m", api_base=url, api_key="none", cache=False, temperature=0.6, num_retries=0))
predict = dspy.Predict("question -> answer")
rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
asked = [(predict, dspy.Example(question=row["problem"]).with_inputs("question")) for row in rows]
dspy.Parallel(num_threads=int(connections), disable_progress_bar=True)(asked * int(attempts))
