"""What a run adds up to, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kace.evaluation.metrics import Metrics
    from kace.evaluation.stats import Interval


def metrics_lines(found: Metrics) -> list[str]:
    """The figures of one arm, the headline first."""
    lines = [f"{found.name}: {found.problems} problems, {found.solves} solves, {found.model}"]
    if found.accuracy is not None and found.wilson and found.interval:
        lines.append(
            f"accuracy     {100 * found.accuracy:.1f} %"
            f"  Wilson {_range(found.wilson)}  bootstrap {_range(found.interval)}"
        )
        by_seed = "  ".join(f"{score.seed}: {score.right}/{score.n}" for score in found.seeds)
        lines.append(f"by seed      {by_seed}")
    if found.failed:
        without = found.accuracy_without_failed
        said = f"; without them {100 * without:.1f} %" if without is not None else ""
        lines.append(f"failed       {found.failed} solves lost a call and count as they stand{said}")
    lines.append(
        f"calls        {found.paper_calls:.2f} a problem by the paper's count, {found.real_calls:.2f} really made"
        + (f", {found.classifier_calls:.2f} to choose what it reads" if found.classifier_calls else "")
    )
    lines.append(f"tokens       {found.input:.0f} in ({found.cached:.0f} cached), {found.output:.0f} out, a solve")
    if found.card_tokens:
        about = "about " if found.card_tokens.estimated else ""
        lines.append(
            f"read         {about}{found.card_tokens.mean_when_read:.0f} tokens of learned text where any was read"
        )
    if found.exits:
        lines.append("exits        " + "  ".join(f"{path.value} {count}" for path, count in found.exits.items()))
    if found.concordance and found.concordance.share is not None:
        pairs = found.concordance
        lines.append(f"concordance  {pairs.concordant:g} of {pairs.pairs} pairs = {100 * (pairs.share or 0):.1f} %")
    if found.cost.usd is not None:
        lines.append(f"cost         {found.cost.usd:.4f} USD")
    return lines


def _range(interval: Interval) -> str:
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
