"""Cards as a good teacher writes them: general rules, with the constants and tiny patterns such rules have."""

from __future__ import annotations

from kace.cards.card import Card, Provenance
from tests.card_samples import card

PAYLOADS = {
    "RUBRIC_PEGGED_WEIGHT_ROUND": (
        "Useful when:\n- pegged weight\n- freight per stone\n\n"
        "Pegged weight = weight rounded up to the next multiple of 10.\n"
        "Freight = pegged weight * pence per stone.\nPattern: weight 3, 1 penny: 3 -> 10, 10 * 1 = 10."
    ),
    "EXACT_BRADE_IN_SACKS": (
        "Useful when:\n- brades and sacks\n\nA brade is 20 sacks.\nSacks in all = 20 * brades + loose sacks."
    ),
    "RUBRIC_SLACKAGE_FREE_HOURS": (
        "Useful when:\n- slackage for waiting\n\nThe first 3 hours are free.\nSlackage = (hours - 3) * pence an hour."
    ),
    "EXACT_TRIANGLE_ANGLE_SUM": (
        "Useful when:\n- two angles known\n\nThe angles of a triangle add up to $180^\\circ$: "
        "$\\alpha + \\beta + \\gamma = 180^\\circ$.\nThird angle: $180 - \\alpha - \\beta$."
    ),
    "EXACT_HARMONIC_MEAN_SPEED": (
        "Useful when:\n- same way back\n- average speed\nDo not apply if:\n- equal times are driven\n\n"
        "Over equal distances the mean of speeds u and v is $\\frac{2uv}{u+v}$, never $\\frac{u+v}{2}$."
    ),
    "EXACT_HANDSHAKE_PAIRS": (
        "Useful when:\n- everybody with everybody\n\nn people make $\\frac{n(n-1)}{2}$ pairs.\n"
        "Check: 3 people shake hands 3 times."
    ),
    "RUBRIC_ZEROS_OF_FACTORIAL": (
        "Useful when:\n- zeros at the end\n\nCount factors 5 of n!: add the whole parts of n/5, n/25, n/125.\n"
        "Stop when the power of 5 exceeds n."
    ),
    "EXACT_LARGEST_UNPAYABLE_SUM": (
        "Useful when:\n- two stamps or coins\n\nFor a and b without common factor it is $ab - a - b$.\n"
        "Pattern: a = 2, b = 3 gives 6 - 2 - 3 = 1."
    ),
    "READING_PERCENT_UP_DOWN": (
        "Useful when:\n- raised then lowered\n\nThe second percentage is taken of the new price.\n"
        "Final = price * (100 + p)/100 * (100 - q)/100."
    ),
    "MICRO_UNITS_OF_TIME": (
        "Useful when:\n- hours to minutes\n\nAn hour has 60 minutes, a minute 60 seconds, a day 24 hours.\n"
        "A kilogram has 1000 grams."
    ),
    "EXACT_SPECIAL_TRIANGLE_SIDES": (
        "Useful when:\n- right triangle\n\nSides of a 30-60-90 triangle: $1 : \\sqrt{3} : 2$; "
        "of a 45-45-90 triangle: $1 : 1 : \\sqrt{2}$.\n"
        "$\\sin 30^\\circ = \\frac12$, $\\sin 45^\\circ = \\frac{\\sqrt2}{2}$."
    ),
    "CASE_SPLIT_ABSOLUTE_VALUE": (
        "Useful when:\n- absolute value equation\n\n$|x-a| = b$ with $b \\ge 0$ gives $x = a+b$ or $x = a-b$; "
        "with $b < 0$ there is no solution and the answer is 0 roots."
    ),
}  # fmt: skip


def sound_card(card_id: str, domain: str = "algebra", supporting: tuple[str, ...] = ()) -> Card:
    """One of the cards above."""
    own = Provenance(source="teacher", supporting_problems=supporting)
    return card(card_id, payload=PAYLOADS[card_id], domain_tags=(domain,), provenance=own)
