"""The ladder as a model of lm-eval: every task that generates text gets the voted answer.

    python examples/lm_eval_model.py --model kace --model_args tree=starter,model=openai/gpt-4.1-mini --tasks gsm8k

The arguments are lm_eval's own; this file only makes `kace` known to it. Model arguments are the settings of
`kace.Config` (tree, model, base_url, preset, max_calls, ...), and `out=RUN` keeps a run directory that resumes and that
`kace view` shows. The reply is the winner's working, which ends in its boxed answer; with `reply=answer` the answer
alone, for tasks that compare it as it is.

Needs `pip install lm_eval`. Tasks that need log-likelihoods cannot be run: a vote has none.
"""

from collections import Counter
from pathlib import Path

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

import kace

HARNESS = {"batch_size", "device", "max_batch_size", "trust_remote_code"}
"""Arguments that lm_eval passes to every model."""


@register_model("kace")
class KaceLM(LM):
    """A model whose reply to a prompt is the ladder's solution."""

    def __init__(
        self, reply: str = "working", out: str | None = None, **settings: object
    ) -> None:
        super().__init__()
        if reply not in ("working", "answer"):
            raise kace.UsageError(
                f"reply={reply} is unknown", fix="reply=working or reply=answer"
            )
        self.reply = reply
        self.out = out
        self.settings = {
            name: each for name, each in settings.items() if name not in HARNESS
        }

    def generate_until(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[str]:
        """Return a solution for each prompt. A prompt that comes again is solved with another seed."""
        times: Counter[str] = Counter()
        rounds: list[list[int]] = []
        for place, request in enumerate(requests):
            prompt = request.args[0]
            if times[prompt] == len(rounds):
                rounds.append([])
            rounds[times[prompt]].append(place)
            times[prompt] += 1
        replies = [""] * len(requests)
        first = int(str(self.settings.get("seed", 0)))
        for seed, places in enumerate(rounds, first):
            prompts = [requests[place].args[0] for place in places]
            out = Path(self.out) / f"seed-{seed}" if self.out else None
            settings = {**self.settings, "seed": seed}
            for place, solution in zip(
                places,
                kace.solve_many(prompts, out=out, **settings),
                strict=True,
            ):
                replies[place] = self._text(solution, requests[place].args[1])
        return replies

    def loglikelihood(
        self, requests: list[Instance]
    ) -> list[tuple[float, bool]]:
        """Refuse: a vote over attempts has no likelihood."""
        raise kace.UsageError(
            "kace has no log-likelihoods",
            fix="choose tasks with output_type: generate_until",
        )

    loglikelihood_rolling = loglikelihood

    def apply_chat_template(
        self,
        chat_history: list[dict[str, str]],
        add_generation_prompt: bool = True,
    ) -> str:
        """Return the conversation as text: the ladder has instructions of its own."""
        return "\n\n".join(turn["content"] for turn in chat_history)

    @property
    def tokenizer_name(self) -> str:
        """The name under which lm_eval caches prompts."""
        return "kace"

    def _text(self, solution: kace.Solution, options: dict[str, object]) -> str:
        """Return what lm_eval scores, cut where the task says."""
        text = solution.answer or ""
        if self.reply == "working":
            text = solution.working or text
        until = options.get("until") or []
        for stop in [until] if isinstance(until, str) else until:
            text = text.split(stop)[0] if stop else text
        return text


if __name__ == "__main__":
    cli_evaluate()
