"""An inspect_ai solver that climbs the ladder with the model under evaluation.

    from inspect_solver import kace_ladder
    eval(Task(dataset=..., solver=kace_ladder(tree="starter"), scorer=match()), model="openai/gpt-4.1-mini")

Every attempt is a call of inspect's model, so its logs, limits, cache and token counts hold. The answer is the last
line of the output; exit, calls and cards are in the sample's metadata. `kace report a.eval b.eval` compares two logs.

Needs `pip install inspect_ai`. As a script it solves a JSONL file: python examples/inspect_solver.py DATA MODEL [TREE].
"""

import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    get_model,
)
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, Solver, TaskState, solver

import kace
from kace.models.base import Finish, Reply, Request, Usage

TURNS = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}
ENDS = {"max_tokens": Finish.LENGTH, "content_filter": Finish.FILTERED}


class InspectModel:
    """A model of inspect_ai as kace calls models."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name = self.identity = f"inspect/{model}"

    async def complete(self, request: Request) -> Reply:
        """Make one call."""
        messages = [
            TURNS[each.role](content=each.content) for each in request.messages
        ]
        draw = request.sampling
        config = GenerateConfig(
            temperature=draw.temperature,
            max_tokens=draw.max_tokens,
            seed=draw.seed,
        )
        output = await self.model.generate(messages, config=config)
        used = output.usage
        usage = (
            Usage(used.input_tokens, 0, used.output_tokens) if used else Usage()
        )
        finish = ENDS.get(output.stop_reason, Finish.STOP)
        return Reply(output.completion, finish, usage, output.time or 0.0)

    async def aclose(self) -> None:
        """Do nothing: inspect closes its models."""


@solver
def kace_ladder(tree: str | None = None, **settings: object) -> Solver:
    """Solve each sample by the ladder. Settings are those of `kace.Config`, such as preset or es_policy."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = InspectModel(get_model())
        solution = await kace.asolve(
            state.input_text,
            model,
            tree=tree,
            **{"seed": state.epoch - 1, **settings},
        )
        answer = solution.answer or ""
        text = f"{solution.working}\n\nANSWER: {answer}"
        state.output.completion = text
        state.messages.append(ChatMessageAssistant(content=text))
        state.metadata["kace"] = {
            "exit": solution.exit_name,
            "calls": solution.real_calls,
            "cards": [
                card for recall in solution.recalls for card in recall.cards
            ],
        }
        return state

    return solve


if __name__ == "__main__":
    data, model, *rest = sys.argv[1:]
    task = Task(
        dataset=json_dataset(
            data, FieldSpec(input="problem", target="answer", id="id")
        ),
        solver=kace_ladder(tree=rest[0] if rest else None),
        scorer=match(),
    )
    (log,) = eval(task, model=model, display="none")
    print(log.status, log.location)
    assert log.results
    print(log.results.scores[0].metrics["accuracy"].value)
