"""The parts of a report's page that are tables and lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kace.learner.chart import tone
from kace.learner.epoch import Epoch
from kace.learner.findings import Branch, CardStory, Cost, Leaf, Score
from kace.learner.report import Report
from kace.tree.card import Difficulty
from kace.web.markup import Html, join, tag
from kace.web.parts import badge, folded, table
from kace.words import counted, points, signed


def tree(report: Report) -> Html:
    """Domains across difficulties, with the number of cards in each place."""
    title = tag("h2", "The tree")
    if not report.branches:
        return tag("section", title, tag("p", "The domains have not been chosen yet.", class_="note"))
    most = max((leaf.shown for branch in report.branches for leaf in branch.leaves), default=0)
    heads = ("Domain", *(kind.value for kind in Difficulty))
    grid = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads))),
        tag("tbody", *(_branch_row(branch, most) for branch in report.branches)),
        class_="tree",
    )
    sizes = "; ".join(
        f"epoch {epoch.number}: {counted(epoch.size.shown, 'card')}, about {epoch.size.tokens:,} tokens"
        for epoch in report.epochs
        if epoch.size
    )
    note = "Cards that a solve may read. Medium cards are read at MS, hard ones at HS, universal ones at both."
    growth = f" At the end of {sizes}." if sizes else ""
    return tag("section", title, tag("p", note, growth, class_="note"), grid)


def _branch_row(branch: Branch, most: int) -> Html:
    share = "" if branch.share is None else f" {branch.share:.0%}"
    name = tag("td", branch.name, tag("span", share, class_="soft"), tag("small", branch.description), class_="domain")
    return tag("tr", name, *(tag("td", _cell(leaf, most)) for leaf in branch.leaves))


def _cell(leaf: Leaf, most: int) -> Html:
    parts = [f"{leaf.validated} validated" if leaf.validated else "", f"{leaf.retired} retired" if leaf.retired else ""]
    shade = tag("i", style=f"opacity:{0.08 + 0.3 * leaf.shown / most:.2f}") if leaf.shown else Html("")
    count = tag("b", str(leaf.shown)) if leaf.shown else tag("b", "·", class_="soft")
    said = ", ".join(part for part in parts if part)
    return tag("div", shade, tag("span", count), tag("span", tag("small", said)), class_="cell")


def cards(report: Report) -> Html:
    """Every card: where it lives, how it fared, what it says."""
    if not report.cards:
        return Html("")
    note = "Highest lift first; open one to read it. An experimental card has not been shown to help or to harm."
    return tag(
        "section",
        tag("h2", "Every card"),
        tag("p", note, class_="note"),
        *(_card(story) for story in report.cards),
    )


def _card(story: CardStory) -> Html:
    card = story.card
    status = {"good": "validated", "bad": "retired", "open": "experimental"}[tone(story)]
    worth = f"{points(story.lift.lift.effect)} points" if story.lift else "not measured"
    top = tag(
        "summary",
        tag("span", card.card_id, class_="id"),
        tag("span", status, class_=f"badge {tone(story)}"),
        tag("span", f"{story.place}, {worth}", class_="soft"),
    )
    facts = join(join((tag("dt", name), tag("dd", value))) for name, value in _facts(story) if value)
    return tag("details", top, tag("div", tag("dl", facts), tag("pre", card.payload.strip()), class_="story"))


def _facts(story: CardStory) -> Iterator[tuple[str, str]]:
    card, fire, known = story.card, story.fire, story.card.provenance
    for measured in story.lifts:
        lift = measured.lift
        yield (
            f"lift, epoch {measured.epoch}",
            f"{points(lift.effect)} points ({points(lift.low)} to {points(lift.high)}), p = {lift.p:.3g}; "
            f"{counted(lift.shown, 'attempt')} with it, {lift.hidden} without, {counted(lift.problems, 'problem')}, "
            f"by {lift.method.replace('_', ' ')}",
        )
    if story.outdated:
        yield "note", "it was rewritten or moved after that measurement"
    if story.earned is not None:
        yield "earned", f"about {signed(story.earned)} right attempts: its lift times the attempts that saw it"
    if fire:
        tiers = ", ".join(f"{tier.value} {count}" for tier, count in fire.tiers.items())
        solves = f"{counted(fire.n_shown, 'solve')}: {fire.shown_correct} right, {fire.shown_wrong} wrong"
        yield "shown in", f"{solves} ({tiers})" if tiers else solves
    else:
        yield "shown in", "no solve"
    yield "written for", ", ".join(known.supporting_problems)
    yield "choose by", "; ".join(card.routing_conditions)
    yield "source", f"{known.source}, epoch {known.epoch_introduced}"
    for each in story.revisions:
        outcome = "" if each.action == "KEEP" else (" (done)" if each.accepted else " (not borne out)")
        yield f"curator, epoch {each.epoch}", f"{each.action}{outcome}: {each.reason}"


def epochs(report: Report) -> Html:
    """What was done in each epoch, in figures."""
    return join(_epoch(epoch) for epoch in report.epochs)


def _epoch(epoch: Epoch) -> Html:
    parts = [tag("h2", f"Epoch {epoch.number}")]
    entered = (
        f"{counted(epoch.proposed, 'card')} proposed, {epoch.admitted} admitted, {len(epoch.merged)} merged, "
        f"{sum(refusal.what == 'card' for refusal in epoch.refused)} refused"
    )
    waiting = f", {epoch.waiting} waiting for a ruling" if epoch.waiting else ""
    parts.append(tag("p", f"{entered}{waiting}.", class_="note"))
    if epoch.scores:
        parts += [tag("h3", "Runs"), _runs(epoch.scores)]
    if epoch.merged:
        rows = ((_id(each.card_id), _id(each.into), each.reason) for each in epoch.merged)
        parts += [tag("h3", "Merged"), table(("Card", "Into", "Why"), rows)]
    if epoch.looks:
        parts += [tag("h3", "Revisions put to the test"), _looks(epoch)]
    if epoch.gaps:
        parts += [tag("h3", "Gaps that no card covers")]
        parts += [tag("ul", *(tag("li", tag("b", gap.domain), f": {gap.text}") for gap in epoch.gaps), class_="plain")]
    if epoch.beyond:
        parts += [tag("h3", "Beyond the tree’s reach"), _beyond(epoch)]
    return tag("section", *parts)


def _runs(scores: Iterable[Score]) -> Html:
    heads = ("Run", "Right", "Accuracy", "95 % interval", "Past ES", "Calls a problem")
    rows = (
        (
            score.title,
            f"{score.correct} of {score.problems}",
            "–" if score.accuracy is None else f"{score.accuracy:.1%}",
            f"{score.interval.low:.1%} to {score.interval.high:.1%}",
            str(score.escalated),
            f"{score.paper_calls / max(score.problems, 1):.2f}",
        )
        for score in scores
    )
    return table(heads, rows, right=frozenset(heads[1:]))


def _looks(epoch: Epoch) -> Html:
    heads = ("Domain", "Lift", "p", "Gained", "Lost", "Verdict")
    rows = (
        (
            join((look.domain, tag("small", f"try {look.number}, {counted(look.n, 'solve')}"))),
            points(look.lift),
            f"{look.p:.3g}",
            ", ".join(look.gained) or "–",
            ", ".join(look.lost) or "–",
            join((badge("kept", "good") if look.accepted else badge("dropped", "open"), tag("small", look.reason))),
        )
        for look in epoch.looks
    )
    return table(heads, rows, right=frozenset(("Lift", "p")))


def _beyond(epoch: Epoch) -> Html:
    note = (
        f"{counted(len(epoch.beyond), 'problem')} left at ES, where both attempts agreed on a wrong answer. ES "
        "reads no card, so no tree can mend these."
    )
    rows = ((each.label, each.answer or "–", each.expected or "–") for each in epoch.beyond)
    listed = table(("Problem", "Answered", "Expected"), rows)
    return join((tag("p", note, class_="note"), folded("The problems", listed, len(epoch.beyond))))


def refusals(report: Report) -> Html:
    """What did not get in: how often each rule applied, then every case with its reason."""
    found = report.refused
    title = tag("h2", "What was refused, and why")
    if not found:
        return tag("section", title, tag("p", "Nothing was refused.", class_="note"))
    rules = Counter((each.refused.rule, each.refused.by) for each in found)
    listed = [
        tag(
            "li",
            tag("code", rule),
            tag("span", f"by the {by}" if by != "code" else "by code", class_="soft"),
            tag("b", str(n)),
        )
        for (rule, by), n in rules.most_common()
    ]
    rows = (
        (
            str(each.epoch),
            each.place,
            _id(each.refused.card_id or "unnamed")
            if each.what == "card"
            else join((_id(each.refused.card_id), " (revision)")),
            each.refused.by,
            tag("code", each.refused.rule),
            each.refused.reason,
        )
        for each in found
    )
    every = table(("Epoch", "Place", "Card", "By", "Rule", "Reason"), rows)
    return tag("section", title, tag("ul", *listed, class_="rules"), folded("Every refusal", every, len(found)))


def costs(report: Report) -> Html:
    """What each role used."""
    if not report.costs:
        return Html("")
    heads = ("Role", "Calls", "Failed", "Input tokens", "of it cached", "Output tokens", "USD")
    every = table(heads, (_cost_row(cost) for cost in report.costs), right=frozenset(heads[1:]))
    total = f"Together {'a price that is not known' if report.usd is None else f'{report.usd:,.2f} USD'}."
    return tag("section", tag("h2", "What it cost"), every, tag("p", total, class_="note"))


def _cost_row(cost: Cost) -> tuple[str, ...]:
    figures = (cost.calls, cost.failed, cost.input, cost.cached, cost.output)
    told = ("–" if figure is None else f"{figure:,}" for figure in figures)
    return (cost.role, *told, "–" if cost.usd is None else f"{cost.usd:,.2f}")


def settings(report: Report) -> Html:
    """The dials of the run."""
    if not report.settings:
        return Html("")
    pairs = join(join((tag("dt", name.replace("_", " ")), tag("dd", value))) for name, value in report.settings)
    return tag("section", tag("h2", "Settings"), tag("dl", pairs, class_="settings"))


def _id(name: str) -> Html:
    return tag("span", name, class_="id")
