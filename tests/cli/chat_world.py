"""The learner's world behind an OpenAI-compatible server, in the shape of a benchmark: its splits, solver and teacher.

Over the wire a request has no name: the model says who is asked, and the form that is asked for says what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from kace.models.base import AttemptKey, Message, Request, Role, Sampling
from kace.problems import Problem, published_sets, read_listing
from tests.baselines.ace_world import AceTeacher
from tests.learning.world import DOMAINS, RULES, World, problems, solve, statement
from tests.models.chat_server import Answer, Seen, says

SOLVER, TEACHER = "openai/solver", "openai/teacher"
STEPS = {"<domain>": "partition", "<example>": "illustrate", "<ruling>": "admit"}
NOTHING_LEARNED = "<notes>\nmistake: none\nlesson: none\n</notes>"


def write_aime(folder: Path) -> None:
    """The files of aime25 with this world's problems under the listed names, the domains and rules by turns."""
    published = published_sets()["aime25"]
    files: dict[str, list[str]] = {}
    for number, (split, listed) in enumerate(read_listing("aime25").items()):
        made = problems(6, start=20 * number)
        for label, problem in zip(listed.values(), islice(cycle(_turns(made)), len(listed)), strict=True):
            row = {"problem": problem.text, "answer": problem.answer, "id": label}
            files.setdefault(published[split].local, []).append(json.dumps(row))
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")


def _turns(made: tuple[Problem, ...]) -> Iterator[Problem]:
    """One domain after the other, so that a few problems hold them all."""
    rows = [[problem for problem in made if problem.domain == domain] for domain in DOMAINS]
    return (problem for row in zip(*rows, strict=True) for problem in row)


@dataclass(frozen=True)
class ChatWorld:
    """Answers as solver and teacher do; a teacher who knows nothing writes no card, no bullet and no instruction."""

    known: bool = True

    def __call__(self, seen: Seen) -> Answer:
        body = seen.body
        messages = tuple(Message(Role(each["role"]), each["content"]) for each in body["messages"])
        reply = self.taught(messages) if body["model"] == "teacher" else self.solved(messages, body.get("seed", 0))
        return says(reply)

    def solved(self, messages: tuple[Message, ...], seed: int) -> str:
        """An attempt, a placement, a choice of cards, or a reflection that helps nobody."""
        system, asked = messages[0].content, messages[-1].content
        if "\nDomains:\n" in system:
            name = next(domain for domain in DOMAINS if f"In {domain}," in asked)
            return json.dumps({"domain": name})
        if "Reply with the ids of the cards" in system:
            rule = re.search(r"what is the (\w+) of", asked)[1].upper()
            return next((name for name in re.findall(r"^(\w+):", system, re.MULTILINE) if rule in name), "none")
        if "\nLesson:" in system:
            return "When: a question is asked\nLesson: Answer the question."
        return solve(Request(messages, Sampling(0.6, 100, seed), AttemptKey("p", 0, "ES", 0)))

    def taught(self, messages: tuple[Message, ...]) -> str:
        """Any request of the learner, of ACE and of GEPA; a second request for the same gets the same reply."""
        system, asked = messages[0].content, messages[min(1, len(messages) - 1)].content
        if len(messages) == 1:
            now = system.split("```")[1].strip()
            rules = [rule for rule in dict.fromkeys(re.findall(r"what is the (\w+) of", system)) if rule in RULES]
            new = [statement(rule) for rule in rules if self.known and statement(rule) not in now]
            return "```\n" + "\n".join((now, *new)) + "\n```"
        if "<notes>" in system:
            return AceTeacher().reflect(asked) if self.known else NOTHING_LEARNED
        if "What was learned:" in asked:
            return AceTeacher().curate(asked)
        world = World(knowledge=tuple(RULES) if self.known else (), misleading=False, idle=False)
        name = next((step for form, step in STEPS.items() if form in system), "revise")
        if "## This request: knowledge that was missing" in system:
            domain, tier = re.search(r"^Domain: (\w+)", asked, re.MULTILINE)[1], "HS" if "ty: hard" in asked else "MS"
            name = f"propose {tier} {domain}"
        return world.teach(Request(messages[:2], Sampling(0.6, 100, 0), AttemptKey(name, 0, "TEACHER", 0)))
