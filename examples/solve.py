"""Solve one problem and print every tier's votes: python examples/solve.py."""

import kace

solution = kace.solve("How many diagonals does a 9-gon have?", tree="starter")
for tier, _, vote in solution.tiers:
    print(
        tier.name,
        [(leader.answer.text, leader.votes) for leader in vote.standings],
    )
print(solution.exit.value, solution.answer)
