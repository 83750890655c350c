"""What a learning run would take, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from kace.learner.forecast import RoleForecast


def forecast_lines(rows: Sequence[RoleForecast]) -> list[str]:
    """A line a role: what is expected, then what it takes at most."""
    lines = [f"{'':11}{'calls':>16}{'input tokens':>18}{'output tokens':>18}{'USD':>15}"]
    for row in rows:
        lines.append(f"{row.role:<11}{_pair(row, 'calls')}{_pair(row, 'input')}{_pair(row, 'output')}{_money(row)}")
    known = [row for row in rows if row.usd is not None and row.most_usd is not None]
    if len(known) == len(rows):
        expected, most = sum(row.usd or 0 for row in known), sum(row.most_usd or 0 for row in known)
        lines.append(f"{'in all':<63}{f'{expected:.2f} to {most:.2f}':>15}")
    else:
        unpriced = sorted({row.model for row in rows if row.usd is None})
        lines.append(f'no price for {", ".join(unpriced)}: add [prices."NAME"] with input and output to kace.toml')
    lines.append("expected to at most, without prefix caches; nothing was spent")
    return lines


def _pair(row: RoleForecast, name: str) -> str:
    width = 16 if name == "calls" else 18
    return f"{_short(getattr(row.expected, name))} to {_short(getattr(row.most, name))}".rjust(width)


def _money(row: RoleForecast) -> str:
    text = "unknown" if row.usd is None or row.most_usd is None else f"{row.usd:.2f} to {row.most_usd:.2f}"
    return text.rjust(15)


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"
