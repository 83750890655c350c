"""BuildEpistemicTree: the domains of a corpus, proposed by the teacher and checked by code."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

from kace.cards.tree import RESERVED, Domain
from kace.errors import KaceError
from kace.learning.blocks import BadBlock, Block, Grammar, read_numbers
from kace.learning.propose import numbered
from kace.learning.steps import Kept
from kace.learning.teacher import Reading, Teacher, instructions, read_each
from kace.problems import Problem

SHOWN = 30
FEWEST = 3
MOST = 7
ONE_IN = 10  # of the problems shown, each domain must hold one in so many
EXAMPLE_NAME = "tea_and_coffee"  # the domain that the prompt shows the form with
MAX_SIGNAL_CHARS = 100
MIN_SIGNALS = 2
MAX_SIGNALS = 12
MAX_PROBLEM_CHARS = 3_000
MAX_REASONS = 6  # what an error says of a reply that could not be used

DOMAIN = Grammar(
    "domain",
    name="name",
    required=("name", "description", "problems", "signals"),
    text="signals",
)
_WHOLE = "partition"


class Partition(Kept):
    """The registry that a tree begins with."""

    domains: tuple[Domain, ...]


async def partition(
    problems: Sequence[Problem], teacher: Teacher, *, seed: int = 0
) -> Partition:
    """Ask for 3 to 7 disjoint domains over a sample of the problems; raises `KaceError` when two tries give none.

    The sample depends on the problems' content and the seed, not on the order they come in.
    """
    shown = sample(problems, seed)
    if len(shown) < FEWEST:
        raise KaceError(
            f"{len(shown)} training problems cannot be sorted into {FEWEST} domains",
            fix="give more training problems",
        )
    parts = (
        numbered(number, problem, MAX_PROBLEM_CHARS)
        for number, problem in enumerate(shown, 1)
    )
    user = "\n\n".join(
        (*parts, f"Sort these {len(shown)} problems into {FEWEST} to {MOST} domains.")
    )
    reading = await teacher.ask(
        _WHOLE,
        instructions("partition"),
        user,
        lambda reply: read_partition(reply, len(shown)),
    )
    if _WHOLE in reading.found:
        return reading.found[_WHOLE]
    reasons = "; ".join(map(str, reading.bad[:MAX_REASONS]))
    raise KaceError(
        f"the teacher proposed no usable domains, in two tries: {reasons}",
        fix="try another teacher, or another seed to show it other problems",
    )


def sample(problems: Sequence[Problem], seed: int) -> tuple[Problem, ...]:
    """About 30 problems in an order of no meaning; all of them where there are fewer."""
    return tuple(shuffled(problems, seed)[:SHOWN])


def shuffled(problems: Sequence[Problem], seed: int) -> list[Problem]:
    """The problems in an order that depends on their content and the seed, and on nothing else."""
    return sorted(
        problems,
        key=lambda problem: hashlib.sha256(f"{seed}\x1f{problem.id}".encode()).digest(),
    )


def read_partition(reply: str, shown: int) -> Reading[Partition]:
    """The partition that a reply holds, as one thing: found when its usable domains divide all problems among them."""
    members: dict[str, tuple[int, ...]] = {}

    def make(block: Block) -> Domain:
        numbers = read_numbers(block.fields["problems"], shown)
        domain = _domain(block, len(numbers) / shown)
        members[domain.name] = numbers
        return domain

    reading = read_each(reply, DOMAIN, make)
    if not (reading.found or reading.bad):
        return Reading({})
    if faults := _faults(members, shown):
        return Reading({}, (*reading.bad, *faults))
    return Reading({_WHOLE: Partition(domains=tuple(reading.found.values()))})


def _domain(block: Block, share: float) -> Domain:
    name = block.fields["name"]
    if name == EXAMPLE_NAME:
        raise ValueError("it is the example of the form, not a domain")
    if name in RESERVED:
        raise ValueError(
            "the name is reserved: leave this domain out, or call it what its problems share"
        )
    lines = (line.strip(" -*•") for line in block.text.split("\n"))
    signals = [
        line for line in dict.fromkeys(lines) if line and len(line) <= MAX_SIGNAL_CHARS
    ]
    if len(signals) < MIN_SIGNALS:
        raise ValueError(
            f"it has {len(signals)} signals of at most {MAX_SIGNAL_CHARS} characters; write 5 to 8"
        )
    return Domain(
        name=name,
        description=block.fields["description"],
        share=round(share, 4),
        signals=tuple(signals[:MAX_SIGNALS]),
    )


def _faults(members: Mapping[str, Sequence[int]], shown: int) -> list[BadBlock]:
    """What keeps usable domains from being a partition of the problems shown."""
    faults: list[str] = []
    if not FEWEST <= len(members) <= MOST:
        faults.append(
            f"{len(members)} usable domains; there must be {FEWEST} to {MOST}"
        )
    least = math.ceil(shown / ONE_IN)
    owner: dict[int, str] = {}
    for name, numbers in members.items():
        if len(numbers) < least:
            faults.append(
                f"{name} holds {len(numbers)} of {shown} problems; at least {least} are needed"
            )
        for number in numbers:
            if owner.setdefault(number, name) != name:
                faults.append(
                    f"problem {number} is both in {owner[number]} and in {name}"
                )
    if rest := [str(number) for number in range(1, shown + 1) if number not in owner]:
        faults.append(f"no usable domain holds the problems {', '.join(rest)}")
    return [BadBlock(0, "", fault) for fault in faults]
