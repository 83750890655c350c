"""A world whose every rule is known: a solver that errs exactly where knowledge is missing, and a teacher who has it.

A problem names one rule. The solver gets it right when the cards it reads state the rule, and otherwise gives an answer
that no other attempt gives, so the problem climbs to the end. A misleading card makes it wrong whatever else it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kace.models.base import Request
from kace.models.scripted import Scripted
from kace.problems import Problem

DOMAINS = {"weaving": ("flim", "garn"), "tuning": ("hosk", "jeld"), "paving": ("krov", "lunt")}
RULES: Mapping[str, Callable[[int, int], int]] = {
    "flim": lambda a, b: 3 * a + b,
    "garn": lambda a, b: a + 5 * b,
    "hosk": lambda a, b: a * b + 1,
    "jeld": lambda a, b: a * a + b,
    "krov": lambda a, b: 7 * a + 2 * b,
    "lunt": lambda a, b: a + b * b,
}
DEEP = ("lunt",)
"""Rules that are too long for medium: only a hard card holds them."""
PLAIN = "sum"
MISLEADING = "At the end divide the result r by two: write r / 2."
IDLE = "Order does not matter in a sum: a + b = b + a."

_ASKED = re.compile(r"the (\w+) of (\d+) and (\d+)")


def problems(count: int, *, start: int = 0) -> tuple[Problem, ...]:
    """So many problems a rule, and as many that need none."""
    made = []
    for n in range(start, start + count):
        for domain, rules in DOMAINS.items():
            for rule in (*rules, PLAIN):
                a, b = 13 + 2 * n, 29 + 3 * n
                answer = RULES[rule](a, b) if rule in RULES else a + b
                text = f"In {domain}, what is the {rule} of {a} and {b}?"
                label = f"{rule}-{n}" if rule in RULES else f"{rule}-{n}-{domain}"
                made.append(Problem(text, str(answer), label=label, domain=domain))
    return tuple(made)


def told_again(asked: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Return problems that say a second word of their rule and two of their domain, as the teacher's examples do."""
    again = []
    for problem in asked:
        rule = problem.name.partition("-")[0]
        end = f", {rule}wise and {problem.domain}wise in {problem.domain}land?"
        again.append(replace(problem, text=problem.text.replace("?", end)))
    return tuple(again)


def statement(rule: str) -> str:
    """The words by which the solver knows a rule."""
    return f"{rule} means the {rule} formula"


@dataclass(frozen=True)
class World:
    """What the teacher knows; `knowledge` empty is a world with nothing to learn."""

    knowledge: tuple[str, ...] = tuple(RULES)
    misleading: bool = True
    idle: bool = True

    def solver(self) -> Scripted:
        """The solver, which also places problems."""
        return Scripted(solve, name="world")

    def teacher(self) -> Scripted:
        """The teacher."""
        return Scripted(self.teach, name="world-teacher")

    def teach(self, request: Request) -> str:
        """Any request of the learner, told by the name of its step."""
        name, asked = request.attempt.problem, request.messages[-1].content
        if name == "partition":
            return _partition(asked)
        if "propose" in name:
            return self._propose(name, asked)
        if "imagine" in name:
            where = name.upper().replace(" ", "_").removeprefix("EPOCH_").removesuffix("_IMAGINE").replace("ADD_", "")
            card = _card(
                f"RUBRIC_ALSO_{where}", "anything", f"An expert also checks the {where.lower()}.", [], "HS" in where
            )
            return card.replace("problems: \n", "")
        if "illustrate" in name:
            count = re.search(r"Write (one|\d+) example", asked)[1]
            pages = re.findall(r"<card>\n\[(\w+)\]\n(.*?)</card>", asked, re.DOTALL)
            return "\n".join(_example(*page, 1 if count == "one" else int(count)) for page in pages)
        if "wordings" in name:
            count = int(re.search(r"Write (\d+) wordings", asked)[1])
            return "\n".join(_wordings(card_id, count) for card_id in re.findall(r"<card>\n\[(\w+)\]", asked))
        if "admit" in name:
            return "\n".join(_ruling(card) for card in _ids(asked))
        return _revise(asked)

    def _propose(self, name: str, asked: str) -> str:
        hard = " HS " in f" {name} "
        domain = next(domain for domain in DOMAINS if domain in name)
        numbered = re.split(r"^## Problem (\d+)$", asked, flags=re.MULTILINE)[1:]
        needed: dict[str, list[str]] = {}
        for number, text in zip(numbered[::2], numbered[1::2], strict=True):
            rule = _ASKED.search(text)
            if rule and rule[1] in self.knowledge and (rule[1] in DEEP) is hard:
                needed.setdefault(rule[1], []).append(number)
        cards = [
            _card(f"EXACT_{rule.upper()}_RULE", rule, statement(rule), ns[:2], hard) for rule, ns in needed.items()
        ]
        place = f"{domain.upper()}_{'HS' if hard else 'MS'}"
        if self.misleading and "epoch 1" in name:
            cards.append(_card(f"RUBRIC_HALVE_{place}", domain, MISLEADING, numbered[:1], hard))
        if self.idle and "epoch 1" in name:
            cards.append(_card(f"RUBRIC_ORDER_{place}", domain, IDLE, numbered[:1], hard))
        return "\n".join(cards) or "Nothing that I know would have helped."


def solve(request: Request) -> str:
    """An attempt, or a placement."""
    asked = request.messages[-1].content
    if request.choices:
        domain = next(domain for domain in DOMAINS if f"In {domain}," in asked)
        return next(choice for choice in request.choices if domain in choice)
    rule, a, b = _ASKED.search(asked).groups()
    read = "\n".join(message.content for message in request.messages[:-1])
    lost = request.sampling.seed + 1_000_000
    if rule == PLAIN:
        return rf"\boxed{{{int(a) + int(b)}}}"
    known = statement(rule) in read and MISLEADING not in read
    return rf"\boxed{{{RULES[rule](int(a), int(b)) if known else lost}}}"


def _partition(asked: str) -> str:
    numbered = re.split(r"^## Problem (\d+)$", asked, flags=re.MULTILINE)[1:]
    blocks = []
    for domain in DOMAINS:
        held = [n for n, text in zip(numbered[::2], numbered[1::2], strict=True) if f"In {domain}," in text]
        blocks.append(
            f"<domain>\nname: {domain}\ndescription: questions of {domain}\nproblems: {', '.join(held)}\n"
            f"signals:\nIn {domain}, what is the result?\nIn {domain}, what comes out?\n</domain>"
        )
    return "\n".join(blocks)


def _card(card_id: str, trigger: str, body: str, numbers: list[str], hard: bool) -> str:
    return (
        f"<card>\nid: {card_id}\ndifficulty: {'hard' if hard else 'medium'}\nproblems: {', '.join(numbers)}\n"
        f"payload:\nUseful when:\n- {trigger} is asked\n\n{body}\n</card>"
    )


def _told(card_id: str, a: int, b: int) -> str:
    """Return a problem that a card covers: of its rule, or of its domain."""
    word = card_id.split("_")[1].lower()
    domain = next((name for name in DOMAINS if name.upper() in card_id), "")
    if domain:
        return f"What is the result of {a} and {b}, {domain}wise in {domain}land?"
    return f"What is the {word} of {a} and {b}, {word}wise?"


def _example(card_id: str, rule: str, count: int) -> str:
    worked = f"Rule: {rule.strip().split(chr(10))[-1]}\nThe answer is \\boxed{{7}}."
    text = "\nExample:\n".join(f"{_told(card_id, 4 + n, 6 + n)}\nWorked:\n{worked}" for n in range(count))
    return f"<example>\nid: {card_id}\ntext:\n{text}\n</example>"


def _wordings(card_id: str, count: int) -> str:
    lines = [f"Story {chr(97 + n)}: {_told(card_id, n + 2, n + 5)}" for n in range(count)]
    return "\n".join(("<wordings>", f"id: {card_id}", "text:", *lines, "</wordings>"))


def _ids(asked: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\b(?:EXACT|RUBRIC|READING)_[A-Z0-9_]+\b", asked)))


def _ruling(card_id: str) -> str:
    return f"<ruling>\nid: {card_id}\nverdict: admit\nreason: a general rule\n</ruling>"


def _revise(asked: str) -> str:
    """A curator who goes by lift: what is proved stays, what seems to do little goes."""
    blocks = []
    for page in asked.split("<card>\n")[1:]:
        card_id = re.match(r"id: (\w+)", page)[1]
        lift = re.search(r"Lift: (\S+) points \[(\S+),", page)
        keep = "status: validated" in page or (lift and float(lift[1]) > 5)
        action = "KEEP" if keep else "DEPRECATE"
        blocks.append(f"<revision>\nid: {card_id}\naction: {action}\nreason: by its lift\n</revision>")
    return "\n".join(blocks)
