"""Send a problem to a running `kace serve`: python examples/serve.py [URL].

Needs `pip install openai`; any other OpenAI client works as well.
"""

import sys

from openai import OpenAI

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8123/v1"
client = OpenAI(base_url=url, api_key="none")
problem = [{"role": "user", "content": "How many diagonals does a 9-gon have?"}]
reply = client.chat.completions.create(model="kace", messages=problem)
print(reply.kace["answer"], reply.kace["exit_path"], reply.usage.total_tokens)
