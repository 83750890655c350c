"""`kace train`: what the method is compared with, trained on the same problems with the same solver and teacher."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note, print_lines
from kace.cli.training import bad_option, training_problems, wall_in
from kace.errors import DataError, UsageError

if TYPE_CHECKING:
    from kace.learner.notebook import Step
    from kace.learner.verdicts import Kept
    from kace.models.budget import Ledger
    from kace.problem import Problem
    from kace.systems.training import Dials, Ground, Plan
    from kace.tree.tree import Domain

KINDS = ("ace", "domain-ace", "gepa", "reflections")


def train(
    what: str = typer.Argument(help="ace, domain-ace, gepa or reflections."),
    train: Path = typer.Option(..., help="JSONL with a problem and its answer a line."),
    out: Path = typer.Option(..., help="The folder to make; the same command goes on in it."),
    teacher: str = typer.Option(None, help="anthropic/NAME, openai/NAME, exchange/DIR or replay/RUN."),
    teacher_base_url: str = typer.Option(None, help="An OpenAI-compatible server for an openai/NAME teacher."),
    teacher_max_tokens: int = typer.Option(None, help="Tokens of a teacher's reply at most (default 16,000)."),
    model: str = typer.Option(None, "--model", "-m", help="The solver: local/NAME, openai/NAME, replay/RUN."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for an openai/NAME solver."),
    preset: str = typer.Option(None, help="aime25, math-hard, olymmath or starter."),
    seed: int = typer.Option(None, help="Draws other samples; the same seed repeats them."),
    limit: int = typer.Option(None, min=1, help="Only the first N problems of the file."),
    field: list[str] = typer.Option([], help="Where the file keeps a field: problem=question, answer=target, id=name."),
    held_out: list[Path] = typer.Option([], help="An evaluation split: refuse training problems that stand in it."),
    validation: Path = typer.Option(None, help="gepa: problems that choose the prompt by score alone."),
    tree: Path = typer.Option(None, help="domain-ace, reflections: a tree whose domains are used."),
    epochs: int = typer.Option(None, min=1, help="Passes over the problems (gepa 2, others 1)."),
    budget_tokens: int = typer.Option(None, help="ace, domain-ace: what a playbook may weigh (default 2,000)."),
    batch: int = typer.Option(None, min=1, help="ace, domain-ace: problems between two revisions (default 8)."),
    max_metric_calls: int = typer.Option(None, min=1, help="gepa: evaluations of a prompt on a problem."),
    place_by: str = typer.Option(None, help="Who names a problem's domain: model (a call), words or cards (none)."),
    max_connections: int = typer.Option(None, help="Calls under way at once; left out, it adapts."),
    timeout: float = typer.Option(None, help="Seconds for one call."),
    max_calls: int = typer.Option(None, help="Stop before more calls than this are made, solver and teacher together."),
    max_usd: float = typer.Option(None, help="Stop before more money than this is spent."),
    no_wait: bool = typer.Option(False, "--no-wait", help="With exchange/DIR: leave when only the teacher is missing."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file; kace.toml is read when it is there."),
) -> None:
    """Train a system to compare with: kace train ace --train train.jsonl --teacher MODEL --out PLAYBOOK."""
    from kace.config import load_config
    from kace.systems.training import Plan

    if what not in KINDS:
        raise UsageError(f"nothing is called '{what[:40]}' here", fix=f"choose one of {', '.join(KINDS)}")
    flags = {
        "model": model,
        "base_url": base_url,
        "teacher": teacher,
        "teacher_base_url": teacher_base_url,
        "teacher_max_tokens": teacher_max_tokens,
        "preset": preset,
        "place_by": place_by,
        "seed": seed,
        "max_connections": max_connections,
        "timeout": timeout,
        "max_calls": max_calls,
        "max_usd": max_usd,
        "exchange_wait": False if no_wait else None,
    }
    given = {
        "epochs": epochs,
        "budget_tokens": budget_tokens,
        "batch": batch,
        "max_metric_calls": max_metric_calls,
    }
    config = load_config(flags, file=config_file)
    dials = _dials(what, {name: value for name, value in given.items() if value is not None})
    _train(
        Plan(
            what=what,
            train=training_problems(train, field, limit, held_out),
            config=config,
            dials=dials,
            out=out,
            domains=_domains(what, tree),
            validation=_validation(what, validation, field),
        ),
        train,
    )


def _dials(what: str, given: dict[str, int]) -> Dials:
    from pydantic import ValidationError

    try:
        return _kind(what).model_validate(given)
    except ValidationError as error:
        raise bad_option(error, "train", f"not an option of {what}") from None


def _kind(what: str) -> type[Dials]:
    from kace.systems.training import Dials

    if what == "gepa":
        from kace.systems.gepa.train import GepaDials

        return GepaDials
    if what == "reflections":
        return Dials
    from kace.systems.ace.train import AceDials

    return AceDials


def _validation(what: str, path: Path | None, field: list[str]) -> tuple[Problem, ...]:
    from kace.cli.solve import field_map
    from kace.problem import load_problems

    if path is None:
        return ()
    if what != "gepa":
        raise UsageError(f"--validation is not an option of {what}", fix="only gepa chooses by validation problems")
    problems = load_problems(path, field_map(field))
    if bare := next((problem for problem in problems if problem.answer is None), None):
        raise DataError(f"validation problem {bare.name!r} has no answer", fix="every problem needs its answer here")
    return problems


def _domains(what: str, tree: Path | None) -> tuple[Domain, ...]:
    from kace.tree.store import open_tree

    if tree is None:
        return ()
    if what not in ("domain-ace", "reflections"):
        raise UsageError(f"--tree is not an option of {what}", fix="only domain-ace and reflections use its domains")
    return open_tree(tree).domains


def _train(plan: Plan, train: Path) -> None:
    from kace.cli.running import run_async
    from kace.cli.weights import ensure_weights
    from kace.systems.training import open_training

    if plan.what == "gepa":
        from kace.systems.gepa.train import require_gepa

        require_gepa()
    ensure_weights(plan.config)
    wall_in(plan.config, train, plan.out)

    async def work() -> tuple[list[str], Ledger]:
        async with open_training(plan, tell=_tell) as ground:
            return await _made(ground), ground.session.ledger

    lines, ledger = run_async(work(), resumable=True)
    print_lines([*lines, *_cost(ledger)])


async def _made(ground: Ground) -> list[str]:
    """Train, and say what was made."""
    plan, out = ground.plan, ground.plan.out
    if plan.what == "gepa":
        from kace.systems.gepa.train import GepaDials, train_gepa

        assert isinstance(plan.dials, GepaDials)
        prompt = await train_gepa(ground, plan.dials)
        chosen = prompt.candidates[prompt.best]
        first = prompt.candidates[0]
        return [
            f"prompt       {out / 'prompt.json'}",
            f"candidates   {len(prompt.candidates)}, after {prompt.metric_calls} evaluations",
            f"score        {chosen.score:.1%}, {first.score:.1%} with the prompt it began with",
        ]
    if plan.what == "reflections":
        from kace.systems.reflections import train_reflections

        grown = await train_reflections(ground, plan.dials)
        return [f"tree         {out}", f"cards        {len(grown)}"]
    from kace.systems.ace.train import AceDials, train_ace, train_domain_ace

    assert isinstance(plan.dials, AceDials)
    books = await (train_ace if plan.what == "ace" else train_domain_ace)(ground, plan.dials)
    held = {name: len(playbook.bullets) for name, playbook in books.playbooks.items()}
    return [
        f"playbook     {out / 'playbook.json'}",
        f"bullets      {', '.join(f'{name} {count}' for name, count in held.items())}",
    ]


def _tell(step: Step, value: Kept, fresh: bool) -> None:
    if fresh:
        note(f"kace: {step}: {outcome(value)}")


def outcome(value: Kept) -> str:
    """A step's result in a few words."""
    from kace.cli.learn_live import outcome as learned
    from kace.systems.ace.train import Studied
    from kace.systems.gepa.rollout import Rollouts
    from kace.systems.reflections import Reflected

    match value:
        case Studied():
            size = f"{'about ' if value.estimated else ''}{value.tokens} tokens"
            left = f", {len(value.dropped)} given up for the budget" if value.dropped else ""
            return (
                f"{value.right} right, {value.wrong} wrong, {value.failed} failed; {len(value.operations)} changes"
                f" ({len(value.refused)} refused); {len(value.playbook.bullets)} bullets, {size}{left}"
            )
        case Rollouts():
            return f"{value.right} of {len(value.rollouts)} right"
        case Reflected():
            return f"{len(value.cards)} cards, {len(value.refused)} refused, {value.failed} failed"
    return learned(value)


def _cost(ledger: Ledger) -> list[str]:
    roles = ", ".join(f"{role} {spent.calls}" for role, spent in sorted(ledger.roles.items()))
    return [f"calls        {roles or 'none: everything was kept'}", f"cost         {ledger.usd:.4f} USD"]
