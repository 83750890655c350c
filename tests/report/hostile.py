"""A folder in which every text that somebody else could have written tries to run script, load something or lead away.

Whatever gets through sets `window.__pwned`, opens a dialog, or asks the host `canary.test`.
"""

from __future__ import annotations

import json
from pathlib import Path

from kace.cards.card import Card, Difficulty, Provenance
from kace.cards.store import TreeStore
from kace.cards.tree import Domain, Edit
from kace.ladder.record import ClassRecord, Solution
from kace.ladder.tiers import TierName
from tests.recorded import recorded
from tests.report.samples import a_call, a_recall, a_solve, an_attempt

CANARY = "canary.test"
CORPUS = (
    "<script>window.__pwned=1</script>",
    "</script><script>window.__pwned=1</script>",
    "</title></style></textarea></noscript><script>window.__pwned=1</script>",
    "<img src=x onerror=window.__pwned=1>",
    '"><img src=x onerror=window.__pwned=1>',
    "'><img src=x onerror=window.__pwned=1>",
    "<svg onload=window.__pwned=1>",
    "<svg><animate onbegin=window.__pwned=1 attributeName=x dur=1s>",
    "<math><annotation-xml encoding=text/html><img src=x onerror=window.__pwned=1></annotation-xml></math>",
    f'<iframe srcdoc="<script>parent.__pwned=1</script>" src=//{CANARY}/f></iframe>',
    f"<link rel=stylesheet href=//{CANARY}/s.css><style>@import url(//{CANARY}/i.css)</style>",
    f"<base href=//{CANARY}/><form action=//{CANARY}/><input name=q></form>",
    f'<meta http-equiv=refresh content="0;url=http://{CANARY}/m">',
    "<a href=javascript:window.__pwned=1>x</a> [x](javascript:window.__pwned=1)",
    "[x](data:text/html,<script>window.__pwned=1</script>)",
    f'![beacon](http://{CANARY}/b.png) ![x](x "onerror=window.__pwned=1")',
    f"[x]: http://{CANARY}/r <http://{CANARY}/auto>",
    r"$\href{x\"><animate onbegin=window.__pwned=1>}{z}$ $\href{javascript:window.__pwned=1}{z}$",
    r"$\htmlData{x=\"><img src=x onerror=window.__pwned=1>}{z}$ $\htmlStyle{background:url(//canary.test/h)}{z}$",
    rf"$\includegraphics[height=1em]{{http://{CANARY}/g.png}}$ $\url{{javascript:window.__pwned=1}}$",
    r"$\unicode{<img src=x onerror=window.__pwned=1>}$ $\text{<img src=x onerror=window.__pwned=1>}$",
    r"$$\begin{array}{<svg onload=window.__pwned=1>}x\end{array}$$ $\def\a{\a\a}\a$",
    "`<img src=x onerror=window.__pwned=1>` ```<svg onload=window.__pwned=1>```",
    "<!-- --><!--><img src=x onerror=window.__pwned=1>--> <![CDATA[<svg onload=window.__pwned=1>]]>",
    "{{7*7}} ${7*7} {{constructor.constructor('window.__pwned=1')()}}",
    "&lt;img src=x onerror=window.__pwned=1&gt; &#60;svg onload=window.__pwned=1&#62;",
    "\" autofocus onfocus=window.__pwned=1 x=\" ' onmouseover=window.__pwned=1 '",
    "%3Cscript%3Ewindow.__pwned=1%3C/script%3E \u2028window.__pwned=1",
)
LINES = tuple(piece.replace("\u2028", " ")[:290] for piece in CORPUS)
"""As a card may hold them: one line, none of the characters that cards are refused for."""
SIGN = "__pwned"
"""Stands in every piece that is about script: where a page shows it, it has shown the piece."""


def piece(number: int) -> str:
    """Some piece, a different one for each number until they begin again."""
    return LINES[number % len(LINES)]


def trigger(number: int) -> str:
    """The beginning of a piece: a card's trigger has few words."""
    return " ".join(piece(number).split()[:5])


def hostile_folder(folder: Path) -> Path:
    """One item of each kind, and two trees and two runs to compare."""
    folder.mkdir(parents=True)
    hostile_tree(folder / "tree <svg onload=window.__pwned=1>")
    hostile_tree(folder / "tree2 &lt;svg&gt;", first=1)
    hostile_run(folder / "run <img src=x onerror=window.__pwned=1>", right=True)
    hostile_run(folder / 'run2 "><script>window.__pwned=1<', right=False)
    hostile_inbox(folder / "inbox '><img src=x onerror=window.__pwned=1>")
    hostile_learner(folder / "tree <svg onload=window.__pwned=1>")
    return folder


def hostile_tree(folder: Path, first: int = 0) -> None:
    """A tree with every piece in every field of some card, and a history."""
    domains = [
        Domain(name=f"domain{n}", description=piece(first + n), share=0.1, signals=(piece(n + 1), piece(n + 2)))
        for n in range(4)
    ]
    cards = [hostile_card(number, first) for number in range(len(LINES))]
    store = TreeStore.create(folder, domains, cards, author=piece(3), note=piece(4))
    changed = cards[0].model_copy(update={"payload": f"Useful when:\n- {trigger(6)}\n\n{piece(7)}"})
    store.apply(Edit(changed), author=piece(5)[:200], note=piece(6))


def hostile_card(name: int, first: int) -> Card:
    """A card that keeps every rule."""
    number = first + name
    body = "\n".join(piece(number + n) for n in range(4))
    return Card.model_validate(
        {
            "card_id": f"EXACT_CARD_NO_{name}",
            "payload": f"Useful when:\n- {trigger(number)}\nDo not apply if:\n- {piece(number + 1)}\n\n{body}",
            "routing_conditions": (piece(number), piece(number + 1)),
            "difficulty_tag": tuple(Difficulty)[number % 3],
            "domain_tags": (f"domain{name % 4}",),
            "helpfulness_score": 0.5,
            "provenance": Provenance(
                source=piece(number),
                supporting_problems=(piece(number + 1), f"problem-{number}"),
                validated_lift=piece(number + 2),
                n_uses=3,
            ),
        }
    )


def hostile_solve(number: int, *, right: bool) -> Solution:
    """A solve whose every text is a piece."""
    said = f"{piece(number)} {piece(number + 1)}"
    attempts = tuple(
        an_attempt(
            tier=tier,
            index=index,
            lens=piece(number + place),
            prompt=piece(number + place + 1),
            answer=said if place % 2 else piece(number + place),
            call=f"{number:032x}{place:032x}",
            detail=piece(number + place + 2),
            correct=right,
            hidden=("EXACT_CARD_NO_1", piece(number)),
        )
        for place, (tier, index) in enumerate([(TierName.ES, 0), (TierName.ES, 1), (TierName.MS, 0), (TierName.MS, 1)])
    )
    return a_solve(
        f"{piece(number)}/{number}" if number % 2 else f"{number:016x}",
        label=f"{piece(number)} {number}",
        family=piece(number + 1),
        domain=piece(number + 2),
        answer=said,
        expected=piece(number + 3),
        correct=right,
        attempts=attempts,
        classes=(ClassRecord(answer=said, positions=(1, 3)), ClassRecord(answer=piece(number), positions=(0, 2))),
        recalls=(
            a_recall(
                domains=(piece(number), "domain0"),
                cards=("EXACT_CARD_NO_0", piece(number + 1)),
                notes=piece(number + 2),
            ),
        ),
    )


def hostile_run(folder: Path, *, right: bool) -> None:
    """A run with every piece in every field, and its calls."""
    (folder / "calls").mkdir(parents=True)
    manifest = {
        "v": 1,
        "kace": piece(0),
        "python": piece(1),
        "config": {"model": piece(3), "preset": piece(4), "base_url": piece(5), "nested": {piece(6): [piece(7)]}},
        "system": {"name": piece(4), "artefact": piece(5)},
        "data": {"name": piece(6), "split": piece(7), "hash": piece(8), "problems": 3},
        "tree": {"hash": piece(9), "cards": 3},
        "sources": {piece(10): piece(11)},
        "prompts": {piece(12): piece(13)},
    }
    (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    solves = [hostile_solve(number, right=right and number % 3 > 0) for number in range(len(LINES))]
    lines = [solve.model_dump_json() for solve in solves]
    (folder / "traces.jsonl").write_text("\n".join([*lines, piece(0), '{"v":1}', ""]), encoding="utf-8")
    everything = "\n\n".join(CORPUS)
    calls = [
        a_call(attempt.call, f"{everything}\n\n{piece(place)}", model=piece(3), problem=solve.problem)
        for solve in solves[:6]
        for place, attempt in enumerate(solve.attempts)
    ]
    (folder / "calls" / "a.jsonl").write_text("".join(calls), encoding="utf-8")


def hostile_inbox(folder: Path) -> None:
    """Requests with hostile names and texts, one of them answered."""
    folder.mkdir(parents=True)
    everything = "\n\n".join(CORPUS)
    for number, name in enumerate(
        ["plain-1-aaaaaaaa", 'x"><img src=x onerror=window.__pwned=1>', "<script>'&", "done"]
    ):
        text = f"# {piece(number)}\n\n{piece(number + 1)}\n\n## User\n\n{everything}\n"
        (folder / f"{name}.request.md").write_text(text, encoding="utf-8")
    (folder / "done.reply.md").write_text(everything, encoding="utf-8")


def hostile_learner(tree: Path) -> None:
    """Makes a tree one that learned: a real learner's notebook with a piece after every text of its own."""
    real = recorded("learning_run") / "tree" / "learn"
    learn = tree / "learn"
    learn.mkdir()
    (learn / "learn.json").write_text(json.dumps(_poisoned(json.loads((real / "learn.json").read_bytes()), [0])))
    steps = (real / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [json.dumps(_poisoned(json.loads(line), [number])) for number, line in enumerate(steps)]
    (learn / "steps.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _poisoned(value: object, count: list[int]) -> object:
    """The value with a piece after each text that is more than a name."""
    if isinstance(value, dict):
        return {key: _poisoned(each, count) for key, each in value.items()}
    if isinstance(value, list):
        return [_poisoned(each, count) for each in value]
    if isinstance(value, str) and " " in value:
        count[0] += 1
        return f"{value[:200]} {piece(count[0])}" if "\n" not in value else f"{value}\n{piece(count[0])}"
    return value
