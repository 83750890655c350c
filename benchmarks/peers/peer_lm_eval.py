"""The problems as a task of lm_eval: python peer_lm_eval.py URL FILE ATTEMPTS CONNECTIONS."""

import subprocess
import sys
import tempfile
from pathlib import Path

url, file, attempts, connections = sys.argv[1:]
TASK = f"""
task: mock
dataset_path: json
dataset_kwargs: {{data_files: {{test: {Path(file).resolve()}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{problem}}}}"
doc_to_target: "{{{{answer}}}}"
repeats: {attempts}
generation_kwargs: {{until: [], do_sample: true, temperature: 0.6, max_gen_toks: 100}}
metric_list: [{{metric: exact_match}}]
"""
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "mock.yaml").write_text(TASK)
    model = (
        f"model=m,base_url={url}/chat/completions,num_concurrent={connections},max_retries=1,tokenized_requests=False"
    )
    command = ["--model", "local-chat-completions", "--model_args", model, "--tasks", "mock", "--include_path", folder]
    subprocess.run([sys.executable, "-m", "lm_eval", *command, "--apply_chat_template"], check=True)
