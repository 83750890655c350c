"""An evaluation as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kace.evaluation.compare import Change, Comparison, p_text
from kace.evaluation.metrics import Metrics
from kace.evaluation.plots import NARROW, WIDE, Plot, plots_of
from kace.evaluation.report import Evaluation, lead
from kace.plots.exit_bars import NAMES
from kace.plots.picture import inline
from kace.web.markup import Html, join, tag
from kace.web.parts import badge, document, folded, table, tile
from kace.words import counted, points

LISTED = 60
"""Problems gained or lost that are named; the rest are counted."""


def page(found: Evaluation) -> str:
    """The whole page. Everything that came from outside is text in it, whatever it says."""
    plots = {plot.name: plot for plot in plots_of(found)}
    sections = (arms, comparisons, tradeoff, exits, concordance, lifts, costs)
    drawn = (section(found, plots) for section in sections)
    return document(f"{found.title}: evaluation", header(found), *drawn, setups(found), _footer())


def header(found: Evaluation) -> Html:
    """What was evaluated, and the answer in a sentence."""
    models = dict.fromkeys(setup.model for setup in found.setups if setup.model)
    solves = sum(arm.solves for arm in found.arms)
    facts = {
        "solver": ", ".join(models),
        "problems": f"{max(arm.problems for arm in found.arms):,}",
        "arms": f"{len(found.arms)}",
        "solves": f"{solves:,}",
        "base": found.base,
    }
    return tag(
        "header",
        tag("p", "Evaluation", class_="eyebrow"),
        tag("h1", found.title),
        tag("p", lead(found), class_="lead"),
        _warnings(found),
        tag("p", *(tag("span", f"{name} ", tag("b", value)) for name, value in facts.items() if value), class_="facts"),
        tag("div", *_tiles(found), class_="tiles"),
    )


def arms(found: Evaluation, plots: Mapping[str, Plot]) -> Html:
    """Every arm's figures."""
    heads = ("Arm", "Accuracy", "95 % interval", "Calls", "Input tokens", "Output tokens", "Active tokens", "USD")
    note = "Calls by the paper’s count and as really made; tokens a solve; active tokens are learned text in a prompt."
    return _section(
        "Accuracy" if "accuracy" in plots else "Arms",
        _figure(plots.get("accuracy")),
        tag("div", table(heads, (_arm_row(arm) for arm in found.arms), right=frozenset(heads[1:])), class_="scroll"),
        tag("p", note, class_="note after"),
    )


def _arm_row(arm: Metrics) -> tuple[str, ...]:
    seeds = " ".join(f"{score.accuracy:.1%}" for score in arm.seeds)
    accuracy = "–" if arm.accuracy is None else f"{arm.accuracy:.1%}"
    if len(arm.seeds) > 8:
        shares = [score.accuracy for score in arm.seeds]
        seeds = f"{min(shares):.1%} to {max(shares):.1%} on {len(shares)} seeds"
    card_tokens = arm.card_tokens
    active = f"{'~' if card_tokens.estimated else ''}{card_tokens.mean:,.0f}" if card_tokens else "–"
    usd = arm.cost.usd
    return (
        _with(tag("b", arm.name), f"n = {arm.problems:,}" + (f" × {len(arm.seeds)}" if len(arm.seeds) > 1 else "")),
        _with(accuracy, seeds if len(arm.seeds) > 1 else ""),
        _with(_percents(arm.wilson), f"bootstrap {_percents(arm.interval)}" if arm.interval else ""),
        _with(f"{arm.paper_calls:.2f}", f"real {arm.real_calls:.2f}"),
        _with(f"{arm.input:,.0f}", f"cached {arm.cached:,.0f}" if arm.cached else ""),
        f"{arm.output:,.0f}",
        _with(active, f"at most {card_tokens.most:,}" if card_tokens else ""),
        "–" if usd is None else f"{usd:,.2f}",
    )


def comparisons(found: Evaluation, plots: Mapping[str, Plot]) -> Html:
    """Each arm against the base."""
    if not found.comparisons:
        return Html("")
    heads = ("Arm", "Difference", "p", "Gained", "Lost", "Detectable", "Verdict")
    note = (
        "Gained and lost are problems. Detectable is the smallest difference that this many problems would show four "
        "times in five."
    )
    every = table(heads, (_comparison_row(each) for each in found.comparisons), right=frozenset(heads[1:6]))
    words = join(map(_in_words, found.comparisons))
    return _section(
        f"Compared with {found.base}",
        _figure(plots.get("difference")),
        every,
        tag("p", note, class_="note after"),
        folded("In words, and by problem", words, len(found.comparisons), open_up_to=2),
    )


def _comparison_row(each: Comparison) -> tuple[str, ...]:
    interval = f"{points(each.interval.low)} to {points(each.interval.high)}"
    return (
        _with(tag("b", each.other), f"n = {each.n:,}, {counted(each.pairs, 'pair')}"),
        _with(points(each.difference), interval),
        _with(_chance(each.adjusted), f"alone {_chance(each.p)}" if each.compared > 1 else each.test),
        f"{len(each.gained):,}",
        f"{len(each.lost):,}",
        "–" if each.mdd is None else points(each.mdd).lstrip("+"),
        join((_verdict(each), *(tag("small", note) for note in each.notes))),
    )


def _verdict(each: Comparison) -> Html:
    if not each.distinguishable:
        return badge("cannot be told", "open")
    return badge("better", "good") if each.difference > 0 else badge("worse", "bad")


def _chance(p: float) -> str:
    return p_text(p).removeprefix("p ").removeprefix("= ")


def _in_words(each: Comparison) -> Html:
    """What the figures mean, and the problems behind them."""
    listed = tag("dl", *_changes("gained", each.gained), *_changes("lost", each.lost))
    return tag("div", tag("p", each.sentence), listed, class_="story")


def _changes(title: str, changes: tuple[Change, ...]) -> Iterator[Html]:
    named = ", ".join(change.name for change in changes[:LISTED]) or "none"
    rest = f" and {len(changes) - LISTED:,} more" if len(changes) > LISTED else ""
    yield tag("dt", f"{title} ({len(changes):,})")
    yield tag("dd", named, rest)


def tradeoff(found: Evaluation, plots: Mapping[str, Plot]) -> Html:
    """What accuracy takes."""
    return _alone(plots.get("accuracy-against-calls"))


def exits(found: Evaluation, plots: Mapping[str, Plot]) -> Html:
    """Where solves leave."""
    plot = plots.get("exits-by-difficulty")
    if plot is None:
        return Html("")
    heads = ("Arm", *NAMES.values())
    rows = ((tag("b", arm.name), *(f"{arm.exits.get(path, 0):,}" for path in NAMES)) for arm in found.ladders)
    every = table(heads, rows, right=frozenset(heads[1:]))
    return _section(plot.title, _figure(plot), folded("Counts", every, len(found.ladders), open_up_to=0))


def concordance(found: Evaluation, plots: Mapping[str, Plot]) -> Html:
    """Whether exits say how hard problems are."""
    return _alone(plots.get("concordance"))


def lifts(found: Evaluation, plots: Mapping[str, Plot]) -> Html:
    """What the cards are worth."""
    plot = plots.get("card-lift")
    if plot is None:
        return Html("")
    heads = ("Card", "Lift", "95 % interval", "Problems", "Attempts with", "without", "Status")
    rows = (
        (
            _with(tag("span", lift.card_id, class_="id"), lift.place),
            points(lift.effect),
            f"{points(lift.low)} to {points(lift.high)}",
            f"{lift.problems:,}",
            f"{lift.shown:,}",
            f"{lift.hidden:,}",
            lift.status.value,
        )
        for lift in found.lifts
    )
    every = table(heads, rows, right=frozenset(heads[1:6]))
    return _section(plot.title, _figure(plot), folded("Every measured card", every, len(found.lifts), open_up_to=0))


def costs(found: Evaluation, plots: Mapping[str, Plot]) -> Html:
    """What each role of each arm used."""
    heads = ("Arm", "Role", "Calls", "Input tokens", "of it cached", "Output tokens", "USD")
    rows = [
        (
            tag("b", arm.name),
            role.role,
            f"{role.calls:,}",
            f"{role.usage.input:,}",
            f"{role.usage.cached:,}",
            f"{role.usage.output:,}",
            "–" if role.usd is None else f"{role.usd:,.2f}",
        )
        for arm in found.arms
        for role in arm.cost.roles
    ]
    if not rows:
        return Html("")
    every = table(heads, rows, right=frozenset(heads[2:]))
    return _section("What it cost", _figure(plots.get("cost-by-role")), folded("By arm and role", every, len(rows)))


def setups(found: Evaluation) -> Html:
    """What produced each arm."""
    heads = ("Arm", "Solver", "Data", "Tree", "Run", "kace")
    rows = (
        (
            tag("b", setup.name),
            setup.model or "–",
            _with(" ".join((setup.data, setup.split)).strip() or "–", setup.data_hash[:12]),
            _with(f"{arm.tree.cards:,} cards", setup.tree[:12]) if arm.tree else "–",
            setup.folder or "–",
            setup.kace or "–",
        )
        for setup, arm in zip(found.setups, found.arms, strict=True)
    )
    return _section("How the arms were made", table(heads, rows))


def _warnings(found: Evaluation) -> Html:
    if len(found.warnings) < 2:
        return join(tag("p", warning, class_="banner") for warning in found.warnings)
    return tag("ul", *(tag("li", warning) for warning in found.warnings), class_="banner")


def _tiles(found: Evaluation) -> Iterator[Html]:
    best = found.best
    if best and best.accuracy is not None and best.wilson:
        yield tile(f"{best.accuracy:.1%}", f"{best.name}, {_percents(best.wilson)}")
        compared = found.against_base(best.name)
        if compared:
            low, high = compared.interval
            yield tile(points(compared.difference), f"points against {found.base}, {points(low)} to {points(high)}")
        made = "" if abs(best.real_calls - best.paper_calls) < 0.005 else f", {best.real_calls:.2f} really made"
        yield tile(f"{best.paper_calls:.2f}", f"calls a problem{made}")
        if best.concordance and best.concordance.share is not None:
            yield tile(f"{best.concordance.share:.0%}", f"of {counted(best.concordance.pairs, 'pair')} concordant")
    else:
        yield tile(f"{sum(arm.solves for arm in found.arms):,}", "solves, none with a known answer")
    spent = [arm.cost.usd for arm in found.arms]
    if all(usd is not None for usd in spent) and any(spent):
        yield tile(f"${sum(usd or 0.0 for usd in spent):,.2f}", "for all arms")


def _section(title: str, *parts: Html) -> Html:
    return tag("section", tag("h2", title), *parts)


def _alone(plot: Plot | None) -> Html:
    return _section(plot.title, _figure(plot)) if plot else Html("")


def _figure(plot: Plot | None) -> Html:
    """A plot in two widths, of which the screen shows one."""
    if plot is None:
        return Html("")
    return tag(
        "figure",
        inline(plot.draw(WIDE), "plot wide"),
        inline(plot.draw(NARROW), "plot narrow"),
        tag("figcaption", plot.caption.replace(" %", "\u00a0%")),
    )


def _with(value: str, small: str) -> Html:
    return join((value, tag("small", small))) if small else join((value,))


def _percents(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}"


def _footer() -> Html:
    return tag("footer", "Made by ", tag("code", "kace report"), " from the recorded solves.")
