"""The ladder with a tree as a DSPy module, with DSPy's own language model.

    from dspy_module import Ladder
    dspy.configure(lm=dspy.LM("openai/gpt-4.1-mini"))
    Ladder(tree="starter")(problem="How many diagonals does a 9-gon have?").answer

It can stand wherever a module can, as in `dspy.Evaluate` or inside another program. Each attempt is a call of the
module's LM, so DSPy's history, usage and cache hold; an attempt has a rollout id of its own, which keeps repeated
samples apart in that cache.

Needs `pip install dspy`. As a script: python examples/dspy_module.py MODEL [TREE], with the problem on standard input.
"""

import sys

import dspy

import kace
from kace.models.base import Failure, Finish, ModelError, Reply, Request, Usage


class DspyModel:
    """An LM of DSPy as kace calls models."""

    def __init__(self, lm: dspy.BaseLM) -> None:
        self.lm = lm
        self.name = self.identity = f"dspy/{lm.model}"

    async def complete(self, request: Request) -> Reply:
        """Make one call. A call that fails is an attempt that failed."""
        messages = [
            {"role": each.role.value, "content": each.content}
            for each in request.messages
        ]
        draw = request.sampling
        try:
            (text,) = await self.lm.acall(
                messages=messages,
                temperature=draw.temperature,
                max_tokens=draw.max_tokens,
                rollout_id=draw.seed,
            )
        except Exception as error:
            raise ModelError(
                Failure.PROVIDER_ERROR, str(error)[:200]
            ) from error
        if isinstance(text, dict):  # a reasoning model
            text = text["text"]
        return Reply(text or "", Finish.STOP, Usage(), 0.0)

    async def aclose(self) -> None:
        """Do nothing: the LM is DSPy's."""


class Ladder(dspy.Module):
    """Solves a problem by the ladder. Settings are those of `kace.Config`, such as preset or es_policy."""

    def __init__(
        self,
        tree: str | None = None,
        lm: dspy.BaseLM | None = None,
        **settings: object,
    ) -> None:
        super().__init__()
        self.tree = tree
        self.lm = lm
        self.settings = settings

    def forward(self, problem: str) -> dspy.Prediction:
        """Return the answer, its working, the exit and the cards that were read."""
        return self._prediction(
            kace.solve(problem, self._model(), tree=self.tree, **self.settings)
        )

    async def aforward(self, problem: str) -> dspy.Prediction:
        """Do the same from async code."""
        solution = await kace.asolve(
            problem, self._model(), tree=self.tree, **self.settings
        )
        return self._prediction(solution)

    def _model(self) -> DspyModel:
        lm = self.lm or dspy.settings.lm
        if lm is None:
            raise kace.UsageError(
                "no LM is configured", fix="dspy.configure(lm=dspy.LM(NAME))"
            )
        return DspyModel(lm)

    def _prediction(self, solution: kace.Solution) -> dspy.Prediction:
        cards = [card for recall in solution.recalls for card in recall.cards]
        return dspy.Prediction(
            answer=solution.answer,
            reasoning=solution.working,
            exit=solution.exit_name,
            cards=cards,
        )


if __name__ == "__main__":
    model, *rest = sys.argv[1:]
    dspy.configure(lm=dspy.LM(model))
    print(Ladder(tree=rest[0] if rest else None)(problem=sys.stdin.read()))
